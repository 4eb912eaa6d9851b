"""Published figures of decoys and labels come out; labels correct a judge, who alone gives no rate."""

import csv
import json

import numpy as np
import pytest

from contam.audit import calibration, rates
from contam.audit.pack import run_audit
from contam.audit.rates import powered, read_judged, reviewed, write_judged
from contam.audit.sample import Case, Label, population, write_labels
from contam.audit.spec import load_spec
from contam.cli.main import main
from contam.detect.report import load_report
from contam.errors import ConfigError
from tests.audit.conftest import write_spec


@pytest.fixture(scope="module")
def expected(shared):
    return json.loads((shared / "published" / "expected.json").read_text())


def test_judge_factor_two(expected):
    case = expected["judge_factor_two"]
    for example in case["examples"]:
        b, p, q = (example[name] for name in "bpq")
        n = 10_000
        right, wrong = round(n * b * p), round(n * b) - round(n * b * p)
        denied = round(n * (1 - b) * q)
        truth = np.repeat([1.0, 1.0, 0.0, 0.0], [right, wrong, denied, n - right - wrong - denied])
        said = np.repeat([1.0, 0.0, 0.0, 1.0], [right, wrong, denied, n - right - wrong - denied])
        found = powered(truth, said, said)
        assert found.saving == pytest.approx(example["tau_max"], rel=1e-6)
        assert np.mean(truth == said) == pytest.approx(example["agreement"])
        assert np.mean(said) - np.mean(truth) == pytest.approx(example["judge_bias"], abs=1e-9)
    largest = 0.0
    grid = [*np.linspace(0.05, 0.95, 13), 0.99, 0.9999]
    for b in grid:
        for p in grid:
            for q in grid:
                if 0.5 <= b * p + (1 - b) * q <= b:
                    largest = max(largest, squared_correlation(b, p, q))
    assert squared_correlation(*case["at_b_p_q"]) == pytest.approx(case["sup_rho2_on_grid"])
    assert largest == pytest.approx(case["sup_rho2_on_grid"])
    assert 1 / (1 - largest) < case["bound_tau"]


def squared_correlation(b, p, q):
    """As a review computes it of items with weights."""
    weights = np.array([b * p, b * (1 - p), (1 - b) * q, (1 - b) * (1 - q)])
    return rates._rho2(np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 1]), weights)


def test_q_values_of_the_worked_example(expected):
    case = expected["target_decoy_oracle"]
    targets, decoys = np.array(case["targets"]), np.array(case["decoys"])
    for name, cautious in (("plus1", True), ("plus0", False)):
        found = calibration.calibrate(targets, decoys, cautious=cautious)
        assert found.fdr == pytest.approx(case[f"fdr_{name}"], abs=1e-10)
        assert found.q == pytest.approx(case[f"q_{name}"], abs=1e-10)
    cautious, plain = (calibration.calibrate(targets, decoys, cautious=c).q for c in (True, False))
    assert (cautious <= 0.2).sum() == case["n_target_q_le_.20_plus1"] == 11
    assert (cautious <= 0.1).sum() == case["n_target_q_le_.10_plus1"] == 0
    assert (plain <= 0.05).sum() == case["n_target_q_le_.05_plus0"] == 9
    p = calibration.calibrate(targets, decoys).p
    assert p == pytest.approx(case["empirical_p_of_each_target"], abs=1e-10)
    from contam.rescore.stats.permutation import benjamini_hochberg

    rejected = int((np.asarray(benjamini_hochberg(p)) <= 0.1).sum())
    assert rejected == case["bh_reject_10pct_on_empirical_p"]


def test_a_bad_model_is_not_listened_to(shared, expected):
    case = expected["ppi_forest_badmodel"]
    with (shared / "published" / "ppi_forest_badmodel.csv").open(newline="") as file:
        rows = np.array([[float(x) for x in row] for row in list(csv.reader(file))[1:]])
    read = rows[:, 3] == 1
    gold, proxy, rest = rows[read, 1], rows[read, 2], rows[~read, 2]
    assert (len(gold), len(rest)) == (case["n"], case["N"])
    level = 1 - case["alpha"]
    tuned = rates.powered(gold, proxy, rest, level=level)
    assert tuned.weight == 0
    assert tuned.interval.estimate == pytest.approx(case["ppipp_mean"], abs=1e-9)
    assert [tuned.interval.low, tuned.interval.high] == pytest.approx(case["ppipp_ci"], abs=1e-9)
    alone = rates.powered(gold, proxy, rest, weight=0.0, level=level).interval
    assert [alone.low, alone.high] == pytest.approx(case["classical_ci"], abs=1e-9)
    plain = rates.powered(gold, proxy, rest, weight=1.0, level=level).interval
    assert plain.estimate == pytest.approx(case["ppi_mean_lam1"], abs=1e-9)
    assert [plain.low, plain.high] == pytest.approx(case["ppi_ci_lam1"], abs=1e-9)
    assert plain.high - plain.low > alone.high - alone.low


