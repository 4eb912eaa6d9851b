"""Metrics of a whole set of answers: made anew by their own function, or refused by name."""

import json

import numpy as np
import pytest

from contam.errors import LogError
from contam.rescore.logs import read_logs, self_check
from contam.rescore.logs.aggregate import CORPUS
from tests.rescore.logs.small import TIME, lm_eval


@pytest.mark.parametrize(
    ("aggregation", "values", "whole", "kept"),
    [
        ("f1", [[1, 1], [0, 1], [1, 0], [0, 0]], 0.5, 2 / 3),
        ("matthews_corrcoef", [[1, 1], [0, 1], [1, 1], [0, 0]], 1 / np.sqrt(3), 0.5),
        ("perplexity", [-1.0, -3.0, -2.0, -2.0], np.exp(2), np.exp(2)),
        (
            "weighted_perplexity",
            [[-4.0, 2], [-6.0, 2], [-2.0, 1], [-3.0, 3]],
            np.exp(15 / 8),
            np.exp(13 / 7),
        ),
    ],
)
def test_corpus_metrics_are_made_anew_by_their_own_function(
    tmp_path, aggregation, values, whole, kept
):
    """Over all items the reported number, over some what the function says: no mean of items."""
    path = lm_eval(tmp_path, values, reported=float(whole))
    results = tmp_path / f"results_{TIME}.json"
    known = json.loads(results.read_text())
    known["configs"]["lantern"]["metric_list"][0]["aggregation"] = aggregation
    results.write_text(json.dumps(known), encoding="utf-8")
    (log,) = read_logs([path])
    self_check(log)
    (column,) = log.columns
    assert column.kind == "corpus"
    found = column.aggregate(np.array([True, True, False, True]))
    assert found == pytest.approx(kept)


@pytest.mark.parametrize("aggregation", ["bleu", "chrf", "ter", "rouge"])
def test_a_metric_of_another_package_is_refused_with_its_name(tmp_path, aggregation):
    path = lm_eval(tmp_path, [1, 0])
    results = tmp_path / f"results_{TIME}.json"
    known = json.loads(results.read_text())
    known["configs"]["lantern"]["metric_list"][0]["aggregation"] = aggregation
    results.write_text(json.dumps(known), encoding="utf-8")
    (log,) = read_logs([path])
    with pytest.raises(LogError, match="needs the package that defines it"):
        log.columns[0].aggregate(np.ones(2, np.bool_))


def test_corpus_metrics_refuse_values_they_are_not_made_for():
    for name, value in (
        ("f1", [2, 1]),
        ("f1", 0.5),
        ("bits_per_byte", "x"),
        ("perplexity", [1, 2]),
    ):
        with pytest.raises(ValueError):
            CORPUS[name]([value])


def test_matthews_and_brier_are_what_their_definitions_say():
    sure = [[0, 0], [1, 1], [1, 1]]
    assert CORPUS["mcc"](sure) == pytest.approx(1.0)
    assert CORPUS["mcc"]([[0, 0], [1, 0]]) == 0.0
    assert CORPUS["mcc"]([[0, 1], [1, 0]]) == pytest.approx(-1.0)
    assert CORPUS["f1"]([[0, 0]]) == 0.0
    assert CORPUS["brier_score"]([[0, [1.0, 0.0]], [1, [0.5, 0.5]]]) == pytest.approx(0.25)
