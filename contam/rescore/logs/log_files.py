"""Read bytes and JSON of log files, with errors that name file and line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from contam.benchmark.compressed import read_unpacked
from contam.benchmark.naming import format_of
from contam.errors import BenchmarkError, LogError, Place, Public, Remedy
from contam.files.doubled_keys import doubled_key, may_repeat
from contam.files.lfs import LFS_FACT, LFS_HEAD
from contam.files.single import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BOM = b"\xef\xbb\xbf"
_TABLES: Final = frozenset({"csv", "tsv", "parquet"})

Row = dict[str, Any]
Form = Literal["zip", "parquet", "lines", "list", "object", "table", ""]


@dataclass(frozen=True, eq=False)
class LogFile:
    """One file of a log, read once.

    given  its bytes, where it is in memory: `path` is then what messages call it
    """

    path: Path
    given: bytes | None = None

    @cached_property
    def start(self) -> bytes:
        """Its first bytes as they are on disk.

        Raises LogError when it cannot be read, or only stands for a log in Git LFS.
        """
        try:
            with open_file(self.path) as stream:
                start = stream.read(len(LFS_HEAD))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise LogError(
                "cannot read {}: {}", self.path, Public(reason), remedy=Remedy.CHECK_PATH_AND_RIGHTS
            ) from error
        if start == LFS_HEAD and (format_of(self.path) or self.path.suffix == ".eval"):
            raise LogError("{} {}", self.path, Public(LFS_FACT), remedy=Remedy.RUN_GIT_LFS_PULL)
        return start

    @cached_property
    def form(self) -> Form:
        """What is in it: JSON `lines`, a JSON `list` or `object`, a text `table`; "" unknown."""
        if self.start.startswith(b"PK") or self.path.suffix == ".eval":
            return "zip"
        if self.start.startswith(b"PAR1"):
            return "parquet"
        family = format_of(self.path)
        if family != "json":
            return "table" if family in _TABLES else ""
        if self.first_line is not None and ".json" not in self.path.suffixes[-1:]:
            return "lines"
        head = self.data.removeprefix(_BOM).lstrip()[:1]
        return "list" if head == b"[" else "object" if head == b"{" else ""

    @cached_property
    def data(self) -> bytes:
        """All bytes, unpacked where a codec packs the whole file; LogError when unreadable."""
        return self._read[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes on disk."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[bytes, str]:
        if self.given is not None:
            return self.given, hashlib.sha256(self.given).hexdigest()
        try:
            found = read_unpacked(self.path)
        except BenchmarkError as error:
            raise LogError(error.statement, remedy=error.remedies) from error
        return found.data, found.sha256

    @cached_property
    def document(self) -> Any:  # noqa: ANN401 - whatever JSON can say
        """The file as one JSON value."""
        return parsed(self.data.removeprefix(_BOM), str(self.path))

    @cached_property
    def lines(self) -> list[tuple[int, Row]]:
        """Every line as an object, with its 1-based number; empty lines are left out."""
        return list(self._lines())

    @cached_property
    def first_line(self) -> Row | None:
        """The first object of JSON lines, None when the file begins with anything else."""
        for text in self.data.removeprefix(_BOM).split(b"\n", 50)[:50]:
            if text.strip():
                try:
                    value = loads(text)
                except (ValueError, RecursionError):
                    return None
                return value if isinstance(value, dict) else None
        return None

    def _lines(self) -> Iterator[tuple[int, Row]]:
        for number, text in enumerate(self.data.removeprefix(_BOM).split(b"\n"), 1):
            if not text.strip():
                continue
            value = parsed(text, f"{self.path}:{number}")
            if not isinstance(value, dict):
                raise LogError(
                    "{}:{}: expected a JSON object", self.path, number,
                    remedy=Remedy.COPY_CUT_OR_CHANGED,
                )  # fmt: skip
            yield number, value


def loads(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Parse JSON, the bare NaN and Infinity of Python's own writer included. Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _whole_characters(json.loads(text))


def _whole_characters(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say
    """The value with halves of surrogate pairs, which a cut-off answer may end in, replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_characters(element) for element in value]
    if isinstance(value, dict):
        return {
            _whole_characters(key): _whole_characters(element) for key, element in value.items()
        }
    return value


def parsed(text: bytes, where: str) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Parse JSON; LogError, with the place, for anything else and for a name given twice."""
    try:
        value = loads(text)
        doubled = doubled_key(text) if may_repeat(text, value) else None
    except RecursionError as error:
        raise LogError("{}: JSON nested too deeply", Place(where)) from error
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise LogError(
            "{}: not valid JSON ({})", Place(where), Public(reason),
            remedy=Remedy.COPY_CUT_OR_CHANGED,
        ) from error  # fmt: skip
    if doubled is not None:
        # Parsers give the last of the two: a score could count that nobody sees.
        raise LogError(
            "{}: the field {!r} occurs twice in one object", Place(where),
            ".".join(map(str, doubled)), remedy=Remedy.REMOVE_ONE_OF_TWO_FIELDS,
        )  # fmt: skip
    return value


def digest_of(*files: LogFile) -> str:
    """One SHA-256 for a log of several files."""
    return hashlib.sha256("".join(file.digest for file in files).encode()).hexdigest()


def neighbour(path: Path) -> LogFile | None:
    """A companion file, None when it is not there."""
    return LogFile(path) if path.is_file() else None


def as_dict(value: object) -> Row:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_or_none(value: object) -> str | None:
    """The value when it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def number_or_none(value: object) -> float | None:
    """The value when it is a number (a truth value is not)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
