"""Show each reader the same sample, in one order, without the verdicts.

The terminal (`contam review`) and the page of the service ask by this code, so that their labels
are those of one random sample.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from contam.audit.review.sample import Label, draw, open_result, population
from contam.benchmark.items import ItemName
from contam.detect.show.side_by_side import view_items
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contam.audit.review.sample import Case
    from contam.detect.report import Report
    from contam.detect.show.side_by_side import ItemView
    from contam.tables.schemas import Table

ITEMS: Final = 50
"""Flagged items of each benchmark, and clean ones, that are drawn unless said otherwise."""

DOCUMENTS: Final = 2
SEED: Final = 0

_ID_CHARACTERS: Final = 24


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

    @cached_property
    def by_id(self) -> dict[str, Case]:
        """The cases by an id that says which item under which evidence, and nothing more."""
        return {case_id(case): case for case in self.cases}

    def waiting(self, labels: Iterable[Label], reader: str) -> list[Case]:
        """The cases that this reader has not answered, in order. A skipped one is answered."""
        answered = {(label.judged, label.evidence) for label in labels if label.reader == reader}
        return [case for case in self.cases if (case.judged, case.digest) not in answered]

    def view(self, case: Case, documents: int = DOCUMENTS) -> ItemView:
        """The item beside its best documents, without what any policy says of it."""
        (view,) = view_items(self.report, [case.key], max_documents=documents)
        return view


def case_id(case: Case) -> str:
    """The id of a case; it is another one when the item or its evidence is."""
    digest_input = json.dumps([*case.judged, case.digest]).encode("ascii")
    return hashlib.sha256(digest_input).hexdigest()[:_ID_CHARACTERS]


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
