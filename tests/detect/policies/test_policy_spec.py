"""Policies as data: checked when made, written down and read back, told apart by fingerprint."""

import json

import pytest

from contam.detect.policies import any_run, best_document, decon, shares, substrings
from contam.detect.policies.policy import get_policy, policy_from_dict
from contam.errors import PolicyError

SPECS = [
    spec for module in (any_run, shares, substrings, best_document, decon) for spec in module.SPECS
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_spec_survives_json(spec):
    tree = json.loads(json.dumps(spec.to_dict()))
    assert policy_from_dict(tree).spec == spec


@pytest.mark.parametrize("preset", ["decon-default:olmo-web", "decon-default:olmo-synth"])
def test_a_preset_survives_json(preset):
    spec = get_policy(preset).spec
    assert spec.id == preset
    assert policy_from_dict(json.loads(json.dumps(spec.to_dict()))).spec == spec


def test_every_published_policy_judges_differently():
    assert len({spec.fingerprint() for spec in SPECS}) == len(SPECS)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_what_is_known_second_hand_says_approximate(spec):
    assert spec.approximate or spec.confidence != "secondary"
    assert spec.approximate == ("approximate" in spec.description.lower())


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
        {"parts": []},
        {"parts": "question"},
        {"parts": ["question", "question"]},
        {"parts": ["hint"]},
        {"thresholds": {}},
        {"thresholds": {"clean": 0.1}},
        {"thresholds": {"contaminated": "much"}},
        {"thresholds": {"suspect": 0.9, "contaminated": 0.2}},
        {"thresholds": 0.4},
        {"comparison": "about"},
        {"parameters": {"n_substrings": 3}},
        {"title": ""},
        {"colour": "red"},
        {"description": "It no longer says what it is."},
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


def test_prose_of_an_older_record_is_not_taken_over():
    tree = {**shares.PALM_70.to_dict(), "count_rule": "as it was said before", "source": 5}
    assert policy_from_dict(tree).spec == shares.PALM_70


def test_asking_for_what_a_policy_does_not_have():
    with pytest.raises(PolicyError):
        any_run.LMEVAL_13.parameter("draw_seed")
    with pytest.raises(PolicyError):
        any_run.LMEVAL_13.threshold("suspect")
