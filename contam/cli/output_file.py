"""Write files for people: CSV that a spreadsheet takes for text, and nothing over an input."""

from __future__ import annotations

import csv
import glob
import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.cli.terminal import visible
from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contam.detect.report import Report


def refuse_replacing(out: Path, inputs: Iterable[str | Path] = (), option: str = "--out") -> None:
    """Raise UsageError for a file in a result, pack or index, or that a command also reads.

    inputs  files, folders or patterns. Links are followed; hard links are the same file.
    """
    from contam.corpus.outputs import what_wrote

    for folder in Path(os.path.realpath(out)).parents:
        if what := what_wrote(folder):
            raise UsageError(
                f"{option} {out} lies inside {what}, {folder}", hint="choose a place outside of it"
            )
    if out.exists():
        for path in _files(inputs):
            if path.exists() and path.samefile(out):
                raise _replaces(out, path, option)


def refuse_replacing_source(out: Path, report: Report, option: str = "--out") -> None:
    """Raise UsageError as above; inputs are the files that a result was made of."""
    from contam.detect.show.reread import Library
    from contam.files.single import fingerprint

    inputs = report.run.get("inputs", {})
    # Paths of benchmarks are as they were typed, perhaps in another folder than this one.
    sources = [
        source
        for benchmark in inputs.get("benchmarks", ())
        for source in benchmark.get("sources", ())
        if "path" in source
    ]
    library = Library(report.run, report.folder)
    shards = [library.place(shard["uri"]) for shard in inputs.get("shards", ())]
    refuse_replacing(out, [*shards, *(source["path"] for source in sources)], option)
    if sources and out.is_file():
        found = fingerprint(out)
        for source in sources:
            if source.get("sha256") == found["sha256"]:
                raise _replaces(out, source["path"], option)


def _replaces(out: Path, path: str | Path, option: str) -> UsageError:
    return UsageError(f"{option} {out} would replace an input: {path}", hint="choose another file")


def _files(inputs: Iterable[str | Path]) -> Iterator[Path]:
    for given in inputs:
        path = Path(given)
        found = [path] if path.exists() else map(Path, glob.glob(str(given), recursive=True))  # noqa: PTH207 - takes absolute patterns
        for one in found:
            yield from one.rglob("*") if one.is_dir() else (one,)


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


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
