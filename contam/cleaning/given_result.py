"""Take what a scan found instead of searching again, and keep what a person found harmless."""

from __future__ import annotations

import datetime as dt
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.items import ItemName
from contam.corpus.coverage import Coverage, ShardCoverage, ShardFailure
from contam.detect.accepted import ACCEPTED, find_accepted, read_accepted
from contam.detect.every_hit import HitFile
from contam.detect.finish import benchmarks_of, parameters_of, versions
from contam.detect.labels import LABELS
from contam.detect.report import RUN_FILE, load_report
from contam.errors import IncompleteError, OutputError, Place, UsageError
from contam.files.single import fingerprint
from contam.tables import schemas
from contam.tables.hit_table import HITS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contam.cleaning.choice import SparedRows
    from contam.detect.corpus import Corpus
    from contam.detect.model import Int8s, Int64s
    from contam.detect.plan import Plan
    from contam.detect.report import Report

#: Parameters that do not decide what is found.
_OF_RESULT: Final = frozenset(("max_evidence", "allow_missing", "keep_text"))
_WAY_OUT: Final = "scan again with --every-hit, or leave out --verdicts"
_NAMED: Final = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenResult:
    """What a scan found that kept every hit.

    labels, n_documents  int8[n, p] and int64[n, p], of every item and policy
    sha256               of the shards as they were searched, by number
    """

    report: Report
    coverage: Coverage
    labels: Int8s
    n_documents: Int64s
    hits: HitFile
    sha256: Mapping[int, str]

    @classmethod
    def read(cls, folder: str | Path, plan: Plan, corpus: Corpus) -> GivenResult:
        """The result in a folder, of the same question to the same corpus.

        Raises OutputError where it is not whole, UsageError where it was made without every hit or
        of another question, and IncompleteError where a shard is not the one that was searched.
        """
        report = load_report(folder)
        run = report.run
        if HITS_FILE not in run["outputs"]:
            raise UsageError("{} was made without --every-hit", Place(folder), hint=_WAY_OUT)
        try:
            return cls._of(report, plan, corpus)
        except (KeyError, TypeError, ValueError) as error:
            raise _changed(report.folder / RUN_FILE) from error

    @classmethod
    def _of(cls, report: Report, plan: Plan, corpus: Corpus) -> GivenResult:
        run, path = report.run, report.folder / HITS_FILE
        _refuse_other_question(report, plan)
        sha256 = _refuse_other_shards(run["inputs"]["shards"], corpus)
        numbers = {shard.name: number for number, shard in enumerate(corpus.shards)}
        try:
            kept = fingerprint(path)
        except OSError as error:
            raise OutputError("{} cannot be read", path, hint="scan again") from error
        if any(run["outputs"][HITS_FILE][name] != value for name, value in kept.items()):
            raise _changed(path)
        read = {
            numbers[counts["shard"]]: replace(
                ShardCoverage.of_counts(counts), columns=tuple(sorted(counts["columns"].items()))
            )
            for counts in run["coverage"]["by_shard"]
        }
        expected = corpus.coverage
        failed = [
            ShardFailure.noted(numbers[one["shard"]], one["shard"], one["reason"])
            for one in run["coverage"]["shards_failed"]
        ]
        verdicts = report.verdicts
        shape = len(plan.items), len(plan.policies)
        labels = [LABELS.index(label) for label in schemas.column(verdicts, "label")]
        return cls(
            report=report,
            coverage=expected.merge(Coverage(expected.names, expected.units, read, tuple(failed))),
            labels=np.array(labels, np.int8).reshape(shape),
            n_documents=np.array(schemas.column(verdicts, "n_documents"), np.int64).reshape(shape),
            hits=HitFile(path, plan, corpus.names),
            sha256=sha256,
        )


def _changed(path: Path) -> OutputError:
    return OutputError("{} was cut short or changed since the scan", path, hint=_WAY_OUT)


