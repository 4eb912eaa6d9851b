"""Outputs of tools that hold no score per item in a form that can be read: what to export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.facts import Public
from contam.remedies import Remedy
from contam.rescore.logs.files import as_dict
from contam.rescore.logs.reader import LogReader, NoScoresError, document

if TYPE_CHECKING:
    from contam.rescore.logs.files import LogFile
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


def what_it_is(value: object) -> tuple[str, Remedy] | None:
    """(what a JSON file is, what to export instead), None when it is nothing known here."""
    found = as_dict(value)
    if isinstance(found.get("testCases"), list) or isinstance(
        found.get("conversationalTestCases"), list
    ):
        return _DEEPEVAL
    if {"score", "htmls", "convos"} <= found.keys():
        return _SIMPLE_ALL
    numbers = found and all(isinstance(one, int | float) for one in found.values())
    if numbers and "score" in found and any(name.endswith(":std") for name in found):
        return _SIMPLE_MEANS
    return None


def _is_known(value: object) -> bool:
    return what_it_is(value) is not None


def read(file: LogFile) -> list[Log]:
    """Raises NoScoresError, with what to export instead."""
    fact, remedy = what_it_is(file.document) or ("nothing known", ())
    raise NoScoresError("{}: {}", file.path, Public(fact), remedy=remedy)


READER: Final = LogReader(fits=document(_is_known), read=read)
