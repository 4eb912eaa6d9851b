"""A policy is one module: everything else learns of it from what it declares."""

import sys

import pytest

import contam
from contam.detect import policies
from contam.detect.policies.policy import (
    get_policy,
    list_policies,
    policy_from_dict,
    shortest_run,
)
from contam.errors import ContamError

MODULE = """
from dataclasses import dataclass, replace
from typing import ClassVar

from contam.detect.policies.any_run import LMEVAL_13, AnyRun
from contam.detect.policies.policy_spec import PolicyTraits
from contam.detect.policies.common import COUNTS_RUNS

SPECS = (replace(LMEVAL_13, id="added-9", base="added-9", n=9, thresholds=((9.0, "contaminated"),)),)


class Added(AnyRun):
    traits = replace(COUNTS_RUNS, CHANGES)


build = Added
"""
TEXT = "seven small kites flew over the old harbour wall before the rain came in from the west"


@pytest.fixture
def add(tmp_path, monkeypatch):
    def write(changes="monotone=False"):
        module = MODULE.replace("CHANGES", changes)
        (tmp_path / "zz_added.py").write_text(module, encoding="utf-8")
        monkeypatch.setattr(policies, "__path__", [*policies.__path__, str(tmp_path)])

    yield write
    sys.modules.pop("contam.detect.policies.zz_added", None)


def test_a_module_in_the_folder_is_listed_behind_the_others_and_judges(add, tmp_path):
    before = list_policies()
    add()
    assert tuple(spec for spec in list_policies() if spec.id != "added-9") == before
    modules = [spec.id for spec in list_policies() if spec.base == spec.id]
    assert modules[-1] == "added-9"
    (tmp_path / "corpus.jsonl").write_text(f'{{"text": "{TEXT}"}}\n', encoding="utf-8")
    (tmp_path / "items.jsonl").write_text(
        f'{{"id": "1", "question": "{TEXT}"}}\n', encoding="utf-8"
    )
    result = contam.scan(
        tmp_path / "corpus.jsonl", tmp_path / "items.jsonl", policies=["contam", "added-9"]
    )
    judged = {one.policy: one.label for one in result.flagged()}
    assert judged == {"contam": "contaminated", "added-9": "contaminated"}


def test_a_policy_that_says_it_reads_text_must_have_a_reader(add):
    add("reads_text=True")
    with pytest.raises(ContamError, match="added-9"):
        get_policy("added-9")


def test_traits_name_parameters_that_the_policy_has_and_hold_for_files_made_from_it():
    for spec in list_policies():
        policy = get_policy(spec.id)
        assert 1 <= shortest_run(policy) <= spec.n
        if policy.traits.sufficient_share:
            assert 0 < spec.number(policy.traits.sufficient_share) <= 1
    changed = policy_from_dict({"base": "gpt3-test", "id": "own", "parameters": {"least_n": 6}})
    assert shortest_run(changed) == 6
