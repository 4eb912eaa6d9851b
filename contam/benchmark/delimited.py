"""Read CSV and TSV benchmarks, with a header or, like MMLU, without."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Literal

from contam.benchmark.jsonrows import COMMENT_BEFORE, FileRows
from contam.benchmark.mapping import is_question, is_usual
from contam.benchmark.paths import fault
from contam.errors import BenchmarkError, Names, Public

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contam.benchmark.fields import Row
    from contam.benchmark.mapping import FieldMap

Table = list[tuple[int, list[str]]]
Format = Literal["csv", "tsv"]

# The module's own limit is too low for texts.
csv.field_size_limit(128 << 20)

_LETTERS = "ABCDEFGHIJ"
_MIN_WIDTH = 4  # a question, two choices, a letter
_PAIR = 2  # a question, a number
_TITLE_ROWS = 10  # at most, above a header
_SEVERAL = 2  # usual names that make a header


def read_delimited(path: Path, data: bytes, kind: Format, field_map: FieldMap) -> FileRows:
    """Rows of a CSV or TSV file as name -> cell.

    Rows of question, choices and a letter are read without a header (MMLU). Else a first row with
    the name of a question field, or of a mapped field, is the header. Else two-column TSV of
    question and number is known (MGSM), and columns can be mapped by number, from 0. Raises
    BenchmarkError, with the line, for a broken quote, uneven rows or an unknown layout.
    """
    text = _decode(path, data)
    table = (
        _tsv_table(path, text, field_map) if kind == "tsv" else _csv_table(path, text, field_map)
    )
    if not table:
        return FileRows(kind, "line", [])
    table, before = _below_title(table, field_map)
    table = _even(path, table)
    names = _names_without_header(table, kind, field_map)
    if names is None:
        names, table = _names_of_header(path, table[0][1], field_map), table[1:]
    rows: list[tuple[int, Row]] = [
        (line, dict(zip(names, cells, strict=True))) for line, cells in table
    ]
    return FileRows(kind, "line", rows, before)


def even_rows(path: Path, data: bytes) -> Table:
    """Rows under the delimiter that the first line has most of, with the line each starts on.

    Raises BenchmarkError, with the line, for a broken quote and uneven rows.
    """
    text = _decode(path, data)
    return _even(path, _records(path, text, _most(text)))


def _most(text: str) -> str:
    return max(",;\t", key=text.partition("\n")[0].count)


def _below_title(table: Table, field_map: FieldMap) -> tuple[Table, tuple[tuple[int, str], ...]]:
    """The table from its header on, where only a comment or a title stands above that."""
    for at, (_, cells) in enumerate(table[:_TITLE_ROWS]):
        if at and len(cells) > 1 and _is_header(cells, field_map):
            return table[at:], tuple((line, "a title above the header") for line, _ in table[:at])
        if sum(bool(cell.strip()) for cell in cells) > 1 and not cells[0].startswith("#"):
            # Without a header, too, a comment of one cell is no row of several.
            if not all(row[0].startswith("#") and not any(row[1:]) for _, row in table[:at]):
                break
            return table[at:], tuple((line, COMMENT_BEFORE) for line, _ in table[:at])
    return table, ()


def _csv_table(path: Path, text: str, field_map: FieldMap) -> Table:
    """The table under the delimiter that finds a header in its first row.

    Else under commas, or under that of a first row without any.
    """
    for delimiter in (",", ";", "\t"):
        try:
            first = _records(path, text, delimiter, limit=_TITLE_ROWS)
        except BenchmarkError:
            continue  # quotes that end in the middle of a cell: not this delimiter
        first, _ = _below_title(first, field_map)
        if first and len(first[0][1]) > 1 and _is_header(first[0][1], field_map):
            return _records(path, text, delimiter)
    return _records(path, text, "," if "," in text.partition("\n")[0] else _most(text))


def _tsv_table(path: Path, text: str, field_map: FieldMap) -> Table:
    """TSV with quoted cells where that reads evenly, else with quotes as plain characters."""
    try:
        quoted_table = _records(path, text, "\t")
        _even(path, _below_title(quoted_table, field_map)[0])
    except BenchmarkError as quoted:
        try:
            plain_table = _records(path, text, "\t", quoting=csv.QUOTE_NONE)
            _even(path, _below_title(plain_table, field_map)[0])
        except BenchmarkError:
            raise quoted from None
        return plain_table
    return quoted_table


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
        hint = "look for a stray quotation mark"
        raise fault(path, start, "broken row ({})", Public(error), hint=hint) from error
    return table


def _even(path: Path, table: Table) -> Table:
    """The table, after a check that every row has as many cells as the first."""
    hint = "a cell with a delimiter or line break must be quoted"
    for line, cells in table:
        if len(cells) != (n := len(table[0][1])):
            fact = "{} cells, but the first row has {}"
            raise fault(path, line, fact, len(cells), n, hint=hint)
    return table


def _is_header(cells: Sequence[str], field_map: FieldMap) -> bool:
    usual = sum(map(is_usual, cells))
    return (
        _names_mapped_field(cells, field_map) or any(map(is_question, cells)) or (usual >= _SEVERAL)
    )


def _names_mapped_field(cells: Sequence[str], field_map: FieldMap) -> bool:
    mapped = {name for names in field_map.fields.values() for name in names if not name.isdigit()}
    return any(cell.strip() in mapped for cell in cells)


def _names_of_header(path: Path, header: Sequence[str], field_map: FieldMap) -> list[str]:
    if not _is_header(header, field_map):
        first = Names([cell[:30] for cell in header[:8]])
        raise BenchmarkError(
            "{}: no field for the question in the first row ({})", path, first,
            hint="name it, for example --map question=FIELD; without a header --map question=0",
        )  # fmt: skip
    names = [cell.strip() for cell in header]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise BenchmarkError(
            "{}: the header names {!r} twice", path, twice[0],
            hint="remove one of the two, or name them apart",
        )  # fmt: skip
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
        name = Public(encoding.upper().removesuffix("-SIG"))
        raise fault(path, line, "not valid {}", name, hint="convert the file to UTF-8") from error
