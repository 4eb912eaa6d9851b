"""What contam finds in bench_fixtures, as digests: a change that moves no result can prove it.

`make same` compares verdicts, evidence, items, the tables of scores, report.json and the pack with
tests/same.json: of scans, indexes, merged parts and a service, under all policies. After a change
that is meant to move results, `make same ARGS=--write` notes them anew; say in the commit what
moved and why. Digests hold for the releases that requirements/dev.txt pins.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from contam.detect.policies.policy import get_policy, list_policies, shortest_run
from contam.index.recipe import load_recipe
from tests.server.running import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
NOTED = Path(__file__).with_suffix(".json")

#: Keys of JSON files that differ between two runs of one command.
VOLATILE = {"timings", "ids"}
#: Settings and versions, times, and digests of files that name the folder they were made in.
UNCOMPARED = {"MANIFEST.json", "manifest.json", "run.json", "times.json"}
TABLES = {".parquet", ".csv", ".json", ".jsonl"}
#: An index and its segments are named by digests of what they hold and of where that is.
IDENTITY = re.compile(r"\b([0-9a-f]{16}|[0-9a-f]{32})\b")
TOKENIZER = "tokenizer.json"
POLICIES = [get_policy(spec.id) for spec in list_policies()]
ALL = ",".join(policy.spec.id for policy in POLICIES)
#: Those that an index by the recipe `standard` can answer.
OF_WORDS = ",".join(
    policy.spec.id
    for policy in POLICIES
    if policy.spec.unit == "word" and shortest_run(policy) >= load_recipe("complete").guarantee
)
OF_CHARS = "igmini-50,gpt4-50char"
ITEMS = "--benchmark bench_fixtures/items"
CORPUS = "--corpus bench_fixtures/corpus"
SCAN = f"scan {CORPUS} {ITEMS} --out"
SHARES = f"scan {CORPUS} {ITEMS} --policy {ALL} --parts parts --part-size 200KB"
RESCORE = "rescore --logs bench_fixtures/logs --least 12 --out"
#: Run in this order: the command, and the folder of results that it writes, if any.
COMMANDS = (
    (f"{SCAN} scan --policy {ALL}", "scan"),
    (f"{SCAN} scan-default", "scan-default"),
    (f"{SCAN} scan-one-worker --workers 1", "scan-one-worker"),
    (f"{SCAN} scan-chars --unit char", "scan-chars"),
    (f"{SCAN} scan-tokenizer --unit {TOKENIZER}", "scan-tokenizer"),
    (f"{SCAN} scan-no-text --no-text", "scan-no-text"),
    (f"{SCAN} scan-one-document --max-evidence 1 --min-run 5", "scan-one-document"),
    *((f"{SHARES} --shard {share}/3", None) for share in (3, 1, 2)),
    (f"{SHARES} --only-parts --out merged", "merged"),
    (f"index build {CORPUS} --index ./words", None),
    (f"index build {CORPUS} --index ./chars --recipe chars", None),
    (f"index build {CORPUS} --index ./tokens --recipe bpe --unit {TOKENIZER}", None),
    (f"query {ITEMS} --index ./words --policy {OF_WORDS} --out query", "query"),
    (f"query {ITEMS} --index ./chars --policy {OF_CHARS} --out query-chars", "query-chars"),
    (f"query {ITEMS} --index ./tokens --out query-tokens", "query-tokens"),
    (f"{RESCORE} scores --verdicts scan-default", "scores"),
    (f"{RESCORE} scores-all --verdicts scan --all-metrics", "scores-all"),
    (f"{RESCORE} scores-one --verdicts scan --policy tulu3-50 --seed 1", "scores-one"),
    (f"{RESCORE} scores-told --verdicts scan-default --reference quokka-7b", "scores-told"),
    ("audit run bench_fixtures/AUDIT.toml", "build/demo-audit"),
)


def contam(arguments: str, folder: Path) -> None:
    """Run a command in a folder; exit codes other than 0, 3 and 4 end the comparison."""
    call = [sys.executable, "-m", "contam", *shlex.split(arguments)]
    # The last bit of a sum depends on which of its kernels OpenBLAS takes for a processor.
    chosen = {"PYTHONPATH": str(REPOSITORY), "OPENBLAS_CORETYPE": "Haswell"}
    environment = {**os.environ, **chosen}
    done = subprocess.run(
        call, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 3, 4}:
        sys.exit(f"contam {arguments}: exit code {done.returncode}\n{done.stderr}")


def lasting(value: object) -> object:
    """A JSON document without its volatile keys."""
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if key not in VOLATILE}
    return [lasting(one) for one in value] if isinstance(value, list) else value


def digests(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Every table that a command wrote and the digest of its bytes, wherever that was."""
    for path in sorted((folder / name).rglob("*")):
        if path.suffix in TABLES and path.name not in UNCOMPARED:
            data = path.read_bytes()
            if path.suffix == ".json":
                data = json.dumps(lasting(json.loads(data))).encode()
            data = data.replace(str(folder).encode(), b"FOLDER")
            shown = IDENTITY.sub("ID", str(path.relative_to(folder)))
            yield shown, hashlib.sha256(data).hexdigest()[:16]


def outcome(folder: Path) -> Iterator[tuple[str, str]]:
    """The name and the digest of everything that is compared."""
    shutil.copytree(REPOSITORY / "bench_fixtures", folder / "bench_fixtures")
    save_tokenizer(folder / TOKENIZER)
    for command, written in COMMANDS:
        contam(command, folder)
        if written:
            yield from digests(folder, written)
    with serving(folder / "words", data=folder / "data") as service:
        asked = f"check {ITEMS} --server {service.url} --policy {OF_WORDS} --out service"
        contam(asked, folder)
    yield from digests(folder, "service")


def save_tokenizer(path: Path) -> None:
    """A small BPE over bytes."""
    vocabulary = {token: at for at, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("in", "g"), ("a", "n"), ("e", "r")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(path))


def main() -> None:
    """Compare, or note with --write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="note the digests as they are")
    write = parser.parse_args().write
    noted = {} if write else json.loads(NOTED.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        found = dict(outcome(Path(name).resolve()))
    if write:
        NOTED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        noted = found
    for what in sorted(noted.keys() | found.keys()):
        if noted.get(what) != found.get(what):
            here = "new" if what not in noted else "changed" if what in found else "gone"
            sys.stderr.write(f"{here}: {what}\n")
    sys.stdout.write(f"{len(found)} tables {'noted' if write else 'compared'}\n")
    sys.exit(found != noted)


if __name__ == "__main__":
    main()
