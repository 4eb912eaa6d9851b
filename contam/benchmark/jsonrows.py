"""Read JSON benchmarks: lines, a list, or a record that holds a list.

Rows are hashed as lm-eval hashes its documents.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from contam.benchmark.fields import RowError
from contam.benchmark.mapping import FieldMap, is_question, plain
from contam.benchmark.paths import GIVE_ROWS, fault, read_unpacked
from contam.errors import BenchmarkError, Hint, Place, Public, Statement
from contam.files.doubled_keys import doubled_key, may_repeat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

    from contam.benchmark.fields import Row


CONTAINERS = ("examples", "data", "items", "questions", "rows", "instances", "samples", "example")
"""Keys under which a JSON object may hold its list of items, in any case."""

_INSIDE = ("paragraphs", "qas", "qa_pairs", "questions")
"""Keys of a row under which several questions about it may stand, each a record."""

#: Rows of shorter texts are held: as values of Python they take several times the size.
_LONG_BYTES: Final = 64 << 20
_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = (b"#", b"//")
COMMENT_BEFORE = "a comment before the data"

BOM = b"\xef\xbb\xbf"
"""What some programs write in front of UTF-8."""


class NoItemsHereError(BenchmarkError):
    """A valid file without items, such as a manifest next to a benchmark.

    An error when the user named the file; listed as skipped when it was found in a folder.
    """

    def __init__(self, path: Path, reason: str, *, hint: Hint) -> None:
        super().__init__("{}: {}", path, Public(reason), hint=hint)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of one file with their 1-based places; to read them may raise BenchmarkError.

    format  "jsonl", "json", "csv", "tsv", "parquet" or "arrow"
    unit    what a place counts: physical lines, or rows
    before  lines before the data that are none of it, and what they are
    """

    format: str
    unit: Literal["line", "row"]
    rows: Iterable[tuple[int, Row]]
    before: tuple[tuple[int, str], ...] = ()


def read_json(path: Path, data: bytes, field_map: FieldMap) -> FileRows:
    """Rows of a JSON or JSON-lines file; the content decides which it is.

    A `.json` file of one object is one item if it has a field for the question, usual or mapped.

    Raises BenchmarkError, with the line, for anything that is not JSON objects in UTF-8, and
    NoItemsHereError for one object without a list of items.
    """
    data, before = _without_comments(data.removeprefix(BOM))
    try:
        found = _read(path, data, field_map)
    except RowError as error:
        raise BenchmarkError("{}: {}", path, error.statement) from error
    return replace(found, before=before) if before else found


def _read(path: Path, data: bytes, field_map: FieldMap) -> FileRows:
    if data.lstrip()[:1] == b"[":
        return FileRows("json", "row", _checked_list(path, _parse(path, data)))
    first = list(islice(_split(BytesIO(data)), 2))
    if first and not is_whole(first[0][1]):
        if is_whole(data):
            return _of_object(path, _parse(path, data), field_map)
        if len(rows := _one_after_another(path, data)) > 1:
            return FileRows("json", "row", _checked_list(path, rows))
    if len(first) == 1:
        only = _parse(path, first[0][1], first[0][0])
        if isinstance(only, dict) and not _is_item(path, only, _mapped(field_map)):
            return _of_object(path, only, field_map)
    lines = Lines(path, data)
    return FileRows("jsonl", "line", lines if len(data) >= _LONG_BYTES else [*lines])


def _one_after_another(path: Path, data: bytes) -> list[object]:
    """JSON values that follow each other in any layout; [] where that is not all of the data."""
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        return []
    found: list[object] = []
    begin = 0
    while begin < len(text):
        try:
            _, end = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return []
        found.append(_parse(path, text[begin:end].encode(), 1 + text.count("\n", 0, begin)))
        begin = _BLANK.match(text, end).end()  # type: ignore[union-attr]  # it fits anywhere
    return found


def _without_comments(data: bytes) -> tuple[bytes, tuple[tuple[int, str], ...]]:
    """The data with nothing in the comment lines before them, and the places of these."""
    found = []
    begin = 0
    for line, text in _split(BytesIO(data)):
        if not text.lstrip().startswith(_COMMENT):
            break
        found.append((line, COMMENT_BEFORE))
        begin = data.index(text, begin) + len(text)
    return (b"\n" * data.count(b"\n", 0, begin) + data[begin:] if found else data), tuple(found)


