"""Readers of logs: each file has one, and another is added by naming it in `READERS`."""

import json

import numpy as np
import pytest

from contam.errors import LogError
from contam.rescore.logs import read as reading
from contam.rescore.logs.log_files import LogFile, LogReader, document
from contam.rescore.logs.model import CORPUS, Log, LoggedItem, mean_column, self_check
from contam.rescore.logs.read import read_logs
from tests.rescore.logs.small import TIME, lm_eval
from tests.rescore.logs.tools import RUNS
from tests.rescore.panels import refused


@pytest.mark.parametrize("name", RUNS)
def test_no_file_of_a_run_fits_two_readers(tmp_path, name):
    RUNS[name](tmp_path / "run")
    files = [LogFile(path) for path in tmp_path.rglob("*") if path.is_file()]
    fitting = [[reader for reader in reading.READERS if reader.fits(file)] for file in files]
    assert all(len(found) <= 1 for found in fitting)
    parts = [reading.parts_of(file) for file in files]
    assert all(len(found) <= 1 for found in parts)
    assert not any(found and belongs for found, belongs in zip(fitting, parts, strict=True))


@pytest.mark.parametrize(
    ("decimals", "printed", "whole"),
    [
        (4, 0.6667, True),
        (4, 0.6668, False),
        (4, 0.6666, False),
        (4, 0.66675, False),
        (2, 0.67, True),
        (2, 0.66, False),
        (None, 0.6667, False),
        (None, 2 / 3, True),
    ],
)
def test_a_mean_that_the_tool_rounds_may_be_half_a_unit_of_its_last_place_off(
    tmp_path, monkeypatch, decimals, printed, whole
):
    def read(file):
        return Log(
            tool="rounding",
            path=str(file.path),
            digest=file.digest,
            model="m",
            benchmark="b",
            items=tuple(LoggedItem(item_id=str(at)) for at in range(3)),
            columns=(
                mean_column(
                    "acc", np.array(file.document["right"], float), reported=file.document["mean"]
                ),
            ),
        )

    own = LogReader(fits=document(lambda value: "right" in value), read=read, decimals=decimals)
    monkeypatch.setattr(reading, "READERS", (own, *reading.READERS))
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"right": [1, 0, 1], "mean": printed}), encoding="utf-8")
    (log,) = read_logs([path])
    if whole:
        self_check(log)
        return
    with refused(LogError, "0.66"):
        self_check(log)


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
    with refused(LogError, aggregation):
        log.columns[0].aggregate(np.ones(2, np.bool_))


@pytest.mark.parametrize(
    ("name", "value"), [("f1", [2, 1]), ("f1", 0.5), ("bits_per_byte", "x"), ("perplexity", [1, 2])]
)
def test_corpus_metrics_refuse_values_they_are_not_made_for(name, value):
    with pytest.raises(ValueError):
        CORPUS[name]([value])


def test_matthews_and_brier_are_what_their_definitions_say():
    sure = [[0, 0], [1, 1], [1, 1]]
    assert CORPUS["mcc"](sure) == pytest.approx(1.0)
    assert CORPUS["mcc"]([[0, 0], [1, 0]]) == 0.0
    assert CORPUS["mcc"]([[0, 1], [1, 0]]) == pytest.approx(-1.0)
    assert CORPUS["f1"]([[0, 0]]) == 0.0
    assert CORPUS["brier_score"]([[0, [1.0, 0.0]], [1, [0.5, 0.5]]]) == pytest.approx(0.25)
