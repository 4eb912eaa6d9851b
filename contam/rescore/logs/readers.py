"""All readers of logs, and which of them reads a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.remedies import Remedy
from contam.rescore.logs import (
    eval_plus,
    every_eval,
    helm,
    human_eval,
    inspect_ai,
    lighteval,
    lm_eval,
    olmes,
    openai_evals,
    opencompass,
    simple,
    swe_bench,
    unread,
)
from contam.rescore.logs.reader import LogReader, NoScoresError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contam.rescore.logs.files import LogFile
    from contam.rescore.logs.model import Log

#: The first that fits a file reads it, so the stricter ones come first. HELM goes by names, and
#: saves the others a look into its files, which are large.
READERS: Final = (
    helm.READER,
    unread.READER,
    opencompass.READER,
    swe_bench.INSTANCES,
    inspect_ai.READER,
    eval_plus.READER,
    swe_bench.READER,
    lm_eval.READER,
    olmes.READER,
    openai_evals.READER,
    human_eval.READER,
    every_eval.READER,
    lighteval.READER,
)


def titles() -> str:
    """What can be read, for an error."""
    return ", ".join([*(one.title for one in READERS if one.title), simple.TITLE])


def reader_of(file: LogFile, columns: Mapping[str, str] | None) -> LogReader | None:
    """Who reads a file; None for a part of a log that others read (see `parts_of`).

    columns  what the columns of plain tables are, where their names do not say it
    """
    found = next((one for one in READERS if one.fits(file)), None)
    if found is not None:
        return found
    if parts_of(file):
        return None
    tables = simple.reader(columns)
    return tables if tables.fits(file) else _NO_LOG


def parts_of(file: LogFile) -> list[LogReader]:
    """Readers of the logs that a file without scores may belong to."""
    return [one for one in READERS if one.is_part(file)]


def rows_of(path: Path, readers: list[LogReader]) -> list[Path]:
    """The files with the scores that a part of a log belongs to."""
    return [one for reader in readers for one in reader.rows_of(path)]


def _refuse(file: LogFile) -> list[Log]:
    raise NoScoresError(
        "{}: no log of an evaluation",
        file.path,
        remedy=Remedy.GIVE_SCORES_PER_ITEM,
    )


_NO_LOG: Final = LogReader(fits=lambda _file: True, read=_refuse)