def _split(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, and their numbers."""
    for line, text in enumerate(file, 1):
        data = text.removeprefix(BOM) if line == 1 else text
        if data.strip():
            yield line, data.removesuffix(b"\n")


@dataclass(frozen=True, slots=True)
class Lines:
    """The rows of JSON lines one by one, each time they are asked for, with their lines."""

    path: Path
    data: bytes

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        """Raises BenchmarkError for what is no JSON object."""
        for line, text in _split(BytesIO(self.data)):
            for row in unfolded(row_of(self.path, text, line)):
                yield line, row


def row_of(path: Path, text: bytes, line: int) -> Row:
    """The row that a line holds. Raises BenchmarkError for what is no JSON object."""
    row = _parse(path, text, line)
    if not isinstance(row, dict):
        hint = "in JSON lines every line is one item"
        raise fault(path, line, "expected a JSON object, found {}", Public(_kind(row)), hint=hint)
    return row


def _of_object(path: Path, value: object, field_map: FieldMap) -> FileRows:
    if not isinstance(value, dict):
        raise BenchmarkError("{}: expected a list of items, found {}", path, Public(_kind(value)))
    mapped = _mapped(field_map)
    if _is_item(path, value, mapped):
        return FileRows("json", "row", _checked_list(path, [value]))
    if found := _containers(value, mapped):
        inner = value[found[0]]
        rows = columns_as_rows(inner) if isinstance(inner, dict) else inner
        if len(found) > 1:
            rows = [{"split": name, **row} for name in found for row in value[name]]
        return FileRows("json", "row", _checked_list(path, rows))
    if _is_keyed(value, mapped):
        named = [{"id": name, **row} for name, row in value.items()]
        return FileRows("json", "row", _checked_list(path, named))
    raise NoItemsHereError(
        path, "a JSON object without a list of items",
        hint=Statement(
            "the list is looked for under {}, or by a field of its rows: --map question=FIELD",
            Public(", ".join(CONTAINERS)),
        ),
    )  # fmt: skip


def _mapped(field_map: FieldMap) -> frozenset[str]:
    """The top-level fields of a row that the user names for the question."""
    return frozenset(name.partition(".")[0] for name in field_map.fields.get("question", ()))


def _is_item(path: Path, value: Row, mapped: frozenset[str]) -> bool:
    """Whether an object is an item, and no file of them."""
    if mapped:
        inner = [value[name] for name in _containers(value, mapped)]
        if mapped.isdisjoint(value):
            return not (inner or _is_keyed(value, mapped))
        rows = [row for some in inner for row in (some if isinstance(some, list) else [some])]
        return all(not isinstance(row, dict) or mapped.isdisjoint(row) for row in rows)
    # Folders hold manifests as .json; a lone row of .jsonl with unknown fields is a real problem.
    named = any(map(is_question, value)) or ".json" not in [one.lower() for one in path.suffixes]
    return named and not _containers(value)


def _containers(value: Mapping[str, Any], mapped: frozenset[str] = frozenset()) -> list[str]:
    """The keys that hold the rows: lists of records that ask, else one of a usual name."""
    asking = [
        name
        for name, inner in value.items()
        if isinstance(inner, list) and inner and all(_asks(row, mapped) for row in inner)
    ]
    usual = {plain(name): name for name in reversed([*value])}
    for key in CONTAINERS:
        inner = value.get(usual.get(key, ""))
        if isinstance(inner, list) or (isinstance(inner, dict) and columns_as_rows(inner)):
            return asking if usual[key] in asking else [usual[key]]
    return [] if any(is_question(name) or name in mapped for name in value) else asking


def _is_keyed(value: Mapping[str, Any], mapped: frozenset[str]) -> bool:
    """Whether an object holds rows, each under its id."""
    rows = list(value.values())
    return (
        bool(rows)
        and all(isinstance(row, dict) for row in rows)
        and any(
            is_question(name) or name in mapped
            for row in rows
            for one in unfolded(row)
            for name in one
        )
    )


def columns_as_rows(row: Mapping[str, object]) -> list[Row]:
    """The rows of a table that is kept column by column; [] for any other record.

    Raises RowError for columns of different lengths.
    """
    cells = list(row.values())
    keyed = [cell for cell in cells if isinstance(cell, dict)]
    if keyed and len(keyed) == len(cells) and all(cell.keys() == keyed[0].keys() for cell in keyed):
        if not any(map(is_question, row)):
            return []
        cells = [list(cell.values()) for cell in keyed]
    asked = [
        cell
        for name, cell in zip(row, cells, strict=True)
        if is_question(name) and isinstance(cell, list) and all(isinstance(c, str) for c in cell)
    ]
    lists = [cell for cell in cells if isinstance(cell, list)]
    if not asked or len(lists) < len(cells) or len(cells) == 1:
        return []
    length = {name: len(cell) for name, cell in zip(row, lists, strict=True)}
    if len(set(length.values())) > 1:
        short, long = min(length, key=length.__getitem__), max(length, key=length.__getitem__)
        raise RowError(
            "its column {!r} is a list of {} rows, {!r} of {}",
            short, length[short], long, length[long],
        )  # fmt: skip
    return [dict(zip(row, some, strict=True)) for some in zip(*lists, strict=True)]


def _checked_list(path: Path, value: object) -> list[tuple[int, Row]]:
    if not isinstance(value, list):
        raise BenchmarkError("{}: expected a list of items, found {}", path, Public(_kind(value)))
    if value and not any(isinstance(row, dict) for row in value):
        raise NoItemsHereError(
            path, f"a list of which no element is an object, but {_kind(value[0])}",
            hint=GIVE_ROWS,
        )  # fmt: skip
    for place, row in enumerate(value, 1):
        if not isinstance(row, dict):
            raise BenchmarkError(
                "{}, row {}: expected an object, found {}", path, place, Public(_kind(row))
            )
    return list(enumerate((inner for row in value for inner in unfolded(row)), 1))


def unfolded(row: Row) -> Iterator[Row]:
    """A row, or one for each question that it holds, as SQuAD and DROP keep them."""
    for name in _INSIDE:
        inner = row.get(name)
        if not isinstance(inner, list) or not inner or not all(map(_asks, inner)):
            continue
        around = {key: value for key, value in row.items() if key != name}
        for one in inner:
            yield from unfolded({**one, **{k: v for k, v in around.items() if k not in one}})
        return
    yield row


def _asks(value: object, mapped: frozenset[str] = frozenset()) -> bool:
    """Whether a record has a question, or more of them inside."""
    return isinstance(value, dict) and any(
        is_question(name) or name in mapped or (name in _INSIDE and isinstance(inner, list))
        for name, inner in value.items()
    )


def is_whole(text: bytes) -> bool:
    """Whether a text is JSON from its beginning to its end."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _parse(path: Path, text: bytes, line: int = 0) -> object:
    """Parse strictly, else with the standard library, which accepts NaN. Raises BenchmarkError."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = _tolerantly(path, text, line)
    try:
        doubled = None
        if may_repeat(text, value):
            # What is said twice about all items is part of none.
            inside = isinstance(value, dict) and bool(_containers(value))
            doubled = doubled_key(text, equal=True, inside=inside)
    except RecursionError as error:
        raise fault(path, line or 1, "JSON nested too deeply") from error
    if doubled is not None:
        # Parsers give the last of the two: a question could go unchecked without a word.
        first, *rest = doubled
        row = isinstance(first, int) and not line
        at = f"{path}, row {int(first) + 1}" if row else f"{path}:{line or 1}"
        name = ".".join(map(str, rest if row else doubled))
        raise BenchmarkError(
            "{}: the field {!r} occurs twice in one object", Place(at), name,
            hint="remove one of the two, or name them apart",
        )  # fmt: skip
    return value


def _tolerantly(path: Path, text: bytes, line: int) -> object:
    at = line or 1
    try:
        value: object = json.loads(text.decode())
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        at += text.count(b"\n", 0, error.start)
        raise fault(path, at, "not valid UTF-8", hint="convert the file to UTF-8") from error
    except UnicodeEncodeError as error:
        raise fault(path, at, "half a surrogate pair in a text") from error
    except json.JSONDecodeError as error:
        hint = "in JSON lines every line is one whole object; is the file complete?"
        at += error.lineno - 1
        raise fault(path, at, "not valid JSON ({})", Public(error.msg), hint=hint) from error
    except RecursionError as error:
        raise fault(path, at, "JSON nested too deeply") from error
    except ValueError as error:  # Python reads no number of more than 4,300 digits
        raise fault(path, at, "a number is too long") from error
    return value


def _kind(value: object) -> str:
    names = {list: "a list", dict: "an object", str: "a text", bool: "a truth value"}
    return names.get(type(value), "null" if value is None else "a number")


def row_hashes(sources: Iterable[Mapping[str, Any]]) -> set[str]:
    """The hash of each row of some files of a benchmark, which run.json names with their digests.

    lm-eval's `doc_hash` is the SHA-256 of a row as JSON in two spaces of indentation. A file that
    is no longer there or is another one, and a format other than JSON and Parquet, have none.
    """
    found: set[str] = set()
    for source in sources:
        try:
            found.update(map(_hash, _rows(source)))
        except (BenchmarkError, OSError):
            continue
    return found


def _rows(source: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    path = Path(source["path"])
    file = read_unpacked(path)
    if file.sha256 != source["sha256"]:
        return ()
    if source["format"] == "parquet":
        from contam.tables.input_tables import parquet_rows

        return parquet_rows(path, list, file.data)
    if source["format"].startswith("json"):
        return (row for _, row in read_json(path, file.data, FieldMap({})).rows)
    return ()


def _hash(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, indent=2, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
