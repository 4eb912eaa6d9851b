"""Lay out the pictures of a report: bars and columns whose lengths are shares of all items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.audit.spec import TOGETHER
from contam.corpus.dates import UNKNOWN
from contam.detect.policies.exposure import EXPOSURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Tree = dict[str, Any]

LABELS: Final = ("contaminated", "suspect", "not_checkable", "clean")
"""From left to right in a bar."""

MEANINGS: Final = {
    "contaminated": "the corpora contain the item, by this policy",
    "suspect": "part of it, or a copy that was changed; counts as flagged, too",
    "not_checkable": "could not be decided, so it is not called clean",
    "clean": "not found in any corpus of this audit",
    "question+answer": "the question, and its answer nearby: a model can have learned the answer",
    "question": "the question without its answer",
    "passage_only": "only the passage that the question is about",
    "answer_only": "only the answer or the choices",
    "none": "less than half of any part",
}
"""Of labels and exposures, for the keys of pictures."""

_EXPOSED: Final = ("question+answer", *(name for name in EXPOSURES[1:] if "+" not in name), "none")


def overview(facts: Tree) -> list[Tree]:
    """A row for each benchmark and policy, all corpora together: verdicts and what leaked.

    A row has `benchmark`, `policy`, `n_items`, `flagged_share` and two lists of segments.
    """
    return [
        {
            "benchmark": bench["name"],
            "policy": policy["policy"],
            "n_items": policy["n_items"],
            "n_flagged": policy["contaminated"] + policy["suspect"],
            "flagged_share": policy["flagged_share"],
            "labels": segments(LABELS, policy, policy["n_items"]),
            "exposures": segments(_EXPOSED, _counts(policy["exposures"]), policy["n_items"]),
        }
        for bench in facts["benchmarks"]
        for policy in bench["policies"]
        if policy["corpus"] == TOGETHER
    ]


def key_of(rows: Iterable[Tree], kind: str) -> list[tuple[str, str]]:
    """(name, meaning) of every segment that some row has, in the order of the bars."""
    order = LABELS if kind == "labels" else _EXPOSED
    shown = {segment["name"] for row in rows for segment in row[kind]}
    return [(name, MEANINGS[name]) for name in order if name in shown]


def segments(order: Iterable[str], counts: Mapping[str, Any], n_items: int) -> list[Tree]:
    """The parts of a bar, `x` and `width` in percent of all items; none of what is not there."""
    found: list[Tree] = []
    done = 0
    for name in order:
        n = counts.get(name, 0)
        if n:
            x, end = (round(100 * at / n_items, 3) for at in (done, done + n))
            found.append({"name": name, "n": n, "x": x, "width": round(end - x, 3)})
        done += n
    return found


def months(policy: Tree, released: str | None) -> Tree | None:
    """Columns of flagged items by the month of their documents; None where no month is known.

    `x`, `width` and `height` are percent of the picture, whose top is the share `top`; `released`
    is where the benchmark came out, None outside of the picture.
    """
    known = {month["name"]: month["n"] for month in policy["months"] if month["name"] != UNKNOWN}
    if not known:
        return None
    first, last = _number(min(known)), _number(max(known))
    width = 100 / (last - first + 1)
    most = max(known.values())
    day = None if released is None else _number(released) - first + int(released[8:10]) / 31
    return {
        "first": min(known),
        "last": max(known),
        "top": most / policy["n_items"],
        "most": most,
        "unknown": _counts(policy["months"]).get(UNKNOWN, 0),
        "released": None if day is None or not 0 <= day * width <= 100 else round(day * width, 3),  # noqa: PLR2004 - percent
        "columns": [
            {
                "month": month,
                "n": n,
                "x": round((_number(month) - first) * width, 3),
                "width": round(width, 3),
                "height": round(100 * n / most, 3),
            }
            for month, n in known.items()
        ],
    }


def _counts(counted: Iterable[Tree]) -> dict[str, int]:
    return {entry["name"]: entry["n"] for entry in counted}


def _number(month: str) -> int:
    """Months since the year 0, of "2021-06" or a day of it."""
    return 12 * int(month[:4]) + int(month[5:7]) - 1
