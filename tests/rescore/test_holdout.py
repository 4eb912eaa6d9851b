"""A second test set: ConStat as its authors' tables have it, retro-holdouts, and what is refused."""

import csv
import json

import numpy as np
import pytest
from scipy import stats

import contam as library
from contam.rescore.holdouts import constat, equivalent, holdout_rows, inflation
from contam.rescore.panel import RescoreSettings
from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.panels import series_of

#: The models that the authors call references, by the ends of their names.
REFERENCES = [
    "phi-2",
    "Llama-2-7b-chat-hf",
    "Llama-2-7b-hf",
    "Llama-2-13b-chat-hf",
    "Llama-2-13b-hf",
    "Llama-3-70b-chat-hf",
    "Meta-Llama-3-70B",
    "Llama-2-70b-chat-hf",
    "Mistral-7B-Instruct-v0.2",
    "Mistral-7B-Instruct-v0.1",
    "falcon-7b-instruct",
    "falcon-7b",
    "gemma-1.1-2b-it",
    "gemma-1.1-7b-it",
    "Meta-Llama-3-8B",
    "Meta-Llama-3-8B-Instruct",
    "Phi-3-mini-4k-instruct",
    "Mixtral-8x22B-Instruct-v0.1",
    "OLMo-7B-Instruct",
    "Mixtral-8x7B-Instruct-v0.1",
]
CHANCE = {"gsm8k": 0.0, "arc": 0.25, "mmlu": 0.25, "hellaswag": 0.25}
OTHER_CHANCE = {"gsm8k": 0.25, "arc": 0.25, "hellaswag": 0.0}


def answers(rows, column, rng):
    """Right and wrong answers with the printed means, as many as the printed errors imply.

    Which item a model gets right is not published: in any order, independent between models.
    """
    sizes = []
    for row in rows:
        p, error = float(row[column]), float(row[f"{column}_std"])
        sizes.append(round(p * (1 - p) / error**2) if error else 0)
    n = max(sizes)
    return np.array(
        [rng.permutation(np.arange(n) < round(float(row[column]) * n)) for row in rows], float
    )


