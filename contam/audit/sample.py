"""Draw the items to review, show them to readers, and store the labels that these give."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from contam.audit.verify import REPORT, checked_facts
from contam.benchmark.items import ItemName
from contam.detect.accepted import AcceptedRow, Seen, find_accepted, read_accepted
from contam.detect.labels import FLAGGED
from contam.detect.report import load_report
from contam.detect.show.choose import check_policy
from contam.detect.show.side_by_side import view_items
from contam.errors import ConfigError, OutputError, Public, UsageError
from contam.files.disk import sync_path
from contam.files.single import reading
from contam.tables import schemas

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from contam.detect.report import Report
    from contam.detect.show.reread import Place
    from contam.detect.show.side_by_side import ItemView
    from contam.tables.schemas import Table

    Row = dict[str, Any]


LEAST_IN_STRATUM: Final = 2
"""Items drawn of every stratum that has them: without two no spread is known."""

CHECKED: Final = (*FLAGGED, "clean")
# What the evidence is, without numbers of ours that say nothing of it.
_LEFT_OUT: Final = (*ItemName._fields, "alignment", "similarity", "answer_mark", "document_token")

Judged = tuple[str, str, str, str]
"""Benchmark, split, item id and policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One answer of one reader.

    evidence  digest of what there was to see;  label  whether the item stands in the corpus, None
              where the reader could not say;  note  what else the reader says of it
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    benchmark: str
    split: str
    item: str
    policy: str
    evidence: str
    reader: str
    label: bool | None
    note: str = ""
    format: Literal[1] = 1

    @property
    def judged(self) -> Judged:
        """What the answer is about."""
        return (self.benchmark, self.split, self.item, self.policy)


@dataclass(frozen=True, slots=True)
class Case:
    """An item under one policy, as a population to draw from knows it.

    stratum  benchmark, label and exposure;  digest  of the item and all its evidence
    place    shard and row of the document that its flag rests on, None without a flag
    pair     digest of the item, its evidence and that document, whichever policy asks; else ""
    """

    judged: Judged
    stratum: tuple[str, str, str]
    score: float
    digest: str
    place: Place | None = None
    pair: str = ""

    @property
    def key(self) -> ItemName:
        """The item."""
        return ItemName(*self.judged[:3])

    @property
    def flagged(self) -> bool:
        """Whether the policy flags it."""
        return self.stratum[1] in FLAGGED


def open_result(folder: Path) -> Report:
    """The verdicts that count in a pack that is as published, or those of a scan.

    Raises OutputError when a file of the pack is missing, new or altered.
    """
    if not (folder / REPORT).exists():
        return load_report(folder)
    facts, _ = checked_facts(folder)
    return load_report(folder / facts.verdicts)


def population(report: Report, policy: str | None = None) -> list[Case]:
    """Every item that was checkable, under each policy or one. Raises UsageError."""
    check_policy(report, policy)
    evidence: defaultdict[ItemName, list[str]] = defaultdict(list)
    for row in schemas.iter_rows(report.evidence):
        rest = [[name, row[name]] for name in row if name not in _LEFT_OUT]
        evidence[ItemName.in_row(row)].append(json.dumps(rest))
    seen = {}
    for row in schemas.iter_rows(report.items):
        key, keys = ItemName.in_row(row), (row["key_version"], row["item_key"], row["full_key"])
        seen[key] = _digest([keys, sorted(evidence[key])])
    cases = []
    for row in schemas.iter_rows(report.verdicts):
        if row["label"] not in CHECKED or policy not in {None, row["policy"]}:
            continue
        key, flagged = ItemName.in_row(row), row["label"] in FLAGGED
        place = (row["best_shard"], row["best_row"])
        rests = flagged and row["best_shard"] is not None
        cases.append(
            Case(
                (*key, row["policy"]),
                (row["benchmark"], row["label"], row["exposure"]),
                row["score"],
                _digest([seen[key], row["policy"], flagged]),
                place if rests else None,
                _digest([seen[key], *place]) if rests else "",
            )
        )
    return cases


