"""Define a log reader; `contam.rescore.logs.readers` lists them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contam.rescore.logs.log_files import LogFile, Row
    from contam.rescore.logs.model import Log

    Test = Callable[[LogFile], bool]


class NoScoresError(LogError):
    """A sound file in a folder that holds no scores: passed over unless it was named."""


def _never(_file: LogFile) -> bool:
    return False


def _itself(path: Path) -> Path:
    return path


def _nowhere(_path: Path) -> list[Path]:
    return []


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
    fits: Test
    read: Callable[[LogFile], Log | list[Log]]
    first_of: Callable[[Path], Path] = _itself
    is_part: Test = _never
    rows_of: Callable[[Path], list[Path]] = _nowhere
    elsewhere: bool = False
    decimals: int | None = None


def first_line(test: Callable[[Row], bool]) -> Test:
    """Whether a file is JSON lines and its first line passes the test."""

    def fits(file: LogFile) -> bool:
        return file.form == "lines" and file.first_line is not None and test(file.first_line)

    return fits


def document(test: Callable[[object], bool]) -> Test:
    """Whether a file is one JSON object and that passes the test."""

    def fits(file: LogFile) -> bool:
        return file.form == "object" and test(file.document)

    return fits
