"""Show what a reviewer needs before waiving a flag: item, verdicts and evidence."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import ItemName
from contam.detect.labels import FLAGGED
from contam.remedies import Remedy
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contam.detect.report import Report
    from contam.remedies import Advice

    Row = dict[str, Any]

_VERDICT: Final = ("policy", "label", "exposure", "n_documents", "n_occurrences")
# Which alignment of a document a span belongs to is a number of ours, and says nothing.
_LEFT_OUT: Final = (*ItemName._fields, "alignment", "similarity", "answer_mark")


@dataclass(frozen=True, slots=True)
class Flagged:
    """One flagged item, under one policy or all that flag it.

    item  benchmark, split and id;  policies  whose flags these are
    """

    item: ItemName
    policies: tuple[str, ...]
    keys: tuple[str | None, ...]
    verdicts: tuple[Row, ...]
    evidence: tuple[Row, ...]

    @property
    def documents(self) -> tuple[str, ...]:
        """Ids of the documents that are in the evidence."""
        return tuple(sorted({row["document_id"] for row in self.evidence}))

    def digest(self, document: str | None = None) -> str:
        """SHA-256 of all of it, or of what is to be seen in one document."""
        # How many documents there are is no matter of the one that was looked at.
        names = _VERDICT if document is None else ("policy", "label", "exposure")
        seen = {
            "item": self.keys,
            "verdicts": [[row[name] for name in names] for row in self.verdicts],
            "evidence": sorted(
                json.dumps([[name, row[name]] for name in row if name not in _LEFT_OUT])
                for row in self.evidence
                if document in (None, row["document_id"])
            ),
        }
        return hashlib.sha256(json.dumps(seen).encode("ascii")).hexdigest()


class Reviewed:
    """The flagged items of one result, by name.

    corpora  names of the audit's corpora; shards of a single one get its name, as shards of several
             have it, so that one more corpus alone changes no digest
    """

    def __init__(self, report: Report, corpora: Sequence[str]) -> None:
        alone = f"{corpora[0]}/" if len(corpora) == 1 else ""
        self._verdicts: defaultdict[ItemName, list[Row]] = defaultdict(list)
        self._known: set[ItemName] = set()
        self._keys: dict[ItemName, tuple[str | None, ...]] = {}
        self._evidence: defaultdict[ItemName, list[Row]] = defaultdict(list)
        for row in schemas.rows(report.verdicts):
            self._known.add(_item(row))
            if row["label"] in FLAGGED:
                self._verdicts[_item(row)].append(row)
        for row in schemas.rows(report.items):
            self._keys[_item(row)] = (row["key_version"], row["item_key"], row["full_key"])
        for row in schemas.rows(report.evidence):
            self._evidence[_item(row)].append({**row, "shard": f"{alone}{row['shard']}"})

    def find(
        self, benchmark: str | None, split: str | None, item_id: str, policy: str | None
    ) -> Flagged | str:
        """The flagged item, or why there is none: unknown, in several places, or not flagged."""
        same = self._same(benchmark, split, item_id)
        if not same:
            return "there is no such item in the audit"
        if len(same) > 1:
            return f"it is in several places: {_places(same)}"
        item = same[0]
        verdicts = [row for row in self._verdicts[item] if policy in (None, row["policy"])]
        if not verdicts:
            return f"it is not flagged by {policy}" if policy else "it is not flagged"
        verdicts.sort(key=lambda row: str(row["policy"]))
        return Flagged(
            item,
            tuple(row["policy"] for row in verdicts),
            self._keys[item],
            tuple(verdicts),
            tuple(self._evidence[item]),
        )

    def way_out(
        self, benchmark: str | None, split: str | None, item_id: str
    ) -> Remedy | Advice | None:
        """What helps where `find` gives nothing; None where no item has that id."""
        same = self._same(benchmark, split, item_id)
        if not same:
            others = self._same(None, None, item_id)
            return Remedy.ITEM_IS_ELSEWHERE(places=_places(others)) if others else None
        if len(same) > 1:
            return Remedy.SAY_WHICH_ITEM
        flags = sorted(row["policy"] for row in self._verdicts[same[0]])
        return (
            Remedy.ITEM_IS_FLAGGED_BY(policies=", ".join(flags))
            if flags
            else Remedy.ONLY_FLAGGED_ARE_WAIVED
        )

    def _same(self, benchmark: str | None, split: str | None, item_id: str) -> list[ItemName]:
        return [
            item
            for item in sorted(self._known)
            if item[2] == item_id and benchmark in (None, item[0]) and split in (None, item[1])
        ]

    def explained(self, key: tuple[str, str, str, str], documents: Collection[str]) -> bool:
        """Whether these documents are all that the verdict (item, policy) can rest on."""
        found = self.find(*key)
        if isinstance(found, str):
            return False
        places = {(row["shard"], row["row"]) for row in found.evidence}
        n_documents = max(row["n_documents"] for row in found.verdicts)
        return set(found.documents) <= set(documents) and n_documents <= len(places)


def _places(items: Sequence[ItemName]) -> str:
    return ", ".join(f"{name}/{part}" if part else name for name, part, _ in items)


def _item(row: Row) -> ItemName:
    return ItemName.in_row(row)
