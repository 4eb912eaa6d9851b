"""Define benchmark items and their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from contam.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARTS = ("passage", "question", "choices", "answer")
"""The texts of an item, in the order every array over parts uses."""


class Named(Protocol):
    """Anything that names the item it is of."""

    @property
    def benchmark(self) -> str:
        """Name of the benchmark."""

    @property
    def split(self) -> str:
        """Its split, "" without one."""

    @property
    def item_id(self) -> str:
        """Id within the split."""


class ItemName(NamedTuple):
    """What identifies an item in every table and answer."""

    benchmark: str
    split: str
    item_id: str

    @classmethod
    def of(cls, item: Named) -> ItemName:
        """The name of an item, or of the item of a verdict."""
        return cls(item.benchmark, item.split, item.item_id)

    @classmethod
    def in_row(cls, row: Mapping[str, Any]) -> ItemName:
        """The name of the item that a row of a table is of."""
        return cls(row["benchmark"], row["split"], row["item_id"])

    @property
    def path(self) -> str:
        """The name in one word: `gsm8k/test/7`. What the id begins with is not said twice."""
        within = "/".join(part for part in self[:2] if part)
        return self.item_id if self.item_id.startswith(f"{within}/") else f"{within}/{self.item_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchItem:
    """One example of a benchmark.

    benchmark, split, item_id  together unique; `split` is "" when the source names none
    passage, answer            None when the item has none
    choices                    () for items without options, in the order of the source
    answer_index               0-based place of the right choice, None when unknown
    source, line               the file, and the 1-based line (or row, or list element) in it
    incomplete                 why the item is never called clean, with the way out; "" for most
    """

    benchmark: str
    split: str
    item_id: str
    question: str
    passage: str | None = None
    choices: tuple[str, ...] = ()
    answer: str | None = None
    answer_index: int | None = None
    source: str = ""
    line: int = 0
    incomplete: str = ""

    def part_texts(self) -> tuple[str, str, str, str]:
        """Texts of all `PARTS`, "" where absent; choices are joined by line feeds."""
        return self.passage or "", self.question, "\n".join(self.choices), self.answer or ""

    def part_text(self, part: str) -> str:
        """Text of one of `PARTS`, as in `part_texts`."""
        if part not in PARTS:
            raise InternalError(f"an item has no part {part!r}")
        return self.part_texts()[PARTS.index(part)]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row (or, with line 0, a whole file) that was seen and not taken, and why.

    kind    the reason without what it says of this row alone: rows are counted by it
    n_rows  rows that it stands for: 0 for a file of which no row was read
    """

    source: str
    line: int
    reason: str
    kind: str = ""
    n_rows: int = 1


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file that gave items.

    sha256  hex digest of the bytes on disk
    size    bytes on disk
    n_rows  rows seen, skipped ones included
    format  "jsonl", "json", "csv", "tsv", "parquet" or "arrow", with "+gzip" and the like
    fields  (part, field of the file) pairs: where each part was found
    unread  (field, share of the characters of all texts of the file) pairs: texts that are no
            part of any item and were not left out on purpose, the largest first
    left_out  fields of texts that were left out on purpose, by their name or as the user asked
    entry   the entry of the catalogue whose fields were taken, "" for none
    """

    path: str
    sha256: str
    size: int
    n_rows: int
    format: str
    fields: tuple[tuple[str, str], ...] = ()
    unread: tuple[tuple[str, float], ...] = ()
    left_out: tuple[str, ...] = ()
    entry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """All items of one benchmark name, in the order of their sources.

    duplicates  groups of indices into `items` whose question, choices (in any order) and
                passage are equal after normalisation; every group has two members or more
    """

    name: str
    items: Sequence[BenchItem]
    skipped: tuple[SkippedRow, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    duplicates: tuple[tuple[int, ...], ...] = ()
