"""A fresh set from logs: item scores, and the same on the items that verdicts call clean."""

import csv
import json

import numpy as np
import pytest

import contam
from contam.errors import ContamError
from contam.study import FreshSettings, fresh
from contam.study.scored import read_scores


@pytest.fixture(scope="module")
def verdicts(bench_fixtures):
    return contam.scan(bench_fixtures / "corpus", bench_fixtures / "items")


def test_items_of_logs_give_the_scores_and_clean_items_are_split_off(bench_fixtures, verdicts):
    logs = bench_fixtures / "logs"
    given = (logs / "lantern_quiz.csv", logs / "tinker_code.csv")
    few = fresh(*given, verdicts=verdicts)
    assert any("17 clean items" in one.reason for one in few.refusals)
    assert {row["items"] for row in few.rows()} == {"all"}
    study = fresh(*given, verdicts=verdicts, settings=FreshSettings(least=15))
    clean = {v.item_id for v in verdicts if v.label == "clean"}
    with (logs / "lantern_quiz.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert 0 < len(clean & {row["item_id"] for row in rows}) < len(rows)
    for one in study.rows():
        kept = [row for row in rows if one["items"] == "all" or row["item_id"] in clean]
        assert one["n_original"] == len(kept)
        score = np.mean([int(row[one["model"]]) for row in kept])
        assert one["original"] == pytest.approx(score)
        assert one["interval"] == "Newcombe"
    assert [row["items"] for row in study.rows()] == ["all"] * 3 + ["clean"] * 3
    assert "On clean items" in study.finding.found
    assert study.run["coverage"]["complete"] is True
    assert json.dumps(study.run)


def test_verdicts_of_two_policies_need_a_name(bench_fixtures):
    both = contam.scan(
        bench_fixtures / "corpus",
        bench_fixtures / "items/lantern_quiz.jsonl",
        policies=["contam", "gpt3-test"],
    )
    logs = bench_fixtures / "logs"
    given = (logs / "lantern_quiz.csv", logs / "tinker_code.csv")
    with pytest.raises(ContamError, match="2 policies"):
        fresh(*given, verdicts=both)
    study = fresh(*given, verdicts=both, policy="contam", settings=FreshSettings(least=15))
    assert len(study.rows()) == 6


def test_logs_of_two_benchmarks_are_no_one_set(bench_fixtures):
    with pytest.raises(ContamError):
        read_scores(
            [bench_fixtures / "logs/lantern_quiz.csv", bench_fixtures / "logs/tinker_code.csv"],
            "original",
        )


def test_scores_that_are_no_shares_are_refused_and_partial_credit_is_not(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("item_id,model,score\n" + "".join(f"i{at},a,{at}\n" for at in range(40)))
    with pytest.raises(ContamError):
        read_scores(path, "original")
    path.write_text("item_id,model,score\n" + "".join(f"i{at},a,{at / 40}\n" for at in range(40)))
    assert not read_scores(path, "original").binary(0)
    study = fresh(path, path)
    assert study.rows()[0]["interval"] == "Welch"


def test_constat_takes_items_in_one_order_and_refuses_different_ones(tmp_path):
    rng = np.random.default_rng(3)
    models = [f"m{at}" for at in range(8)]
    skill = np.linspace(0.3, 0.8, 8)

    def log(name, orders, n=80):
        right = rng.random((8, n)) < skill[:, None]
        for model, order, row in zip(models, orders, right, strict=True):
            lines = [f"i{at},{model},{int(row[at % n])},{name}" for at in order]
            text = "\n".join(["item_id,model,score,benchmark", *lines]) + "\n"
            (tmp_path / f"{name}-{model}.csv").write_text(text)
        return [tmp_path / f"{name}-{model}.csv" for model in models]

    mixed = [rng.permutation(80) for _ in models]
    settings = FreshSettings(references=tuple(models[:6]), draws=100)
    one = fresh(log("old", mixed), log("new", mixed), settings=settings)
    assert [row["model"] for row in one.rows("constat")] == ["m6", "m7"]
    others = [np.arange(80) + (at == 3) for at in range(8)]
    two = fresh(log("other", others), log("new", mixed), settings=settings)
    assert not two.rows("constat")
    assert any("different items" in refusal.reason for refusal in two.refusals)
