"""Write rows to a file whose name says its form: CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any, Final

from contam.cli.terminal import visible
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
FORMS: Final = (".csv", ".json", ".parquet")


def form_of(out: Path) -> str:
    """The ending of the file's name, one of `FORMS`. Raises UsageError for any other."""
    form = out.suffix.lower()
    if form not in FORMS:
        raise UsageError(
            f"--out {out}: cannot tell the format from the name",
            hint=f"let it end in {', '.join(FORMS)}",
        )
    return form


def csv_text(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """A header and a line for each row.

    A spreadsheet takes a text that begins with one of `= + - @` or a tab for a formula: it gets an
    apostrophe before it, unless it is a number. Control characters are written as <U+001B>.
    """
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(map(_cell, names))
    writer.writerows(map(_cell, row) for row in rows)
    return page.getvalue()


def _cell(value: Any) -> Any:  # noqa: ANN401 - whatever the csv module writes
    if not isinstance(value, str):
        return value
    formula = value.startswith(_FORMULA) and not _NUMBER.fullmatch(value)
    return visible(f"'{value}" if formula else value)