@pytest.mark.slow
def test_constat_expects_what_its_authors_tables_expect(shared):
    with (shared / "published/constat_tables.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 710
    tables = {}
    for row in rows:
        tables.setdefault((row["benchmark"], row["kind"]), []).append(row)
    assert len(tables) == 11
    rng = np.random.default_rng(1)
    off, spread, agree = [], [], []
    for (benchmark, kind), own in tables.items():
        known = [row for row in own if row["model"].split("/")[-1] in REFERENCES]
        tested = [row for row in own if row not in known]
        assert len(known) == 20
        other = OTHER_CHANCE if kind == "reference" else CHANCE
        first, second = (
            answers([*tested, *known], column, rng) for column in ("score_model", "score_model_ref")
        )
        n = len(tested)
        found = constat(
            (first[:n], second[:n]),
            (first[n:], second[n:]),
            chance=(CHANCE[benchmark], other[benchmark]),
            draws=50,
        )
        for row, expected in zip(tested, found, strict=True):
            assert expected.score == pytest.approx(float(row["score_model"]), abs=1e-3)
            # Fifty draws; and contaminated models lie beyond the range of the references.
            off.append(expected.expected - float(row["estimated_contamination"]))
            assert expected.delta == pytest.approx(float(row["delta"]), abs=0.03), row["model"]
            spread.append(expected.error / float(row["delta_std"]))
            agree.append((expected.p < 0.05) == (float(row["p_value"]) < 0.05))
    assert np.abs(off).max() < 0.03
    assert np.median(np.abs(off)) < 0.004
    assert abs(np.mean(off)) < 0.002
    # Independent answers are noisier than those of real models, which find the same items hard.
    assert 1 < np.median(spread) < 1.4
    assert np.mean(agree) > 0.93


def skilled(rng, models, n, lift=0.0):
    skill = np.linspace(0.3, 0.8, models)
    return (rng.random((models, n)) < skill[:, None] + lift).astype(float)


def test_a_memorised_benchmark_is_above_what_is_expected_and_an_honest_model_is_not():
    rng = np.random.default_rng(3)
    known = (skilled(rng, 10, 400), skilled(rng, 10, 300, 0.1))
    memo = np.concatenate([np.ones(120), rng.random(280) < 0.5]).astype(float)
    honest = (rng.random(400) < 0.5).astype(float)
    second = (rng.random((2, 300)) < 0.6).astype(float)
    leak, clean = constat((np.stack([memo, honest]), second), known, draws=100)
    assert leak.p < 0.05
    assert leak.low > 0.03
    assert leak.delta == pytest.approx(0.15, abs=0.06)
    assert clean.p > 0.05
    assert leak.score - leak.expected == pytest.approx(leak.delta, abs=0.01)


@pytest.mark.slow
def test_constat_is_seldom_wrong_about_honest_models():
    rng = np.random.default_rng(7)
    found = []
    for seed in range(3):
        known = (skilled(rng, 8, 200), skilled(rng, 8, 200))
        tested, other = ((rng.random((30, 200)) < 0.55).astype(float) for _ in range(2))
        found += constat((tested, other), known, draws=60, seed=seed)
    assert np.mean([one.p < 0.05 for one in found]) < 0.12


def test_an_inflation_has_newcombe_limits_and_its_p():
    public = (np.arange(100) < 80).astype(float)
    retro = (np.arange(50) < 30).astype(float)
    found = inflation(public, retro)
    assert found.difference == pytest.approx(0.2)
    # Wilson limits .7112 .8666 and .4618 .7239; the rest is Newcombe's method 10.
    low = 0.2 - np.hypot(0.8 - 0.7112, 0.7239 - 0.6)
    high = 0.2 + np.hypot(0.8666 - 0.8, 0.6 - 0.4618)
    assert (found.low, found.high) == pytest.approx((low, high), abs=2e-4)
    pooled = 110 / 150
    z = 0.2 / np.sqrt(pooled * (1 - pooled) * (1 / 100 + 1 / 50))
    assert found.p == pytest.approx(stats.norm.sf(z))
    graded = inflation(public * 0.5, retro * 0.5)
    assert graded.difference == pytest.approx(0.1)
    assert graded.low < 0.1 < graded.high


def test_equality_must_be_shown_and_is_not_had_for_want_of_items():
    rng = np.random.default_rng(1)
    many = (rng.random(8000) < 0.6).astype(float), (rng.random(8000) < 0.6).astype(float)
    few = many[0][:40], many[1][:40]
    assert equivalent(*many) < 0.05
    assert stats.ttest_ind(*few).pvalue > 0.05
    assert equivalent(*few) > 0.05
    assert equivalent(many[0], many[1] * 0.8) > 0.5
    assert equivalent(np.ones(30), np.ones(30)) == 0
    assert equivalent(np.ones(30), np.zeros(30)) == 1
    assert np.isnan(equivalent(np.ones(1), np.ones(1)))
    assert np.isnan(equivalent(np.ones(30), np.ones(30), cluster=np.zeros(30, int)))


def on_passages(rng, size):
    """Right and wrong answers to 60 passages of some questions each, and which passage each is of."""
    passage = np.repeat(np.arange(60), size)
    return (rng.random(len(passage)) < rng.random(60)[passage]).astype(float), passage


def test_questions_about_one_passage_are_no_independent_evidence():
    rng = np.random.default_rng(4)
    wrong = {"passages": 0, "questions": 0}
    for _ in range(300):
        public, passage = on_passages(rng, 5)
        retro = (rng.random(400) < 0.5).astype(float)
        wrong["passages"] += inflation(public, retro, passage).p < 0.05
        wrong["questions"] += inflation(public, retro).p < 0.05
    assert wrong["passages"] / 300 == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 300))
    assert wrong["questions"] > 2 * wrong["passages"]


def panel(rng, models, n, benchmark, lift=0.0, memo=None):
    scores = skilled(rng, models, n, lift)
    series = [series_of(row, model=f"m{at}", benchmark=benchmark) for at, row in enumerate(scores)]
    if memo is not None:
        right = (rng.random(n) < memo).astype(float)
        series.append(series_of(right, model="memo", benchmark=benchmark))
    return series


def beside_fresh(references):
    return RescoreSettings(
        references=tuple(references), reference_benchmarks=(("b", "fresh"),), least=50, draws=100
    )


