"""Read log files, and define what reads a tool's logs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from contam.benchmark.paths import format_of, read_unpacked
from contam.errors import BenchmarkError, Hint, LogError, Public
from contam.files.lfs import LFS_FACT, LFS_HEAD
from contam.files.single import open_file
from contam.rescore.logs.json_values import CUT_OR_CHANGED, Row, loads, number_or_none, parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from contam.rescore.logs.model import Log


OTHER_RUN: Final = "the log is not whole, or belongs to another run: copy it again"
GIVE_ROWS: Final = "rows of scores per item are needed, not only their means"
"""Ways out that several readers name."""

_BOM = b"\xef\xbb\xbf"
_TABLES: Final = frozenset({"csv", "tsv", "parquet"})

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
                "cannot read {}: {}",
                self.path,
                Public(reason),
                hint="check the path and its rights",
            ) from error
        if start == LFS_HEAD and (format_of(self.path) or self.path.suffix == ".eval"):
            raise LogError(
                "{} {}", self.path, Public(LFS_FACT),
                hint="fetch the file: run `git lfs pull` in its repository",
            )  # fmt: skip
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
        return self.json_form or ""

    @cached_property
    def json_form(self) -> Literal["lines", "list", "object"] | None:
        """What JSON is in it, by content; the name decides for one object on one line."""
        text = self.data.removeprefix(_BOM).strip()
        if text[:1] not in {b"[", b"{"}:
            return None
        if text[:1] == b"[":
            return "list"
        one = b"\n" not in text
        lines = self.path.name.find(".jsonl") > 0 if one else self.first_line is not None
        return "lines" if lines else "object"

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
            raise LogError(error.statement, hint=error.hints) from error
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
                    "{}:{}: expected a JSON object", self.path, number, hint=CUT_OR_CHANGED
                )
            yield number, value


def digest_of(*files: LogFile) -> str:
    """One SHA-256 for a log of several files."""
    return hashlib.sha256("".join(file.digest for file in files).encode()).hexdigest()


def check_count(
    file: LogFile, found: int, what: str, counted: object, hint: Hint = OTHER_RUN
) -> None:
    """LogError where the tool counts another number of something than there is."""
    number = number_or_none(counted)
    if number is not None and int(number) != found:
        raise LogError(
            "{}: {} {}, its tool counts {}", file.path, found, Public(what), int(number), hint=hint
        )


def neighbour(path: Path) -> LogFile | None:
    """A companion file, None when it is not there."""
    return LogFile(path) if path.is_file() else None


class NoScoresError(LogError):
    """A sound file in a folder that holds no scores: passed over unless it was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """How the logs of one tool are recognised and read.

    title      what it reads, as an error lists it; "" where another reader's title covers it
    fits       whether a file holds scores of this tool; may look at its name, form and content
    read       the logs of a file that fits. A log that is not whole is a LogError: cut off, not
               ended, or with other rows than its tool counts. NoScoresError for a sound file
               without scores per item
    first_of   the file to read a log from, given any file with its scores
    is_part    whether a file belongs to a log of this tool and holds no scores per item
    rows_of    files with the scores that such a part belongs to
    elsewhere  whether those may lie where `rows_of` does not look, so that a part that is alone in
               a folder is nothing to speak of
    decimals   decimal places that the tool rounds its own means to, as `ScoreColumn.reported` has
               them; None where it writes them in full
    """

    title: str = ""
    fits: Callable[[LogFile], bool]
    read: Callable[[LogFile], Log | list[Log]]
    first_of: Callable[[Path], Path] = lambda path: path
    is_part: Callable[[LogFile], bool] = lambda _file: False
    rows_of: Callable[[Path], list[Path]] = lambda _path: []
    elsewhere: bool = False
    decimals: int | None = None


def first_line(test: Callable[[Row], bool]) -> Callable[[LogFile], bool]:
    """Whether a file is JSON lines and its first line passes the test."""

    def fits(file: LogFile) -> bool:
        return file.form == "lines" and file.first_line is not None and test(file.first_line)

    return fits


def document(test: Callable[[object], bool]) -> Callable[[LogFile], bool]:
    """Whether a file is one JSON object and that passes the test."""

    def fits(file: LogFile) -> bool:
        return file.form == "object" and test(file.document)

    return fits
