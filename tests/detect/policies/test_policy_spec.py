"""Policies as data: checked when made, written down and read back, told apart by fingerprint."""

import json

import pytest

from contam.detect.policies import any_run, best_document, decon, shares, substrings
from contam.detect.policies.policy import policy_from_dict
from contam.errors import PolicyError

SPECS = [
    spec for module in (any_run, shares, substrings, best_document, decon) for spec in module.SPECS
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_spec_survives_json(spec):
    tree = json.loads(json.dumps(spec.to_dict()))
    assert policy_from_dict(tree).spec == spec


def test_every_published_policy_judges_differently():
    assert len({spec.fingerprint() for spec in SPECS}) == len(SPECS)


def test_prose_does_not_change_a_fingerprint_and_figures_do():
    spec = any_run.LMEVAL_13
    assert spec.with_changes({"title": "Other words"}).fingerprint() == spec.fingerprint()
    assert spec.with_changes({"id": "x", "n": 12}).fingerprint() != spec.fingerprint()


def test_n_and_threshold_of_a_run_policy_are_one_figure():
    spec = any_run.OPENR1_8
    assert spec.with_changes({"n": 10}).thresholds == ((10.0, "contaminated"),)
    assert spec.with_changes({"thresholds": {"contaminated": 9}}).n == 9
    with pytest.raises(PolicyError):
        spec.with_changes({"n": 10, "thresholds": {"contaminated": 9}})


@pytest.mark.parametrize(
    "changes",
    [
        {"unit": "char"},
        {"aggregation": "share of grams"},
        {"n": 0},
        {"n": True},
        {"n": 8.5},
        {"comparison": "about"},
        {"parts": ["hint"]},
        {"thresholds": {"clean": 0.1}},
        {"parts": []},
        {"parts": ["question", "question"]},
        {"thresholds": {}},
        {"thresholds": {"contaminated": "much"}},
        {"thresholds": {"suspect": 0.9, "contaminated": 0.2}},
        {"parameters": {"n_substrings": 3}},
        {"colour": "red"},
    ],
    ids=str,
)
def test_a_change_that_makes_no_sense_is_refused(changes):
    with pytest.raises(PolicyError):
        shares.LLAMA3_8GRAM.with_changes(changes)


def test_a_parameter_keeps_its_kind():
    spec = decon.DECON_DEFAULT
    assert spec.with_changes({"parameters": {"ramp_start": 25}}).number("ramp_start") == 25.0
    for value in ("25", True, None):
        with pytest.raises(PolicyError):
            spec.with_changes({"parameters": {"ramp_start": value}})
    with pytest.raises(PolicyError):
        spec.with_changes({"parameters": {"least_tokens": 2.5}})
