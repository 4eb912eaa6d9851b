"""Write rows to a file whose name says its form: CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

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
    """A header and a line for each row."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return page.getvalue()
