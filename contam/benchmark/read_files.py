"""Read benchmark files into benchmarks."""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from contam.benchmark import catalogue
from contam.benchmark.collector import Collector
from contam.benchmark.delimited import read_delimited
from contam.benchmark.fields import FieldPlan, Row, RowError, get, make_plan
from contam.benchmark.items import Benchmark, SkippedRow, SourceFile
from contam.benchmark.jsonrows import (
    NoItemsHereError,
    columns_as_rows,
    read_json,
    unfolded,
)
from contam.benchmark.looks import Look, unread_shares
from contam.benchmark.mapping import FieldMap, check_mapping, is_usual, resolve
from contam.benchmark.named import asked_for, sources_of
from contam.benchmark.paths import BenchmarkFile, find_sources, read_unpacked, refuse_pointer
from contam.benchmark.rows import FIELD_PAIRS, DeconFolder, is_decon, read_parts
from contam.benchmark.values import as_label
from contam.errors import BenchmarkError, Names, Place, Plain, Public, Statement
from contam.facts import counted, statements
from contam.files.addresses import Address
from contam.files.disk import difference
from contam.files.listed import state_at
from contam.files.single import open_file, read_file, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.benchmark.catalogue import Entry


def read_benchmarks(
    paths: Sequence[str | Path | BenchmarkFile],
    *,
    mapping: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    name: str | None = None,
    split: str | None = None,
    secret: bool = False,
    include_path: Sequence[str] = (),
) -> tuple[Benchmark, ...]:
    """Read files, folders and globs as benchmarks, one for every benchmark name met, by name.

    paths    JSONL, JSON, CSV, TSV (plain or compressed), Parquet, Arrow, folders of them, and
             folders saved by Hugging Face `datasets`; names as in `contam.benchmark.named`; or
             files in memory
    mapping  part -> field where the usual names do not fit: passage, question, choices, answer,
             answer_index, id, benchmark, split; dotted paths reach into records, `a+b` joins
             fields, "" means that there is none
    ignore   fields whose text is no part of an item: it is neither read nor missed
    name     benchmark name for all rows, instead of the one rows or paths state
    split    takes only the rows of this split where rows or data sets state theirs (the others
             are counted as skipped), and names the split of rows that state none
    secret   keeps the content of the files out of error messages
    include_path  folders of tasks of one's own for lm-evaluation-harness

    Raises BenchmarkError, with file and line, for anything that cannot be read as items, for two
    items under one id, and for a benchmark without items; UsageError for a wrong mapping.
    """
    if secret:
        try:
            return read_benchmarks(
                paths,
                mapping=mapping,
                ignore=ignore,
                name=name,
                split=split,
                include_path=include_path,
            )
        except BenchmarkError as error:
            # Not chained: the message of the cause quotes, too.
            raise error.without_quotes() from None
    field_map = check_mapping(mapping, ignore)
    asked = asked_for(paths)
    skipped = [SkippedRow(name, 0, "gated: to be named itself", n_rows=0) for name in asked.gated]
    found: dict[str, Benchmark] = {}
    for each in asked.named:
        reader = _FileReader(field_map, name, split)
        try:
            sources, others = sources_of(each, split, include_path)
            read = _read(reader, sources, others)
        except BenchmarkError as error:
            if not asked.tolerant:
                raise
            skipped.append(SkippedRow(str(each), 0, error.message, n_rows=0))
            continue
        _add(found, read)
    if asked.paths or not asked.named:
        _add(found, _read(_FileReader(field_map, name, split), *find_sources(asked.paths)))
    if not found:
        raise BenchmarkError(
            "none of {} benchmarks could be had; the first: {}",
            len(asked.named), Plain(skipped[len(asked.gated)].reason),
            hint="see whether this machine reaches the Hub",
        )  # fmt: skip
    first, *rest = (found[key] for key in sorted(found))
    return replace(first, skipped=(*first.skipped, *skipped)), *rest


def _read(
    reader: _FileReader, sources: Sequence[BenchmarkFile], others: Sequence[SkippedRow]
) -> tuple[Benchmark, ...]:
    """Read files with one reader; others  files that were skipped already."""
    skipped = list(others)
    for source in sources:
        try:
            reader.read(source)
        except NoItemsHereError as error:
            if source.explicit:
                raise
            skipped.append(SkippedRow(source.called, 0, error.reason, n_rows=0))
    return reader.finish(skipped)


def _add(found: dict[str, Benchmark], read: Iterable[Benchmark]) -> None:
    for benchmark in read:
        if benchmark.name in found:
            raise BenchmarkError(
                "two of the benchmarks that were asked for are called {!r}", benchmark.name,
                hint="name one of them, or call files otherwise: --name NAME in a call of its own",
            )  # fmt: skip
        found[benchmark.name] = benchmark


