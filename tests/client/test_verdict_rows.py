"""Verdicts as a service sends them, checked by what `Verdict` declares of each column."""

import pytest

from contam.client.failures import AnswerError
from contam.client.wire import verdict_of
from contam.detect.policies.verdict import COLUMNS

ROW = {
    "benchmark": "b", "split": "", "item_id": "1", "policy": "contam", "label": "clean",
    "score": 0.25, "exposure": "none", "kind": None, "n_documents": 0, "n_occurrences": 0,
    "best_document_id": None, "best_shard": None, "best_row": None, "best_url": None,
    "best_date": None, "reason": "r",
}  # fmt: skip
STRANGE = {str: 3, int: "3", float: "0.25"}


def test_a_verdict_may_lack_what_may_be_null_and_have_what_is_not_known():
    nullable = {column.name for column in COLUMNS if column.nullable}
    bare = {name: value for name, value in ROW.items() if name not in nullable}
    verdict = verdict_of({**bare, "mood": "sunny"})
    assert {name for name, value in verdict.to_dict().items() if value is None} == nullable


def test_whole_numbers_are_scores():
    score = verdict_of({**ROW, "score": 1}).score
    assert (score, type(score)) == (1.0, float)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda one: one.name)
def test_a_value_of_another_kind_is_refused_by_the_name_of_its_column(column):
    wrong = [STRANGE[column.kind], True, ["x"]] + ([] if column.nullable else [None])
    for value in wrong:
        with pytest.raises(AnswerError, match=f"a verdict without {column.name}"):
            verdict_of({**ROW, column.name: value})


def test_a_label_that_nobody_gives_is_refused():
    with pytest.raises(AnswerError, match="known label"):
        verdict_of({**ROW, "label": "fine"})
