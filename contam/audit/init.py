"""Write a first AUDIT.toml from what was found, with the rest left to fill in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from contam.audit.toml import toml_text
from contam.corpus.shards import survey
from contam.errors import Remedy, UsageError
from contam.index.open import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD = """\
# What `contam audit {name}` checks. Paths are relative to this file.
# docs/guides/audit.md explains every key.

[audit]
title = "Contamination audit"
out = "{out}"             # the folder of the pack
policies = ["contam"]          # the first one makes the headline; `contam policies` lists them
# least = 50                   # items a subset needs before anything is estimated from it
# decoys = 1                   # decoys for each item, to tell chance; 0 leaves it out
# waivers = "waivers.toml"     # reviewed false alarms and accepted leaks
# labels = ["labels.jsonl"]    # what readers said, from `contam review`
# judged = ["judged.parquet"]  # what a model said, from `contam judge`
# no_text = true               # keep the items' texts out of the pack
"""


def starting_file(
    target: Path,
    *,
    corpora: Sequence[str] = (),
    indexes: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    logs: Sequence[str] = (),
) -> str:
    """The text of a commented AUDIT.toml, to be written to `target`.

    Looks at what it is pointed at: shards are counted, logs are read for models and benchmarks.

    Raises UsageError when there is neither a corpus nor an index, or no items, and what reading
    corpora, indexes and logs raises.
    """
    if not corpora and not indexes:
        raise UsageError("there is no corpus to audit", remedy=Remedy.GIVE_CORPUS_OR_INDEX)
    if not benchmarks and not logs:
        raise UsageError("there are no items to look for", remedy=Remedy.GIVE_BENCHMARK_OR_LOGS)
    base = target.resolve().parent
    blocks = [_HEAD.format(name=target.name, out=f"{target.stem}-pack")]
    blocks += [_corpus(number, path, base) for number, path in enumerate(corpora, 1)]
    blocks += [_index(number, path, base) for number, path in enumerate(indexes, len(corpora) + 1)]
    blocks += [_benchmark(benchmarks, base)]
    if logs:
        blocks.append(_logs(logs, base))
    return "\n".join(blocks)


def _corpus(number: int, path: str, base: Path) -> str:
    shards, skipped = survey([path])
    size = sum(shard.size_bytes for shard in shards)
    beside = f", {_number(len(skipped), 'other file')} left out" if skipped else ""
    return f"""\
[[corpus]]                     # {_number(len(shards), "shard")}, {size / 1e6:.1f} MB{beside}
name = {toml_text(_name(path, number))}
stage = "pretraining"          # or "midtraining", "sft"
paths = {_texts([_relative(path, base)])}
# text = "text"                # the column, where the usual names do not find it
"""


def _index(number: int, path: str, base: Path) -> str:
    index = Index.open(path)
    shown = _relative(path, base) if Path(path).exists() else path
    return f"""\
[[corpus]]                     # an index of {_number(len(index.names), "shard")}
name = {toml_text(_name(path, number))}
stage = "pretraining"          # or "midtraining", "sft"
index = {_texts([shown])}
"""


def _benchmark(paths: Sequence[str], base: Path) -> str:
    if not paths:
        return """\
[[benchmark]]
from_logs = true               # the items that the logs hold
# released = 2024-01-31        # an older document cannot have copied it
"""
    return "\n".join(
        f"""\
[[benchmark]]
paths = {_texts([_relative(path, base)])}
# released = 2024-01-31        # an older document cannot have copied it
# map = {{ question = "prompt" }}
"""
        for path in paths
    )


def _logs(paths: Sequence[str], base: Path) -> str:
    from contam.rescore.logs import read_logs

    found = read_logs(list(paths))
    models = sorted({log.model for log in found})
    named = ", ".join(map(_comment, sorted({log.benchmark for log in found})))
    return f"""\
[logs]                         # {_number(len(found), "log")} of {named}
paths = {_texts([_relative(path, base) for path in paths])}
ours = []                      # of {", ".join(map(_comment, models))}
# references = []              # models that cannot have seen the corpora

# [model.{toml_text(models[0])}]
# cutoff = 2024-06-30
# corpora = []                 # which of the corpora above it was trained on; all if not said
"""


def _number(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _name(path: str, number: int) -> str:
    stem = Path(path).resolve().name.split(".")[0]
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem)
    return kept.strip("-_") or f"corpus-{number}"


def _relative(path: str, base: Path) -> str:
    return path if "://" in path else os.path.relpath(path, base)


def _texts(values: Sequence[str]) -> str:
    return "[" + ", ".join(map(toml_text, values)) + "]"


def _comment(value: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in value).split())