def draw(cases: Sequence[Case], *, flagged: int, clean: int, seed: int) -> list[Case]:
    """So many flagged and clean items of each benchmark, at random inside strata, in random order.

    Strata get their share, and two items at the least. A larger sample holds the smaller one, and
    where a reader stops, what was read is a random sample of each stratum, too.
    """
    rank = {case.judged: _digest([seed, *case.judged]) for case in cases}
    strata: defaultdict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        strata[case.stratum].append(case)
    sizes: defaultdict[tuple[str, bool], int] = defaultdict(int)
    for (benchmark, label, _), members in strata.items():
        sizes[benchmark, label in FLAGGED] += len(members)
    drawn: list[Case] = []
    for (benchmark, label, _), members in strata.items():
        wanted = flagged if label in FLAGGED else clean
        share = -(-wanted * len(members) // sizes[benchmark, label in FLAGGED])
        n = max(share, LEAST_IN_STRATUM) if wanted else 0
        drawn += sorted(members, key=lambda case: rank[case.judged])[:n]
    return sorted(drawn, key=lambda case: rank[case.judged])


def read_labels(paths: Sequence[str | Path]) -> list[Label]:
    """All answers of these files, in order. Raises ConfigError naming file and line."""
    from pydantic import TypeAdapter, ValidationError

    known = TypeAdapter(Label)
    found = []
    for path in map(Path, paths):
        with reading(path, ConfigError, "`contam review` writes it"):
            lines = path.read_bytes().splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                found.append(known.validate_json(line))
            except ValidationError as error:
                raise ConfigError(
                    "{}:{} is no label of `contam review`", path, number, hint="mend that line"
                ) from error
    return found


def write_labels(path: Path, labels: Sequence[Label], *, notes: bool = True) -> None:
    """Write the answers of all readers as one file. Raises OSError.

    notes  keep what readers wrote beside them, which may be words of an item
    """
    kept = labels if notes else [replace(label, note="") for label in labels]
    path.write_text("".join(json.dumps(asdict(label)) + "\n" for label in kept), "ascii")


def append_label(path: Path, label: Label) -> None:
    """Add one answer, which is on the disk when this returns. Raises OutputError."""
    try:
        new = not path.exists()
        with path.open("a", encoding="ascii") as file:
            file.write(json.dumps(asdict(label)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_path(path.parent)
    except OSError as error:
        raise OutputError("cannot write {}: {}", path, Public(error.strerror)) from error


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode("ascii")).hexdigest()


MOST_CHARACTERS: Final = 100
_PATHS: Final = (".", "..")


def reader_name(text: str) -> str:
    """The name with single spaces. Raises UsageError for what cannot be one.

    A name is one line of printable characters and no part of a path: labels are handed on in files
    that are called after it.
    """
    name = text.strip(" ")
    plain = name.isprintable() and not {"/", "\\"} & set(name) and name not in _PATHS
    if not name or len(name) > MOST_CHARACTERS or not plain:
        raise UsageError(
            "a reader's name has 1 to {} printable characters, and no slash",
            MOST_CHARACTERS,
            hint="give a plain name, like Anna",
        )
    return " ".join(name.split())


ITEMS: Final = 50
"""Flagged items of each benchmark, and clean ones, that are drawn unless said otherwise."""

DOCUMENTS: Final = 2
SEED: Final = 0


@dataclass(frozen=True, eq=False)
class ReviewSession:
    """A random sample of a result, to be read.

    policy  whose flags it is about;  cases  what was drawn, in the order in which it is read
    report  what there is to see of them, with no verdict in it
    """

    policy: str
    cases: tuple[Case, ...]
    report: Report

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        policy: str | None = None,
        flagged: int = ITEMS,
        clean: int = ITEMS,
        seed: int = SEED,
    ) -> ReviewSession:
        """Draw from a pack, or from the result of a scan.

        policy  None: the first of the result

        Raises OutputError for a folder that is neither, UsageError for a policy it does not have.
        """
        report = open_result(folder)
        chosen = policy or str(report.run["parameters"]["policies"][0])
        cases = draw(population(report, chosen), flagged=flagged, clean=clean, seed=seed)
        keys = {case.key for case in cases}
        return cls(
            chosen,
            tuple(cases),
            replace(
                report,
                verdicts=schemas.take(report.verdicts, []),
                evidence=_of(report.evidence, keys),
                items=_of(report.items, keys),
            ),
        )

    def waiting(self, labels: Iterable[Label], reader: str) -> list[Case]:
        """The cases that this reader has not answered, in order. A skipped one is answered."""
        answered = {(label.judged, label.evidence) for label in labels if label.reader == reader}
        return [case for case in self.cases if (case.judged, case.digest) not in answered]

    def view(self, case: Case, documents: int = DOCUMENTS) -> ItemView:
        """The item beside its best documents, without what any policy says of it."""
        (view,) = view_items(self.report, [case.key], max_documents=documents)
        return view


@dataclass(frozen=True, eq=False)
class AcceptSession:
    """The flagged items of a result under one policy, to be accepted one by one.

    items  those that the file does not accept yet, in order
    """

    policy: str
    items: tuple[ItemName, ...]
    report: Report
    seen: Seen

    @classmethod
    def open(
        cls, folder: Path, path: Path, policy: str | None = None, wanted: Collection[str] = ()
    ) -> AcceptSession:
        """Read a pack or the result of a scan, and the file that rows will be added to.

        wanted  ids of items; none are all that are flagged

        Raises UsageError for an id that is not flagged, and as `ReviewSession.open`.
        """
        report = open_result(folder)
        chosen = policy or str(report.run["parameters"]["policies"][0])
        check_policy(report, chosen)
        seen = Seen(report, set(schemas.column(report.items, "benchmark")))
        flagged = sorted(item for item, flags in seen.flags.items() if chosen in flags)
        if unknown := set(wanted) - {item.item_id for item in flagged}:
            raise UsageError("{} does not flag {}", chosen, min(unknown))
        known = read_accepted(path) if path.exists() else ()
        done = find_accepted(known, report).flags
        items = [
            item
            for item in flagged
            if (*item, chosen) not in done and (not wanted or item.item_id in wanted)
        ]
        bare = replace(report, verdicts=schemas.take(report.verdicts, []))
        return cls(chosen, tuple(items), bare, seen)

    def view(self, item: ItemName) -> ItemView:
        """The item beside all documents that are kept as evidence."""
        most = max(1, self.seen.n_places(item))
        (view,) = view_items(self.report, [item], max_documents=most)
        return view

    def rows(
        self, item: ItemName, reason: str, reader: str, until: dt.date
    ) -> Iterator[AcceptedRow]:
        """A row for each document, or one for the item where more documents hold it than these."""
        whole = self.seen.n_documents(item, self.policy) > self.seen.n_places(item)
        documents = self.seen.documents(item)
        for document in [""] if whole or not documents else documents:
            evidence = self.seen.digest([item], document, self.policy)
            names = (*item, document, self.policy)
            yield AcceptedRow(*names, reason, reader, until, evidence)


def answer(case: Case, reader: str, leaked: bool | None, note: str = "") -> Label:  # noqa: FBT001 - a label is one of three values
    """What a reader says of a case, as it is stored."""
    names = ("benchmark", "split", "item", "policy")
    asked: dict[str, Any] = dict(zip(names, case.judged, strict=True))
    return Label(**asked, evidence=case.digest, reader=reader, label=leaked, note=note)


def _of(table: Table, keys: set[ItemName]) -> Table:
    columns = (schemas.column(table, name) for name in ItemName._fields)
    rows = zip(*columns, strict=True)
    return schemas.take(table, [at for at, row in enumerate(rows) if ItemName(*row) in keys])
