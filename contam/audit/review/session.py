"""Show each reader the same sample, in one order, without the verdicts.

Labels of several readers are then those of one random sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contam.audit.review.sample import Label, draw, open_result, population
from contam.benchmark.items import ItemName
from contam.detect.accepted import AcceptedRow, Seen, find_accepted, read_accepted
from contam.detect.show.choose import check_policy
from contam.detect.show.side_by_side import view_items
from contam.errors import UsageError
from contam.tables import schemas

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from contam.audit.review.sample import Case
    from contam.detect.report import Report
    from contam.detect.show.side_by_side import ItemView
    from contam.tables.schemas import Table

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
    benchmark, split, item, policy = case.judged
    return Label(
        benchmark=benchmark,
        split=split,
        item=item,
        policy=policy,
        evidence=case.digest,
        reader=reader,
        label=leaked,
        note=note,
    )


def _of(table: Table, keys: set[ItemName]) -> Table:
    columns = (schemas.column(table, name) for name in ItemName._fields)
    rows = zip(*columns, strict=True)
    return schemas.take(table, [at for at, row in enumerate(rows) if ItemName(*row) in keys])