@dataclass(slots=True)
class _FileState:
    """What was learned while reading one file."""

    source: BenchmarkFile
    look: Look
    fields: FieldMap
    entry: Entry | None = None
    unit: str = "line"
    plans: dict[tuple[str, ...], FieldPlan] = field(default_factory=dict)
    benchmarks: dict[str, None] = field(default_factory=dict)
    other_splits: Counter[tuple[str, str]] = field(default_factory=Counter)
    decon: bool = False
    n_rows: int = 0

    def at(self, place: int) -> str:
        """The place of a row, as error messages name it."""
        path = self.source.called
        return f"{path}:{place}" if self.unit == "line" else f"{path}, row {place}"

    def go_by(self, entry: Entry) -> None:
        """Take the fields of an entry of the catalogue."""
        self.entry = entry
        self.fields = replace(entry.fields, ignored=self.fields.ignored)

    def hint(self) -> tuple[Statement, ...]:
        """What is to be said of the entry where its fields do not fit."""
        if self.entry is None:
            return ()
        said = ", ".join(f"{part}={name}" for part, name in self.entry.mapping.items())
        return statements(
            Statement("the entry {} reads {}; --map names other fields", self.entry.name, said)
        )


class _FileReader:
    """One call of `read_benchmarks`."""

    def __init__(self, field_map: FieldMap, name: str | None, split: str | None) -> None:
        self._field_map = field_map
        self._name = name
        self._split = split
        self._collector = Collector()
        self._folder = DeconFolder()

    def read(self, source: BenchmarkFile) -> None:
        """Take all rows of one file."""
        state = _FileState(source, Look(), self._field_map)
        if source.entry and not self._field_map.fields:
            state.go_by(source.entry)
        state.look = Look.for_names(state.fields)
        if source.data is not None:
            data, state.unit = source.data, "row"
            format_name, digest, size = source.family, hashlib.sha256(data).hexdigest(), len(data)
            if source.family == "json":
                self._take(state, read_json(source.path, data, state.fields).rows)
            else:
                self._take(state, _TableRows(source))
        elif source.family in ("parquet", "arrow"):
            state.unit = "row"
            refuse_pointer(source.path)
            format_name = source.family
            with _unchanged(source.path) as (digest, size):
                self._take(state, _TableRows(source))
        else:
            file = read_unpacked(source.path)
            if source.family == "json":
                found = read_json(source.path, file.data, state.fields)
            else:
                kind: Literal["csv", "tsv"] = "tsv" if source.family == "tsv" else "csv"
                found = read_delimited(source.path, file.data, kind, state.fields)
            state.unit = found.unit
            format_name = found.format + (f"+{file.codec}" if file.codec else "")
            digest, size = file.sha256, file.size
            self._take(state, found.rows)
            for benchmark in state.benchmarks:
                for line, what in found.before:
                    self._collector.skip(benchmark, SkippedRow(source.called, line, what))
        self._check_named_fields(state)
        plans = tuple(state.plans.values())
        fields = dict.fromkeys(pair for plan in plans for pair in plan.described())
        if state.decon:
            fields.update(dict.fromkeys(FIELD_PAIRS))
        self._collector.add_source(
            state.benchmarks,
            SourceFile(
                path=source.called,
                sha256=digest,
                size=size,
                n_rows=state.n_rows,
                format=format_name,
                fields=tuple(fields),
                unread=unread_shares(plans, state.look),
                left_out=tuple({name: None for plan in plans for name in plan.left_out}),
                entry=state.entry.name if state.entry else "",
            ),
        )

    def finish(self, skipped_files: Sequence[SkippedRow]) -> tuple[Benchmark, ...]:
        """All benchmarks, after the items of reference files have been put together."""
        for item, skipped in self._folder.finish():
            self._collector.add_item(item)
            for row in skipped:
                self._collector.skip(item.benchmark, row)
        return self._collector.finish(skipped_files)

    def _take(self, state: _FileState, rows: Iterable[tuple[int, Row]]) -> None:
        """Take the rows, after a look at all of them."""
        only: Row | None = None
        for place, row in rows:
            state.look.add(row)
            only, first = row, place
        if only is not None and state.look.n_rows == 1 and not is_decon(only):
            try:
                table = columns_as_rows(only)
            except RowError as error:
                raise _at(state, first, error) from error
            if table:
                state.look = Look.for_names(state.fields)
                state.unit, rows = "row", list(enumerate(table, 1))
                for _, row in rows:
                    state.look.add(row)
        for place, row in rows:
            state.n_rows += 1
            try:
                self._take_row(state, place, row)
            except RowError as error:
                raise _at(state, place, error) from error
        if state.n_rows == 0:
            what = "file" if state.source.data is None else "table"
            raise NoItemsHereError(
                state.source.path,
                f"the {what} holds no rows",
                hint="check that the files are complete",
            )
        for (benchmark, own), n_rows in state.other_splits.items():
            reason = f"{counted(n_rows, 'row')} of split {own!r}, not {self._split!r}"
            path = state.source.called
            self._collector.skip(benchmark, SkippedRow(path, 0, reason, "another split", n_rows))

    def _entry(self, state: _FileState, row: Row) -> Entry | None:
        """The entry by which rows of these columns are read: the one asked for, or one that fits.

        None where the user says how to read the file.
        """
        if self._field_map.fields:
            return None
        if state.source.entry:
            return state.source.entry
        if state.source.data is not None or isinstance(state.source.path, Address):
            return None
        found = catalogue.fitting(state.source.path, row)
        state.entry = state.entry or found
        return found

    def _take_row(self, state: _FileState, place: int, row: Row) -> None:
        decon = not state.fields.fields and is_decon(row)
        plan = None if decon else self._plan(state, row)
        benchmark, own_split = self._names(state, row, plan)
        naming = state.source.naming
        if not own_split and naming.split_sure:
            own_split = naming.split
        if self._split and own_split and own_split != self._split:
            state.other_splits[benchmark, own_split] += 1
            return
        state.benchmarks.setdefault(benchmark)
        split = own_split or self._split or naming.split
        source = state.source.called
        if plan is None:
            state.decon = True
            if not self._folder.add(row, benchmark, split, source, place):
                self._collector.skip(benchmark, SkippedRow(source, place, "empty question"))
            return
        parts = read_parts(row, plan)
        if not parts.question:
            self._collector.skip(benchmark, SkippedRow(source, place, "empty question"))
            return
        item_id = as_label(get(row, plan.item_id), "id") if plan.item_id else ""
        if item_id and state.source.config:
            item_id = f"{state.source.config}/{item_id}"
        self._collector.add(benchmark, split, item_id, parts, source, place)

    def _names(self, state: _FileState, row: Row, plan: FieldPlan | None) -> tuple[str, str]:
        """Benchmark of a row, and the split that the row itself states or ""."""
        if plan is None:
            benchmark = as_label(row.get("eval_key", row.get("eval_name")), "eval_key")
            split = as_label(row.get("split"), "split")
        else:
            benchmark = as_label(get(row, plan.benchmark), "benchmark") if plan.benchmark else ""
            split = as_label(get(row, plan.split), "split") if plan.split else ""
        return self._name or benchmark or state.source.naming.benchmark, split

    def _plan(self, state: _FileState, row: Row) -> FieldPlan:
        columns = tuple(row)
        plan = state.plans.get(columns)
        if plan is None:
            fields = state.fields
            if (entry := self._entry(state, row)) is not None:
                ignored = (*fields.ignored, *entry.left_out(columns))
                fields = replace(entry.fields, ignored=ignored)
            plan = state.plans[columns] = make_plan(columns, fields, state.look)
        return plan

    def _check_named_fields(self, state: _FileState) -> None:
        """A named field that no row has is a slip of the user's, not an absent part."""
        seen = {column for columns in state.plans for column in columns}
        named = [(target, name) for target, some in state.fields.fields.items() for name in some]
        named += [("--ignore", name) for name in self._field_map.ignored]
        inner = [path for column in state.look.columns.values() for path in column.paths]
        for target, name in named:
            root, *below = resolve(name, seen)
            if root not in seen or (below and not state.look.has(name)):
                fields = sorted({*seen, *(path for path in inner if "." in path)})
                raise BenchmarkError(
                    "{}: no field {!r} for the {}",
                    Place(state.source.called), name, Public(target),
                    hint=(Statement("fields there: {}", Names(fields)), *state.hint()),
                )  # fmt: skip


