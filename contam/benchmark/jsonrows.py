"""Read JSON benchmarks: lines, a list, or a record that holds a list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

import orjson

from contam.benchmark.field_names import is_question
from contam.errors import Advice, BenchmarkError, Place, Public, Remedy
from contam.files.doubled_keys import doubled_key, may_repeat

if TYPE_CHECKING:
    from pathlib import Path

    from contam.benchmark.fields import Row
    from contam.benchmark.mapping import FieldMap

CONTAINERS = ("examples", "data", "items", "questions", "rows", "instances", "samples")
"""Keys under which a JSON object may hold its list of items."""

BOM = b"\xef\xbb\xbf"
"""What some programs write in front of UTF-8."""


class NoItemsHereError(BenchmarkError):
    """A valid file without items, such as a manifest next to a benchmark.

    An error when the user named the file; listed as skipped when it was found in a folder.
    """

    def __init__(self, path: Path, reason: str, *, remedy: Remedy | Advice) -> None:
        super().__init__("{}: {}", path, Public(reason), remedy=remedy)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of one file with their 1-based places; to be read once, which may raise BenchmarkError.

    format  "jsonl", "json", "csv", "tsv", "parquet" or "arrow"
    unit    what a place counts: physical lines, or rows
    """

    format: str
    unit: Literal["line", "row"]
    rows: Iterable[tuple[int, Row]]


def read_json(path: Path, data: bytes, field_map: FieldMap) -> FileRows:
    """Rows of a JSON or JSON-lines file; the content decides which it is.

    A `.json` file of one object is one item if it has a field for the question, usual or mapped.

    Raises BenchmarkError, with the line, for anything that is not JSON objects in UTF-8, and
    NoItemsHereError for one object without a list of items.
    """
    data = data.removeprefix(BOM)
    if data.lstrip()[:1] == b"[":
        return FileRows("json", "row", _checked_list(path, _parse(path, data), ""))
    first = list(islice(_split(data), 2))
    if len(first) > 1 and not is_whole(first[0][1]) and is_whole(data):
        return _of_object(path, _parse(path, data))
    if len(first) == 1:
        only = _parse(path, first[0][1], first[0][0])
        if isinstance(only, dict) and not _is_item(path, only, field_map):
            return _of_object(path, only)
    return FileRows("jsonl", "line", _lines(path, data))


def _split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, and their numbers."""
    begin = line = 0
    while begin <= len(data):
        line += 1
        end = data.find(b"\n", begin)
        text = data[begin : end if end >= 0 else len(data)]
        begin += len(text) + 1
        if text.strip():
            yield line, text


def _lines(path: Path, data: bytes) -> Iterator[tuple[int, Row]]:
    # One by one: as values of Python, the rows of a file take several times its size.
    for line, text in _split(data):
        yield line, row_of(path, text, line)


def row_of(path: Path, text: bytes, line: int) -> Row:
    """The row that a line holds. Raises BenchmarkError for what is no JSON object."""
    row = _parse(path, text, line)
    if not isinstance(row, dict):
        raise BenchmarkError(
            "{}:{}: expected a JSON object, found {}", path, line, Public(_kind(row)),
            remedy=Remedy.ONE_ITEM_A_LINE,
        )  # fmt: skip
    return row


def _of_object(path: Path, value: object) -> FileRows:
    if isinstance(value, dict):
        for key in CONTAINERS:
            if isinstance(value.get(key), list):
                return FileRows("json", "row", _checked_list(path, value[key], key))
    raise NoItemsHereError(
        path, "a JSON object without a list of items",
        remedy=Remedy.PUT_LIST_UNDER(known=Public(", ".join(CONTAINERS))),
    )  # fmt: skip


def _checked_list(path: Path, value: object, key: str) -> list[tuple[int, Row]]:
    if not isinstance(value, list):
        raise BenchmarkError("{}: expected a list of items, found {}", path, Public(_kind(value)))
    if key == "data" and any(isinstance(row, dict) and "paragraphs" in row for row in value):
        value = list(_squad_rows(value))
    for place, row in enumerate(value, 1):
        if not isinstance(row, dict):
            raise BenchmarkError(
                "{}, row {}: expected an object, found {}", path, place, Public(_kind(row))
            )
    return list(enumerate(value, 1))


def _squad_rows(articles: list[object]) -> Iterator[Row]:
    """The nested original form of SQuAD, one row per question."""
    for article in articles:
        for paragraph in _list_in(article, "paragraphs"):
            context = paragraph.get("context") if isinstance(paragraph, Mapping) else None
            for question in _list_in(paragraph, "qas"):
                if isinstance(question, Mapping):
                    yield {**question, "context": context}


def _list_in(value: object, key: str) -> list[object]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def _is_item(path: Path, value: Row, field_map: FieldMap) -> bool:
    if any(isinstance(value.get(key), list) for key in CONTAINERS):
        return "question" in field_map.fields
    # Folders hold manifests as .json; a lone row of .jsonl with unknown fields is a real problem.
    named = "question" in field_map.fields or any(map(is_question, value))
    return named or ".json" not in [suffix.lower() for suffix in path.suffixes]


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
        doubled = doubled_key(text) if may_repeat(text, value) else None
    except RecursionError as error:
        raise _too_deep(path, line) from error
    if doubled is not None:
        # Parsers give the last of the two: a question could go unchecked without a word.
        first, *rest = doubled
        row = isinstance(first, int) and not line
        at = f"{path}, row {int(first) + 1}" if row else f"{path}:{line or 1}"
        name = ".".join(map(str, rest if row else doubled))
        raise BenchmarkError(
            "{}: the field {!r} occurs twice in one object", Place(at), name,
            remedy=Remedy.REMOVE_ONE_OR_NAME_APART,
        )  # fmt: skip
    return value


def _tolerantly(path: Path, text: bytes, line: int) -> object:
    try:
        value: object = json.loads(text.decode())
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        at = (line or 1) + text.count(b"\n", 0, error.start)
        raise BenchmarkError(
            "{}:{}: not valid UTF-8", path, at, remedy=Remedy.CONVERT_TO_UTF8
        ) from error
    except UnicodeEncodeError as error:
        raise BenchmarkError("{}:{}: half a surrogate pair in a text", path, line or 1) from error
    except json.JSONDecodeError as error:
        at = (line or 1) + error.lineno - 1
        raise BenchmarkError(
            "{}:{}: not valid JSON ({})", path, at, Public(error.msg),
            remedy=Remedy.ONE_OBJECT_A_LINE,
        ) from error  # fmt: skip
    except RecursionError as error:
        raise _too_deep(path, line) from error
    except ValueError as error:  # Python reads no number of more than 4,300 digits
        raise BenchmarkError("{}:{}: a number is too long", path, line or 1) from error
    return value


def _too_deep(path: Path, line: int) -> BenchmarkError:
    return BenchmarkError("{}:{}: JSON nested too deeply", path, line or 1)


def _kind(value: object) -> str:
    names = {list: "a list", dict: "an object", str: "a text", bool: "a truth value"}
    return names.get(type(value), "null" if value is None else "a number")