def _refuse_other_question(report: Report, plan: Plan) -> None:
    """Raise UsageError unless a result answers the question of a plan."""
    folder, run = Place(report.folder), report.run
    own = json.loads(json.dumps(parameters_of(plan)))
    given = run["parameters"]
    names = sorted({*own, *given} - _OF_RESULT)
    if other := [name for name in names if own.get(name) != given.get(name)]:
        raise UsageError(
            "{} was made with other options: {}", folder, ", ".join(other),
            hint="give the options of that scan, or leave out --verdicts",
        )  # fmt: skip
    mine, theirs = _items_of(benchmarks_of(plan)), _items_of(run["inputs"]["benchmarks"])
    if mine != theirs:
        other = [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
        raise UsageError(
            "{} was made for other items: {} has changed", folder, other[0], hint=_WAY_OUT
        )
    if run["versions"] != versions():
        raise UsageError(
            "{} was made with other versions of contam or of its packages", folder, hint=_WAY_OUT
        )


def _items_of(benchmarks: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {
        one["name"]: [one["n_items"], [source["sha256"] for source in one["sources"]]]
        for one in benchmarks
    }


def _refuse_other_shards(searched: list[dict[str, Any]], corpus: Corpus) -> dict[int, str]:
    """The digests of the shards that were searched, by number.

    What is new or gone is an error, and what is plainly another file; each is compared as a whole
    when it is copied. Raises IncompleteError.
    """
    known = {shard["name"]: shard for shard in searched}
    other = [f"{name} is gone" for name in known.keys() - set(corpus.names)]
    found = {}
    for number, (shard, digest) in enumerate(zip(corpus.shards, corpus.digests, strict=True)):
        then = known.get(shard.name)
        if then is None:
            other.append(f"{shard.name} is new")
        elif (then["size_bytes"], then["digest"]) != (shard.size_bytes, digest):
            other.append(f"{shard.name} has changed")
        elif "sha256" in then:
            found[number] = then["sha256"]
    if other:
        more = f" and {len(other) - _NAMED:,} more" if len(other) > _NAMED else ""
        raise IncompleteError(
            "the shards are not those that were searched: {}{}",
            Place("; ".join(sorted(other)[:_NAMED])), more, hint=_WAY_OUT,
        )  # fmt: skip
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Spared:
    """What a person found harmless in a result.

    rows   those of the file as clean.json has them, each with its `state`
    items  (item, policy) by number that no document goes for
    hits   of the others: by shard and row, the (item, policy) that the document does not go for
    """

    rows: tuple[dict[str, str], ...] = ()
    items: frozenset[tuple[int, int]] = frozenset()
    hits: Mapping[int, SparedRows] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path, result: GivenResult, plan: Plan, corpus: Corpus) -> Spared:
        """What the rows of a file accept in a result today. Raises ConfigError."""
        today = dt.datetime.now(dt.UTC).date()
        found = find_accepted(read_accepted(Path(path)), result.report, today)
        items = {name: number for number, name in enumerate(plan.items.names())}
        policies = {policy.spec.id: number for number, policy in enumerate(plan.policies)}
        shards = {name: number for number, name in enumerate(corpus.names)}

        def numbers(flag: tuple[str, str, str, str]) -> tuple[int, int]:
            return items[ItemName(*flag[:3])], policies[flag[3]]

        wanted: defaultdict[tuple[ItemName, str], set[tuple[int, int]]] = defaultdict(set)
        for flag, document in found.documents:
            wanted[ItemName(*flag[:3]), document].add(numbers(flag))
        hits: defaultdict[int, dict[int, frozenset[tuple[int, int]]]] = defaultdict(dict)
        for row in schemas.iter_rows(result.report.evidence):
            if own := wanted.get((ItemName.in_row(row), row["document_id"])):
                rows = hits[shards[row["shard"]]]
                rows[row["row"]] = rows.get(row["row"], frozenset()) | own
        return cls(rows=found.rows, items=frozenset(map(numbers, found.flags)), hits=dict(hits))

    def notes(self) -> Iterator[str]:
        """A line for each row that spares nothing."""
        for row in self.rows:
            if row["state"] != ACCEPTED:
                named = "/".join(filter(None, (row["benchmark"], row["split"], row["item"])))
                document = f" in {row['document']}" if row["document"] else ""
                yield f"spares nothing: {named}{document}: {row['state']}"