def test_each_model_has_its_gain_beside_the_reference_benchmark():
    rng = np.random.default_rng(5)
    known = [f"m{at}" for at in range(6)]
    rows = holdout_rows(
        panel(rng, 7, 2000, "b", memo=0.9),
        panel(rng, 7, 2000, "fresh", memo=0.5),
        beside_fresh(known),
        np.arange(2000),
    )
    found = {(row["model"], row["method"]): row for row in rows}
    assert set(found) == {
        (model, method) for model in ("m6", "memo") for method in ("ConStat", "retro-holdout")
    }
    assert found["memo", "ConStat"]["p_holm"] < 0.05
    assert found["memo", "retro-holdout"]["gain"] == pytest.approx(0.4, abs=0.06)
    assert found["memo", "retro-holdout"]["gain_lo"] > 0.3
    assert found["m6", "retro-holdout"]["p"] > 0.01


@pytest.mark.parametrize(
    ("known", "lift", "n", "said"),
    [
        ((), 0.0, 3000, "no reference model"),
        (("m0", "m1"), 0.15, 3000, "not shown to score alike"),
        (("m0", "m1"), 0.0, 40, "40 items of fresh"),
    ],
)
def test_a_retro_holdout_that_is_not_shown_to_be_the_same_test_gives_no_number(
    known, lift, n, said
):
    rng = np.random.default_rng(5)
    rows = holdout_rows(
        panel(rng, 3, 3000, "b"),
        panel(rng, 3, n, "fresh", lift),
        beside_fresh(known),
        np.arange(3000),
    )
    retro = [row for row in rows if row["method"] == "retro-holdout"]
    assert retro
    for row in retro:
        assert not {"gain", "gain_lo", "p"} & row.keys()
        assert row["note"]
        assert said in row["note"]
    for row in rows:
        if row["method"] == "ConStat":
            assert row["note"]


@pytest.fixture(scope="module")
def brook(bench_fixtures, tmp_path_factory):
    """Verdicts of one benchmark, and logs of six models on it and on another one."""
    folder = tmp_path_factory.mktemp("brook")
    items = bench_fixtures / "items/brook_math.jsonl"
    result = library.scan(bench_fixtures / "corpus", items, workers=1)
    rng = np.random.default_rng(2)
    rows = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    for name, questions in (
        ("brook_math", [row["question"] for row in rows]),
        ("brook_again", [f"Another question, number {at}?" for at in range(50)]),
    ):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["item_id", "question", *(f"m{at}" for at in range(6))])
            for at, question in enumerate(questions):
                right = rng.random(6) < np.linspace(0.2, 0.8, 6)
                writer.writerow([f"{name}-{at}", question, *right.astype(int)])
    return [
        *("--verdicts", library.write_report(result, folder / "verdicts")),
        *("--logs", folder / "brook_math.csv", folder / "brook_again.csv"),
        *("--least", "10", "--permutations", "99", "--json", "--quiet"),
    ]


@pytest.mark.slow
def test_a_reference_benchmark_is_given_on_the_command_line(brook, tmp_path):
    """The logs of the reference benchmark belong to no verdicts, and need not."""
    done = contam_here(
        *("rescore", *brook, "--out", tmp_path / "out", "--reference", "m0,m1,m2,m3,m4"),
        *("--reference-benchmark", "brook_math=brook_again"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (row,) = [row for row in found["holdout"] if row["method"] == "ConStat"]
    assert (row["model"], row["reference_benchmark"]) == ("m5", "brook_again")
    assert (row["n"], row["n_reference"]) == (49, 50)
    assert row["expected"] is not None
    assert {score["benchmark"] for score in found["scores"]} == {"brook_math"}
    section = (tmp_path / "out/summary.md").read_text(encoding="utf-8").partition("## Beside")[2]
    assert f"{row['score']:.4f} | {row['score_reference']:.4f} | {row['expected']:.4f}" in section
    assert f"| {row['gain']:.4f} [{row['gain_lo']:.3f}, -]".replace("[", "\\[") in section.replace(
        "\\]", "]"
    )
    assert "no reference model" not in section


@pytest.mark.parametrize(
    ("given", "code", "fact"),
    [
        ("brook_math", 2, "--reference-benchmark brook_math"),
        ("brook_math=brook_math", 2, "--reference-benchmark brook_math=brook_math"),
        ("nowhere=brook_again", 2, "nowhere"),
        ("brook_math=nowhere", 1, "brook_again"),
    ],
)
def test_a_reference_benchmark_that_is_not_there_is_an_error(brook, tmp_path, given, code, fact):
    out = tmp_path / "out"
    done = contam_here("rescore", *brook, "--out", out, "--reference-benchmark", given)
    assert_one_line_error(done, code, fact)
    assert not out.exists()