def _at(state: _FileState, place: int, error: RowError) -> BenchmarkError:
    hints = (*error.hints, *state.hint())
    return BenchmarkError("{}: {}", Place(state.at(place)), error.statement, hint=hints)


@dataclass(frozen=True, slots=True)
class _TableRows:
    """Rows of a Parquet or Arrow file, without images and embeddings."""

    source: BenchmarkFile

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        # Here, not above: reading only text formats must not load the table library.
        from contam.tables.input_tables import arrow_rows, parquet_rows

        source = self.source
        read = parquet_rows if source.family == "parquet" else arrow_rows
        with reading(source.path, BenchmarkError):
            # Tables are read here and there; of an object that would be a request each time.
            data = read_file(source.path) if isinstance(source.path, Address) else source.data
            rows = read(source.path, _without_bulk, data)
            yield from enumerate((one for row in rows for one in unfolded(row)), 1)


def _without_bulk(columns: Mapping[str, bool]) -> Sequence[str]:
    return [name for name, is_bulk in columns.items() if not is_bulk or is_usual(name)]


@contextmanager
def _unchanged(path: Path) -> Iterator[tuple[str, int]]:
    """SHA-256 and size of a file. Raises BenchmarkError where it is another when the block ends."""
    with reading(path, BenchmarkError), open_file(path) as file:
        listed = state_at(str(path))
        digest, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
    yield digest, size
    with reading(path, BenchmarkError):
        now = state_at(str(path))
    if fact := difference(listed, now):
        raise BenchmarkError(
            "{}: {} while it was read", path, Public(fact), hint="let nobody write to it meanwhile"
        )
