"""Collect items of many files into benchmarks: unique ids, duplicates, skipped rows."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contam.benchmark.items import Benchmark, SkippedRow, SourceFile
from contam.benchmark.paths import GIVE_ROWS
from contam.errors import BenchmarkError, Place, Plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.tables.records import Records

#: Items that become columns together.
_AT_ONCE: Final = 1 << 12
#: Fewer may well be alike.
_FEW: Final = 4
#: Where an item's row has what two items of one name must have in common, and where it is from.
_CONTENT: Final = slice(3, 8)
_FROM: Final = slice(8, 10)


class Parts(NamedTuple):
    """Texts of an item. `question` is "" when the row has none; see `BenchItem.incomplete`."""

    passage: str | None
    question: str
    choices: tuple[str, ...]
    answer: str | None
    answer_index: int | None
    incomplete: str = ""


class Collector:
    """Takes items in reading order. Not for use from several threads."""

    def __init__(self) -> None:
        # By (benchmark, split): of each id the number of its item, and how many have it made of
        # their content.
        self._numbers: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        self._n_same: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._rows: list[tuple[Any, ...]] = []
        self._full: list[Records] = []
        self._skipped: defaultdict[str, list[SkippedRow]] = defaultdict(list)
        self._sources: defaultdict[str, list[SourceFile]] = defaultdict(list)

    def add(
        self, benchmark: str, split: str, item_id: str, parts: Parts, source: str, line: int
    ) -> None:
        """Take an item; without an id it gets one from its content, with `#2` for a twin.

        Skips an exact repeat. Raises BenchmarkError for another item of the same id.
        """
        if not item_id:
            item_id = content_id(parts)
            same = self._n_same[benchmark, split]
            same[item_id] += 1
            if same[item_id] > 1:
                item_id = f"{item_id}#{same[item_id]}"
        row = (
            benchmark, split, item_id, parts.question, parts.passage, parts.choices, parts.answer,
            parts.answer_index, source, line, parts.incomplete,
        )  # fmt: skip
        new = len(self._full) * _AT_ONCE + len(self._rows)
        number = self._numbers[benchmark, split].setdefault(item_id, new)
        if number != new:
            self._refuse_other(self._row(number), row)
            return
        self._rows.append(row)
        if len(self._rows) == _AT_ONCE:
            self._fill()

    def add_item(self, item: BenchItem) -> None:
        """Take an item that has an id; see `add`."""
        parts = Parts(*(getattr(item, name) for name in Parts._fields))
        self.add(item.benchmark, item.split, item.item_id, parts, item.source, item.line)

    def _refuse_other(self, known: Sequence[Any], row: Sequence[Any]) -> None:
        """Skip a row whose name was given before if it says the same, else raise BenchmarkError."""
        benchmark, item_id = row[0], row[2]
        (first_source, first_line), (source, line) = known[_FROM], row[_FROM]
        if known[_CONTENT] == row[_CONTENT]:
            reason = f"repeats item {item_id!r} of {first_source}:{first_line}"
            self.skip(benchmark, SkippedRow(source, line, reason, "repeated item"))
            return
        raise BenchmarkError(
            "{}:{}: id {!r} was given to another item at {}:{}",
            Place(source),
            line,
            item_id,
            Place(first_source),
            first_line,
            hint="--map id=FIELD names another id field, --map id= makes ids from the content",
        )

    def _row(self, number: int) -> tuple[Any, ...]:
        """The values of an item that was taken."""
        chunk, at = divmod(number, _AT_ONCE)
        if chunk == len(self._full):
            return self._rows[at]
        from contam.benchmark.item_table import ItemTable, values_of

        return values_of(ItemTable(self._full[chunk])[at])

    def _fill(self) -> None:
        """Turn the rows into columns."""
        from contam.benchmark.item_table import COLUMNS  # loads what clients do without
        from contam.tables.records import Records

        self._full.append(Records.of(self._rows, COLUMNS))
        self._rows = []

    def skip(self, benchmark: str, row: SkippedRow) -> None:
        """Record a row that was not taken."""
        self._skipped[benchmark].append(row)

    def add_source(self, benchmarks: Iterable[str], source: SourceFile) -> None:
        """Record a file that gave rows to these benchmarks."""
        for benchmark in benchmarks:
            self._sources[benchmark].append(source)

    def finish(self, skipped_files: Sequence[SkippedRow]) -> tuple[Benchmark, ...]:
        """Benchmarks by name. Raises BenchmarkError when one, or all together, came out empty.

        Skipped files are listed with the first benchmark.
        """
        taken = {benchmark for benchmark, _ in self._numbers}
        for name, rows in self._skipped.items():
            if name not in taken:
                first = rows[0]
                at = f"{first.source}:{first.line}" if first.line else first.source
                raise BenchmarkError(
                    "benchmark {!r} has no items: everything in it was skipped ({}: {})",
                    name,
                    Place(at),
                    Plain(first.reason),
                    hint="look at the first of them, or map the fields with --map",
                )
        if not taken:
            passed = skipped_files[:3]
            template = "; ".join(["{}: {}"] * len(passed))
            facts = [fact for row in passed for fact in (Place(row.source), Plain(row.reason))]
            raise BenchmarkError(
                "the benchmark has no items" + (f" ({template})" if passed else ""),
                *facts,
                hint=GIVE_ROWS,
            )
        self._skipped[min(taken)].extend(skipped_files)
        self._fill()
        self._numbers.clear()
        self._n_same.clear()
        return self._benchmarks()

    def _benchmarks(self) -> tuple[Benchmark, ...]:
        import numpy as np  # no client makes keys

        from contam.benchmark.item_table import ItemTable
        from contam.benchmark.keys import KEYS, equal_groups
        from contam.tables.records import Records

        whole = ItemTable(Records.joined(self._full)).with_keys()
        self._full.clear()
        names, codes = whole.codes("benchmark")
        rows = {name: np.flatnonzero(codes == at) for at, name in enumerate(names)}
        duplicates: dict[str, tuple[tuple[int, ...], ...]] = {}
        reasons: dict[int, str] = {}
        for name, places in rows.items():
            items = whole.take(places)
            keys = items.key_digests()
            groups = equal_groups(keys[:, KEYS.index("item_key")])
            duplicates[name] = tuple(tuple(group.tolist()) for group in groups)
            answers = keys[:, KEYS.index("answer_key")]
            if alike := _alike(answers, duplicates[name], self._sources[name]):
                why = (
                    f"{len(alike)} of {len(items)} items differ in no text that is read"
                    " (--map question=FIELD+FIELD names what tells them apart)"
                )
                known = items.column("incomplete")
                reasons |= {int(places[at]): why for at in alike if not known[at]}
        if reasons:
            whole = whole.with_reasons(reasons)
        return tuple(
            Benchmark(
                name=name,
                items=whole.take(rows[name]),
                skipped=tuple(self._skipped[name]),
                sources=tuple(self._sources[name]),
                duplicates=duplicates[name],
            )
            for name in sorted(names)
        )


def _alike(
    answers: NDArray[np.uint8], groups: Sequence[Sequence[int]], sources: Sequence[SourceFile]
) -> list[int]:
    """Items that are a template and nothing else, where that is most of a benchmark.

    Copies of one item are no template: they are few, or have one answer and no other text.

    answers  uint8[n, 16], keys of the items' answers;  groups  those that are duplicates
    """
    inside = [at for group in groups for at in group]
    if len(answers) < _FEW or 2 * len(inside) <= len(answers):
        return []
    differ = any((answers[group[0]] != answers[list(group)]).any() for group in groups)
    most = 2 * max(map(len, groups)) > len(answers)
    left_out = any(source.left_out or source.unread for source in sources)
    many = len(inside) >= _FEW * len(groups)
    return inside if most or (many and (differ or left_out)) else []


def content_id(parts: Parts) -> str:
    """Id of an item whose source gives none: 16 hex digits over its unchanged texts."""
    texts = (parts.passage or "", parts.question, "\x1e".join(parts.choices), parts.answer or "")
    return hashlib.sha256("\x1d".join(texts).encode()).hexdigest()[:16]
