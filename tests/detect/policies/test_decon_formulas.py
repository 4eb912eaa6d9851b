"""decon's arithmetic against the values derived from its behaviour."""

import numpy as np
import pytest

from contam.detect.policies import decon_formulas as f


def ramp(length, value):
    return f.ramp(length, value, start=20, end=50)


def base(kind, o_q, o_a, o_p, grams=20, answer_tokens=4):
    weight = f.weights(
        "A" in kind, "P" in kind, f.question_confidence(grams), f.answer_confidence(answer_tokens)
    )
    return f.base_score(weight, o_q, o_a, o_p)


@pytest.mark.parametrize(("length", "score"), [(20, 0.760), (35, 0.8444), (50, 0.950)])
def test_a_base_of_95_is_shrunk_for_short_items(length, score):
    assert f.scaled_score(0.95, 0.8, ramp(length, 0.8)) == pytest.approx(score, abs=5e-5)


@pytest.mark.parametrize(("length", "needed"), [(0, 1), (20, 1), (35, 0.9), (50, 0.8), (900, 0.8)])
def test_the_needed_score_falls_from_1_to_the_threshold(length, needed):
    assert ramp(length, 0.8) == pytest.approx(needed)


@pytest.mark.parametrize(
    ("threshold", "gate"), [(0.8, 0.7143), (0.78, 0.6857), (0.88, 0.8286), (0.2, 0)]
)
def test_the_early_gate_follows_the_threshold(threshold, gate):
    assert f.early_gate(threshold) == pytest.approx(gate, abs=5e-5)


@pytest.mark.parametrize(("grams", "score"), [(20, 0.750), (40, 0.750), (10, 0.5625)])
def test_a_question_without_its_answer_is_never_flagged(grams, score):
    assert base("QA", 1, 0, 0, grams) == pytest.approx(score)


@pytest.mark.parametrize(("grams", "least"), [(5, 0.624), (10, 0.543), (15, 0.418), (20, 0.200)])
def test_the_least_answer_overlap_that_flags_a_whole_question(grams, least):
    assert base("QA", 1, least + 0.0005, 0, grams) >= 0.8
    assert base("QA", 1, least - 0.0015, 0, grams) < 0.8


def test_question_answer_and_passage_weigh_7_2_and_1():
    assert base("QAP", 1, 1, 0) == pytest.approx(0.900)
    assert base("QAP", 1, 0, 1) == pytest.approx(0.800)
    assert base("QAP", 0, 1, 1) == pytest.approx(0.300)


@pytest.mark.parametrize(("grams", "score"), [(10, 0.6375), (18, 0.8075), (20, 0.850)])
def test_a_question_without_its_passage(grams, score):
    assert base("QP", 1, 0, 0, grams) == pytest.approx(score)


@pytest.mark.parametrize("kind", ["Q", "QA", "QP", "QAP"])
def test_an_item_that_is_all_there_scores_1_whatever_the_confidence(kind):
    for grams in range(1, 25):
        for tokens in range(1, 6):
            assert base(kind, 1, 1, 1, grams, tokens) == pytest.approx(1.0)


def test_one_changed_token_passes_the_gate_from_37_and_flags_from_41():
    lengths = np.arange(20, 60)
    o_q = (lengths - 9) / (lengths - 4)
    through = o_q >= ramp(lengths, f.early_gate(0.8))
    flagged = f.scaled_score(o_q, 0.8, ramp(lengths, 0.8)) >= 0.8
    assert lengths[through].min() == 37
    assert lengths[through & flagged].min() == 41
    assert np.all(flagged[lengths >= 41])


def test_a_base_of_exactly_1_is_not_shrunk():
    assert f.scaled_score(1.0, 0.8, 1.0) == 1.0
    assert f.scaled_score(0.999, 0.8, 1.0) == pytest.approx(0.7992)


def test_arrays_and_numbers_give_the_same():
    one = [float(base("QAP", o, 0.5, 0.25, g, 2)) for o, g in ((0.2, 3), (0.9, 30))]
    weight = f.weights(
        np.array([True, True]),
        np.array([True, True]),
        f.question_confidence([3, 30]),
        f.answer_confidence([2, 2]),
    )
    assert f.base_score(weight, [0.2, 0.9], 0.5, 0.25).tolist() == pytest.approx(one)
