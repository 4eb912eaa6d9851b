"""Take up what `contam clean` recorded of a corpus that an audit searches."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.audit.checks import digest_of
from contam.audit.facts import CleanedFacts
from contam.audit.spec import public
from contam.cleaning.run import FORMAT
from contam.cleaning.writer import digest
from contam.corpus.shards import leave_out, survey
from contam.detect.labels import FLAGGED
from contam.errors import CorpusError, Place
from contam.facts import counted
from contam.files.disk import output_errors
from contam.files.single import fingerprint, read_file, reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.audit.checks import StageCache
    from contam.audit.spec import AuditSpec, CorpusSpec
    from contam.corpus.shards import Shard

_GIVE_CLEANED_CORPUS: Final = "name the corpus/ beside that record, whole and as it was written"


RECORD: Final = "clean.json"
#: What the pack has of a record; the rest says where files were and how long it took.
_PUBLISHED: Final = ("options", "parameters", "before", "documents", "removed", "proof", "versions")
_COUNTS: Final = ("before", "found", "dropped", "edited", "after")
_OF_SHARD: Final = ("name", "rows_before", "rows_after", "found", "in", "corpus", "not_kept")


def check_cleaned(spec: AuditSpec, stages: StageCache, folder: str) -> None:
    """Compare the shards of each cleaned corpus with its clean.json, digest by digest.

    stages  gets a stage `folder`/CORPUS for each, with what is published of its record
    Raises CorpusError where a record is not of `contam clean`, or not of this corpus.
    """
    for corpus in spec.corpora:
        if corpus.cleaned is None:
            continue
        record, said = _read(corpus.cleaned)
        shards = leave_out(survey(list(corpus.paths))[0], corpus.exclude)[0]
        key = digest_of([said, [[shard.name, shard.state] for shard in shards]])
        make = partial(_check, spec, corpus, record, said, shards)
        stages.stage(f"{folder}/{corpus.name}", key, make)


def facts_of(name: str, folder: Path) -> CleanedFacts:
    """What a report says of a stage that `check_cleaned` made."""
    found = json.loads((folder / RECORD).read_bytes())
    flagged: Counter[tuple[str, str]] = Counter()
    for row in found["before"]:
        flagged[row["benchmark"], row["policy"]] += sum(row[label] for label in FLAGGED)
    return CleanedFacts(
        corpus=name,
        action=found["options"]["action"],
        record=found["record"]["sha256"],
        **{name: found["documents"][name] for name in _COUNTS},
        flagged_before=tuple(
            {"benchmark": benchmark, "policy": policy, "n": n}
            for (benchmark, policy), n in sorted(flagged.items())
        ),
        by_benchmark=tuple(found["removed"]["by_benchmark"]),
        by_source=tuple(found["removed"]["by_source"]),
        not_kept=tuple(
            sorted({what for shard in found["shards"] for what in shard.get("not_kept") or ()})
        ),
    )


def _read(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A record, and its size and digest."""
    with reading(Path(path), CorpusError):
        said = fingerprint(Path(path))
        raw = read_file(Path(path))
    try:
        record = json.loads(raw)
    except ValueError:
        record = None
    if not isinstance(record, dict) or (record.get("tool"), record.get("format")) != (
        "contam", FORMAT,
    ):  # fmt: skip
        raise CorpusError(
            "{} is no record of a cleaned corpus",
            Place(path),
            hint="is it the right file, and whole?",
        )
    if record["options"]["action"] == "list":
        raise CorpusError(
            "{}: that run only listed documents, and wrote no corpus", Place(path),
            hint="is it the right file, and whole?",
        )  # fmt: skip
    return record, said


def _check(
    spec: AuditSpec,
    corpus: CorpusSpec,
    record: Mapping[str, Any],
    said: Mapping[str, Any],
    shards: tuple[Shard, ...],
    draft: Path,
) -> dict[str, Any]:
    _compare(corpus.name, str(corpus.cleaned), record, shards)
    published = {name: record[name] for name in _PUBLISHED}
    published["shards"] = [
        {name: shard.get(name) for name in _OF_SHARD} for shard in record["shards"]
    ]
    tree = public({"record": dict(said), **published}, spec)
    with output_errors(draft):
        draft.mkdir(parents=True)
        text = json.dumps(tree, indent=1, sort_keys=True)
        (draft / RECORD).write_text(text + "\n", "ascii")
    return {}


def _compare(name: str, path: str, record: Mapping[str, Any], shards: tuple[Shard, ...]) -> None:
    """Raise CorpusError unless the shards are those that were written, no more and no fewer.

    Names depend on the path that a user gives; contents do not.
    """
    shards_written = [
        ((shard["corpus"]["bytes"], shard["corpus"]["sha256"]), shard["name"])
        for shard in record["shards"]
    ]
    by_digest = dict(shards_written)
    written = Counter(found for found, _ in shards_written)
    for shard in shards:
        said = digest(shard)
        found = (said["bytes"], said["sha256"])
        if not written[found]:
            raise CorpusError(
                "corpus {}: {} is not among what {} says was written", name, Place(shard.name),
                Place(path), hint=_GIVE_CLEANED_CORPUS,
            )  # fmt: skip
        written[found] -= 1
    if missing := sorted(by_digest[found] for found, n in written.items() if n):
        raise CorpusError(
            "corpus {}: {}, which {} says was written, is not in it ({})", name,
            Place(missing[0]), Place(path), counted(len(missing), "missing shard"),
            hint=_GIVE_CLEANED_CORPUS,
        )  # fmt: skip