def test_labels_needed(expected):
    for case in expected["ppi_sample_size"]["cases"]:
        rest = np.inf if case["N"] is None else case["N"]
        found = rates.labels_needed(case["s2"], case["rho2"], case["w"], rest)
        assert found == pytest.approx(case["n"], rel=1e-8)


def test_a_fair_proxy_narrows_the_interval(shared):
    # Nothing published names the models: of all pairs and simple rules of labelling, only the
    # first hundred items of model 30, with model 34 as the proxy, give the printed figures.
    with (shared / "published" / "helm_gsm8k_items.csv").open(newline="") as file:
        rows = {int(row["model_index"]): row["correct_bits"] for row in csv.DictReader(file)}
    model, proxy = (np.array(list(rows[i]), dtype=float) for i in (30, 34))
    gold, said, rest = model[:100], proxy[:100], proxy[100:]
    alone = rates.powered(gold, said, rest, weight=0.0).interval
    assert [alone.estimate, alone.low, alone.high] == pytest.approx([0.58, 0.483, 0.677], abs=5e-4)
    tuned = rates.powered(gold, said, rest)
    assert tuned.weight == pytest.approx(0.245, abs=5e-4)
    found = [tuned.interval.estimate, tuned.interval.low, tuned.interval.high]
    assert found == pytest.approx([0.5705, 0.476, 0.665], abs=5e-4)


def case_of(at, *, flagged=True):
    stratum = ("b", "suspect" if flagged else "clean", "question")
    pair = f"pair{at}" if flagged else ""
    return Case(("b", "", f"i{at}", "contam"), stratum, 0.5, f"d{at}", ("s", at), pair)


def answer(at, said, model="m", pair=None):
    return {"pair": pair or f"pair{at}", "model": model, "answer": said}


def label(case, said):
    benchmark, split, item, policy = case.judged
    return Label(
        benchmark=benchmark, split=split, item=item, policy=policy, evidence=case.digest,
        reader="anna", label=bool(said),
    )  # fmt: skip


def world(rng, n=400, *, right=0.9, share=0.3):
    """Flagged items, the truth about them, and what a judge says that is mostly right."""
    cases = [case_of(at) for at in range(n)]
    truth = rng.random(n) < share
    said = np.where(rng.random(n) < right, truth, ~truth)
    return cases, truth, [answer(at, "yes" if yes else "no") for at, yes in enumerate(said)]


def test_no_human_labels_no_judged_rate():
    cases, _, judged = world(np.random.default_rng(0))
    found = reviewed(cases, [], judged)
    (row,) = found["policies"]
    assert (row["rate"], row["precision"], row["estimable"]) == (None, None, False)
    assert row["reason"] == "no labels"
    assert row["n_judged"] == 400
    assert found["judges"][0]["n_yes"] > 0


def test_a_fair_judge_narrows_the_interval_and_its_limit_is_told():
    cases, truth, judged = world(np.random.default_rng(1))
    labels = [label(case, truth[at]) for at, case in enumerate(cases[:80])]
    (alone,), (both,) = (
        reviewed(cases, labels, some)["policies"] for some in ([], judged)
    )  # fmt: skip
    widths = [row["rate_hi"] - row["rate_lo"] for row in (alone, both)]
    assert widths[1] < 0.8 * widths[0]
    assert both["rate_lo"] < truth.mean() < both["rate_hi"]
    assert both["saving_most"] > 1.5
    # Precision stays that of labels alone.
    assert both["precision"] == alone["precision"]


@pytest.mark.slow
@pytest.mark.parametrize("right", [0.95, 0.5, 0.05], ids=["good", "random", "contrary"])
def test_the_interval_holds_the_truth_however_good_the_judge_is(right):
    rng = np.random.default_rng(2)
    hit = 0
    for _ in range(300):
        cases, truth, judged = world(rng, 150, right=right)
        labels = [label(cases[at], truth[at]) for at in rng.permutation(150)[:25]]
        (row,) = reviewed(cases, labels, judged)["policies"]
        hit += row["rate_lo"] <= truth.mean() <= row["rate_hi"]
    assert hit / 300 > 0.92


def test_two_labels_and_a_judge_that_agrees_are_not_certain():
    cases, _, judged = world(np.random.default_rng(3), 100)
    answers = {row["pair"]: row["answer"] == "yes" for row in judged}
    two = [next(case for case in cases if answers[case.pair] is value) for value in (True, False)]
    labels = [label(case, answers[case.pair]) for case in two]
    (row,) = reviewed(cases, labels, judged)["policies"]
    assert row["rate_hi"] - row["rate_lo"] > 0.5


