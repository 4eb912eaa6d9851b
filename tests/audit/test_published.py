"""What science.md says of decoys, labels and judges comes out."""

import csv
import json

import numpy as np
import pytest

from contam.audit.chance import calibration
from contam.audit.review import rates


@pytest.fixture(scope="module")
def expected(shared):
    return json.loads((shared / "published" / "expected.json").read_text())


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
    from contam.rescore.stats.dealing import benjamini_hochberg

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
