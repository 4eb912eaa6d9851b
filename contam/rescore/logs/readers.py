"""List all log readers, choose one for a file, and say what to export if none fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.facts import Public
from contam.rescore.logs.log_files import GIVE_ROWS, LogReader, NoScoresError, as_dict
from contam.rescore.logs.tools import (
    every_eval,
    helm,
    inspect_ai,
    lighteval,
    lm_eval,
    olmes,
    openai_evals,
    opencompass,
    pass_at_k,
    simple,
    swe_bench,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contam.rescore.logs.log_files import LogFile
    from contam.rescore.logs.model import Log

_WRITE_REPEATS: Final = "write them as a table: id, repeat, score, a row per item and repeat"
_WRITE_RESULTS: Final = (
    "write each SingleEvalResult's score beside its question, as a table: a CSV, JSON lines or "
    "Parquet file with a row per item and the columns model, id, question, score"
)
_NO_LOGS: Final = (
    (
        ("testCases",),
        "a DeepEval test run: inputs and a score per metric, but neither model nor benchmark",
        (
            "export its test cases as a table: a CSV, JSON lines or Parquet file with a row"
            " per item and the columns model, id (name), question (input) and score "
            "(metricsData); a DeepEval benchmark has `benchmark.predictions.to_csv(...)`"
        ),
    ),
    (
        ("evalId", "results"),
        "a promptfoo evaluation: tests by assertions, without the items of a benchmark",
        GIVE_ROWS,
    ),
    (
        ("accuracy", "correct_count", "total_count"),
        "the failures of a BFCL run alone: no row for the items it passed",
        GIVE_ROWS,
    ),
    (
        ("score", "htmls", "convos"),
        "all results of a simple-evals run: conversations, and scores per item inside HTML only",
        _WRITE_RESULTS,
    ),
    (
        ("raw_generations", "raw_scored_generations"),
        "scored generations of CRUXEval: a list of scores for each item, and no row",
        _WRITE_REPEATS,
    ),
    (
        ("config", "summary", "eval"),
        "results of EvalPerf: a record for each task inside one object, and no rows",
        _WRITE_REPEATS,
    ),
    (
        ("no_generation", "resolved"),
        "lists of SWE-bench's instances: those that were not resolved are in none of them",
        GIVE_ROWS,
    ),
    (("score", "score:std"), "the means of a simple-evals run, no score per item", _WRITE_RESULTS),
)
"""Fields of a JSON file that holds no scores per item, what it is, and what to export instead."""


def _what_it_is(file: LogFile) -> tuple[str, str] | None:
    """(what a file is, what to export instead), None for one that may be a log."""
    if file.form not in {"lines", "object"}:
        return None
    found = as_dict(file.document if file.form == "object" else file.first_line)
    fits = ((fact, hint) for fields, fact, hint in _NO_LOGS if found.keys() >= {*fields})
    return next(fits, None)


def _refuse(file: LogFile) -> list[Log]:
    """Raises NoScoresError, with what to export instead."""
    is_object = file.form == "object"
    other = "a JSON object without a list of rows" if is_object else "no log of an evaluation"
    fact, hint = _what_it_is(file) or (other, GIVE_ROWS)
    raise NoScoresError("{}: {}", file.path, Public(fact), hint=hint)


_NO_SCORES: Final = LogReader(fits=lambda file: _what_it_is(file) is not None, read=_refuse)


#: The first that fits a file reads it, so the stricter ones come first. HELM goes by names, and
#: saves the others a look into its files, which are large.
READERS: Final = (
    helm.READER,
    _NO_SCORES,
    opencompass.READER,
    swe_bench.INSTANCES,
    inspect_ai.READER,
    pass_at_k.EVAL_PLUS,
    swe_bench.READER,
    lm_eval.READER,
    olmes.READER,
    openai_evals.READER,
    pass_at_k.HUMAN_EVAL,
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
    return tables if tables.fits(file) else _NO_SCORES


def parts_of(file: LogFile) -> list[LogReader]:
    """Readers of the logs that a file without scores may belong to."""
    return [reader for reader in READERS if reader.is_part(file)]


def rows_of(path: Path, readers: list[LogReader]) -> list[Path]:
    """The files with the scores that a part of a log belongs to."""
    return [row for reader in readers for row in reader.rows_of(path)]