def test_no_answer_is_neither_yes_nor_no():
    cases, truth, judged = world(np.random.default_rng(4))
    labels = [label(case, truth[at]) for at, case in enumerate(cases[:60])]
    unclear = [
        row | {"answer": "no answer"} if at % 3 == 0 else row for at, row in enumerate(judged)
    ]
    left_out = [row for row in unclear if row["answer"] != "no answer"]
    found, without = (reviewed(cases, labels, some) for some in (unclear, left_out))
    assert found["policies"] == without["policies"]
    assert found["judges"][0]["n_no_answer"] == 134
    silent = [row | {"answer": "no answer"} for row in judged]
    (nothing,), (alone,) = (
        reviewed(cases, labels, some)["policies"] for some in (silent, [])
    )  # fmt: skip
    assert nothing["n_judged"] == 0
    assert {name: nothing[name] for name in alone} == alone


def test_answers_about_other_evidence_are_counted_and_not_used():
    cases, truth, judged = world(np.random.default_rng(5))
    labels = [label(case, truth[at]) for at, case in enumerate(cases[:60])]
    old = [answer(0, "yes", pair=f"gone{at}") for at in range(7)]
    found = reviewed(cases, labels, [*old, *judged])
    assert found["n_stale_judged"] == 7
    assert found["policies"] == reviewed(cases, labels, judged)["policies"]


def test_two_judges_are_listed_apart_and_their_mean_counts():
    cases, truth, judged = world(np.random.default_rng(6))
    labels = [label(case, truth[at]) for at, case in enumerate(cases[:60])]
    twice = [*judged, *(row | {"model": "other"} for row in judged)]
    found = reviewed(cases, labels, twice)
    assert [judge["model"] for judge in found["judges"]] == ["m", "other"]
    assert found["policies"] == reviewed(cases, labels, judged)["policies"]


@pytest.mark.slow
def test_an_audit_takes_what_a_judge_said(tmp_path, capsys):
    spec = load_spec(write_spec(tmp_path, audit="decoys = 0"))
    first = run_audit(spec).folder
    every = population(load_report(first / "checks" / "together"))
    pairs = {case.pair: case.key._asdict() for case in every if case.pair}
    rows = [
        {**key, "pair": pair, "model": "grep", "answer": "yes", "more": 1}
        for pair, key in pairs.items()
    ]
    path = tmp_path / "judged.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cases = population(load_report(first / "checks" / "together"), "contam")
    strata = {}
    for case in cases:
        strata.setdefault(case.stratum, []).append(case)
    labels = [label(one, one.flagged) for some in strata.values() for one in some[:3]]
    write_labels(tmp_path / "labels.jsonl", labels)
    more = 'decoys = 0\njudged = "judged.jsonl"\nlabels = ["labels.jsonl"]'
    pack = run_audit(load_spec(write_spec(tmp_path, out="second", audit=more)))
    review = pack.facts.review
    assert review["judges"][0]["n_yes"] > 20
    assert review["n_stale_judged"] == 0
    contam = [row for row in review["policies"] if row["policy"] == "contam"]
    assert all(row["n_judged"] == row["n_flagged"] and row["estimable"] for row in contam)
    assert "grep was asked, too" in (pack.folder / "report.html").read_text()
    assert "grep" in (pack.folder / "report.md").read_text()
    assert read_judged([pack.folder / "judged.parquet"]) == read_judged([path])
    assert main(["audit", "verify", str(pack.folder), "--sample", "0"]) == 0
    capsys.readouterr()


GOOD = {"benchmark": "b", "split": "", "item_id": "1", "pair": "p", "model": "m", "answer": "no"}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        json.dumps(GOOD) + "\n" + json.dumps(GOOD),
        *(
            json.dumps({**GOOD, **bad})
            for bad in ({"answer": "maybe"}, {"pair": 1}, {"model": None})
        ),
        *(json.dumps({k: v for k, v in GOOD.items() if k != name}) for name in GOOD),
    ],
)
def test_a_file_that_holds_other_than_answers_is_refused(tmp_path, text):
    path = tmp_path / "judged.jsonl"
    path.write_text(json.dumps(GOOD) + "\n")
    assert read_judged([path]) == [GOOD]
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_judged([path])
    assert "judged.jsonl" in str(refused.value)
    with pytest.raises(ConfigError):
        read_judged([tmp_path / "gone.jsonl"])


def test_a_parquet_file_of_answers_is_read_whole_or_refused(tmp_path):
    path = tmp_path / "judged.parquet"
    write_judged(path, [GOOD])
    assert read_judged([path]) == [GOOD]
    with pytest.raises(ConfigError):
        read_judged([path, path])
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ConfigError):
        read_judged([path])
