"""One of a thing is said in the singular."""

from __future__ import annotations

import pytest

from contam.audit.facts import BenchmarkFacts, PolicyFacts
from contam.audit.gate import judge
from contam.audit.gate.rules import ScoreGap
from contam.audit.report.headline import headline
from contam.audit.spec import TOGETHER


def said_of(waived, accepted):
    counts = {"n_items": 9, "contaminated": 3, "suspect": 0, "clean": 6, "not_checkable": 0}
    lists = ("exposures", "kinds", "dates", "sources", "not_checkable_reasons")
    found = PolicyFacts(
        policy="contam",
        corpus=TOGETHER,
        flagged_share=3 / 9,
        waived=waived,
        accepted=accepted,
        **counts,
        **dict.fromkeys(lists, ()),
    )
    bench = BenchmarkFacts(name="b", n_items=9, n_skipped=0, released=None, policies=(found,))
    coverage = {"complete": True, "shards_read": 1, "shards_expected": 1}
    return headline([bench], coverage, "contam", []).text


@pytest.mark.parametrize(
    ("waived", "accepted", "said"),
    [
        (1, 0, "1 of them is waived by a reviewer: 1 as a false alarm, 0 as accepted leaks."),
        (3, 1, "3 of them are waived by a reviewer: 2 as false alarms, 1 as an accepted leak."),
    ],
)
def test_waived_flags_are_counted_in_english(waived, accepted, said):
    assert said in said_of(waived, accepted)


@pytest.mark.parametrize(
    ("n_clean", "said"),
    [(0, "0 clean items are too few"), (1, "1 clean item is too few"), (2, "2 clean items are")],
)
def test_too_few_clean_items_are_counted_in_english(n_clean, said):
    row = {"benchmark": "b", "policy": "p", "model": "m", "metric": "acc", "n_clean": n_clean}
    row |= {"full": 0.5, "clean": 0.5}
    part = judge._gap(ScoreGap(check="gap", most_points=2), row)
    assert part.said.startswith(said)
