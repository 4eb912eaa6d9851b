"""Several answers to one item are no items: errors know it, and pass@k is that of all ways."""

import itertools
import re

import numpy as np
import pytest

from contam.rescore.stats.clusters import pass_at, samples_note


@pytest.mark.parametrize("n", [2, 4, 7])
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(n):
    for right, k in itertools.product(range(n + 1), range(1, n + 1)):
        draws = list(itertools.combinations([1] * right + [0] * (n - right), k))
        (found,) = pass_at(k, np.array([float(right)]), np.array([n]))
        assert found == pytest.approx(np.mean([max(draw) for draw in draws]))


def test_the_parts_of_an_error_are_those_of_the_world():
    """Items from Beta(2, 2), 5 answers each: Var(x) = 0.05, E[sigma^2] = 0.2."""
    rng, n, k = np.random.default_rng(0), 300, 5
    told, means, passed, errors = [], [], [], []
    for _ in range(300):
        right = rng.binomial(k, rng.beta(2, 2, n))
        scores = right / k
        note = samples_note(scores, np.full(n, k))
        figures = [float(one) for one in re.findall(r"0\.[0-9]+", note)]
        told.append(figures[:3])
        means.append(scores.mean())
        passed.append(figures[3])
        errors.append(figures[4])
    whole, between, within = np.mean(told, axis=0)
    assert whole == pytest.approx(np.std(means), rel=0.1)
    assert between == pytest.approx(np.sqrt(0.05 / n), rel=0.05)
    assert within == pytest.approx(np.sqrt(0.2 / k / n), rel=0.05)
    assert np.mean(errors) == pytest.approx(np.std(passed), rel=0.1)


@pytest.mark.parametrize(
    ("scores", "answers"),
    [([0.0, 1.0, 1.0], 4), ([0.5, 0.25], 1), ([0.3, 0.61], 4), ([2.0, 0.5], 2), ([0.5], 2)],
)
def test_what_is_no_share_of_answers_has_no_parts(scores, answers):
    assert samples_note(np.array(scores), np.full(len(scores), answers)) == ""
