"""Read CSV and TSV benchmarks, with a header or, like MMLU, without."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Literal

from contam.benchmark.field_names import is_question
from contam.benchmark.jsonrows import FileRows
from contam.errors import BenchmarkError, Names, Public, Remedy
from contam.files.csv_cells import large_cells

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contam.benchmark.fields import Row
    from contam.benchmark.mapping import FieldMap

Table = list[tuple[int, list[str]]]
Format = Literal["csv", "tsv"]

_LETTERS = "ABCDEFGHIJ"
_MIN_WIDTH = 4  # a question, two choices, a letter
_PAIR = 2  # a question, a number


def read_delimited(path: Path, data: bytes, kind: Format, field_map: FieldMap) -> FileRows:
    """Rows of a CSV or TSV file as name -> cell.

    Rows of question, choices and a letter are read without a header (MMLU). Else a first row with
    the name of a question field, or of a mapped field, is the header. Else two-column TSV of
    question and number is known (MGSM), and columns can be mapped by number, from 0. Raises
    BenchmarkError, with the line, for a broken quote, uneven rows or an unknown layout.
    """
    text = _decode(path, data)
    table = _tsv_table(path, text) if kind == "tsv" else _csv_table(path, text, field_map)
    if not table:
        return FileRows(kind, "line", [])
    names = _names_without_header(table, kind, field_map)
    if names is None:
        names, table = _names_of_header(path, table[0][1], field_map), table[1:]
    rows: list[tuple[int, Row]] = [
        (line, dict(zip(names, cells, strict=True))) for line, cells in table
    ]
    return FileRows(kind, "line", rows)


def _csv_table(path: Path, text: str, field_map: FieldMap) -> Table:
    """The table under the delimiter that finds a header in its first row, else under commas."""
    for delimiter in (",", ";", "\t"):
        try:
            first = _records(path, text, delimiter, limit=1)
        except BenchmarkError:
            continue  # quotes that end in the middle of a cell: not this delimiter
        if first and len(first[0][1]) > 1 and _is_header(first[0][1], field_map):
            return _even(path, _records(path, text, delimiter))
    return _even(path, _records(path, text, ","))


def _tsv_table(path: Path, text: str) -> Table:
    """TSV with quoted cells where that reads evenly, else with quotes as plain characters."""
    try:
        return _even(path, _records(path, text, "\t"))
    except BenchmarkError as quoted:
        try:
            return _even(path, _records(path, text, "\t", quoting=csv.QUOTE_NONE))
        except BenchmarkError:
            raise quoted from None


def _records(
    path: Path,
    text: str,
    delimiter: str,
    *,
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL,
    limit: int | None = None,
) -> Table:
    """Records that hold anything (at most `limit`), each with the line it starts on."""
    table: Table = []
    start = 1
    with large_cells(len(text) + 1):
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True
        )
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    table.append((start, cells))
                if limit is not None and len(table) == limit:
                    break
                start = reader.line_num + 1
        except csv.Error as error:
            raise BenchmarkError(
                "{}:{}: broken row ({})", path, start, Public(error),
                remedy=Remedy.LOOK_FOR_STRAY_QUOTE,
            ) from error  # fmt: skip
    return table


def _even(path: Path, table: Table) -> Table:
    """The table, after a check that every row has as many cells as the first."""
    for line, cells in table:
        if len(cells) != len(table[0][1]):
            raise BenchmarkError(
                "{}:{}: {} cells, but the first row has {}", path, line, len(cells),
                len(table[0][1]), remedy=Remedy.QUOTE_CELL,
            )  # fmt: skip
    return table


def _is_header(cells: Sequence[str], field_map: FieldMap) -> bool:
    return _names_mapped_field(cells, field_map) or any(map(is_question, cells))


def _names_mapped_field(cells: Sequence[str], field_map: FieldMap) -> bool:
    mapped = {name for names in field_map.fields.values() for name in names if not name.isdigit()}
    return any(cell.strip() in mapped for cell in cells)


def _names_of_header(path: Path, header: Sequence[str], field_map: FieldMap) -> list[str]:
    if not _is_header(header, field_map):
        first = Names([cell[:30] for cell in header[:8]])
        raise BenchmarkError(
            "{}: no field for the question in the first row ({})", path, first,
            remedy=Remedy.MAP_QUESTION_OR_COLUMN,
        )  # fmt: skip
    names = [cell.strip() for cell in header]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise BenchmarkError("{}: the header names {!r} twice", path, twice[0])
    return [name or f"column {place}" for place, name in enumerate(names)]


def _names_without_header(table: Table, kind: Format, field_map: FieldMap) -> list[str] | None:
    """Column names for the layouts that have no header, None when the first row must be one."""
    first = table[0][1]
    width = len(first)
    if any(name.isdigit() for name in field_map.fields.get("question", ())):
        return [str(place) for place in range(width)]
    if _names_mapped_field(first, field_map):
        return None
    last = {cells[-1].strip() for _, cells in table}
    if _MIN_WIDTH <= width <= len(_LETTERS) + 2 and last <= set(_LETTERS[: width - 2]):
        # Before any look for a header: a first question may well have a choice called "problem".
        return ["question", *_LETTERS[: width - 2], "answer"]
    if kind == "tsv" and width == _PAIR and all(map(_is_number, last)):
        return ["question", "answer"]
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ""))
    except ValueError:
        return False
    return True


def _decode(path: Path, data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        raise BenchmarkError(
            "{}:{}: not valid {}", path, line, Public(encoding.upper().removesuffix("-SIG")),
            remedy=Remedy.CONVERT_TO_UTF8,
        ) from error  # fmt: skip
