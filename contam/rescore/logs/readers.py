"""List all log readers, choose one for a file, and say what to export if none fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.facts import Public
from contam.remedies import Remedy
from contam.rescore.logs.log_files import as_dict
from contam.rescore.logs.log_reader import LogReader, NoScoresError, document
from contam.rescore.logs.tools import (
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
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contam.rescore.logs.log_files import LogFile
    from contam.rescore.logs.model import Log


_SIMPLE_MEANS: Final = (
    "the means of a simple-evals run, no score per item",
    Remedy.WRITE_SIMPLE_EVALS_RESULTS,
)
_SIMPLE_ALL: Final = (
    "all results of a simple-evals run: conversations, and scores per item inside HTML only",
    Remedy.WRITE_SIMPLE_EVALS_SCORES,
)
_DEEPEVAL: Final = (
    "a DeepEval test run: inputs and a score per metric, but neither model nor benchmark",
    Remedy.EXPORT_DEEPEVAL_CASES,
)


def _what_it_is(value: object) -> tuple[str, Remedy] | None:
    """(what a JSON file is, what to export instead), None when it is nothing known here."""
    found = as_dict(value)
    if isinstance(found.get("testCases"), list) or isinstance(
        found.get("conversationalTestCases"), list
    ):
        return _DEEPEVAL
    if {"score", "htmls", "convos"} <= found.keys():
        return _SIMPLE_ALL
    numbers = found and all(isinstance(number, int | float) for number in found.values())
    if numbers and "score" in found and any(name.endswith(":std") for name in found):
        return _SIMPLE_MEANS
    return None


def _is_known(value: object) -> bool:
    return _what_it_is(value) is not None


def _refuse_known(file: LogFile) -> list[Log]:
    """Raises NoScoresError, with what to export instead."""
    fact, remedy = _what_it_is(file.document) or ("nothing known", ())
    raise NoScoresError("{}: {}", file.path, Public(fact), remedy=remedy)


_NO_SCORES: Final = LogReader(fits=document(_is_known), read=_refuse_known)


#: The first that fits a file reads it, so the stricter ones come first. HELM goes by names, and
#: saves the others a look into its files, which are large.
READERS: Final = (
    helm.READER,
    _NO_SCORES,
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
    return ", ".join([*(reader.title for reader in READERS if reader.title), simple.TITLE])


def reader_of(file: LogFile, columns: Mapping[str, str] | None) -> LogReader | None:
    """Who reads a file; None for a part of a log that others read (see `parts_of`).

    columns  what the columns of plain tables are, where their names do not say it
    """
    found = next((reader for reader in READERS if reader.fits(file)), None)
    if found is not None:
        return found
    if parts_of(file):
        return None
    tables = simple.reader(columns)
    return tables if tables.fits(file) else _NO_LOG


def parts_of(file: LogFile) -> list[LogReader]:
    """Readers of the logs that a file without scores may belong to."""
    return [reader for reader in READERS if reader.is_part(file)]


def rows_of(path: Path, readers: list[LogReader]) -> list[Path]:
    """The files with the scores that a part of a log belongs to."""
    return [row for reader in readers for row in reader.rows_of(path)]


def _refuse(file: LogFile) -> list[Log]:
    raise NoScoresError(
        "{}: no log of an evaluation", file.path, remedy=Remedy.GIVE_SCORES_PER_ITEM,
    )  # fmt: skip


_NO_LOG: Final = LogReader(fits=lambda _file: True, read=_refuse)
