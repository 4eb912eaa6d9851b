"""Finding a policy: by id, by preset, from a file; and what happens when there is none."""

import json
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
from contam.errors import ContamError, PolicyError
from tests.integration.inputs import FILLER, QUESTION, corpus_of, write_items


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policy_is_found_by_its_id():
    assert get_policy("lmeval-13").spec.n == 13


@pytest.mark.parametrize("name", ["lmeval", "", "decon-default:olmo", "lmeval-13:strict", "a/b"])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(PolicyError) as caught:
        get_policy(name)
    assert caught.value.hint


def test_presets_differ_where_they_say():
    for name, threshold, ramp in (("olmo-web", 0.88, (25, 50)), ("olmo-synth", 0.78, (5, 26))):
        spec = get_policy(f"decon-default:{name}").spec
        assert spec.thresholds == ((threshold, "contaminated"),)
        assert (spec.number("ramp_start"), spec.number("ramp_end")) == ramp
    assert get_policy("decon-default:olmo-web").spec.parts == ("question", "choices", "answer")


def test_a_toml_file_states_what_differs(tmp_path):
    path = write(
        tmp_path,
        "strict.toml",
        'base = "llama3-8gram"\nparts = ["question"]\n[thresholds]\nsuspect = 0.1\ncontaminated = 0.25\n',
    )
    spec = get_policy(str(path)).spec
    assert spec.id == "strict"
    assert spec.thresholds == ((0.1, "suspect"), (0.25, "contaminated"))
    assert spec.description.startswith("Changed from llama3-8gram")
    assert spec.n == 8


def test_a_file_that_changes_a_figure_does_not_keep_the_published_words(tmp_path):
    published = get_policy("lmeval-13").spec
    spec = get_policy(write(tmp_path, "long.toml", 'base = "lmeval-13"\nn = 25\n')).spec
    assert "13 words" in published.title
    assert "13 words" not in spec.title
    assert "25" in spec.title
    assert "25" in spec.description.partition("As published")[0]
    named = write(tmp_path, "own.toml", 'base = "lmeval-13"\nn = 25\ntitle = "Our 25 words"\n')
    assert get_policy(named).spec.title == "Our 25 words"
    same = get_policy(write(tmp_path, "same.toml", 'base = "lmeval-13"\nid = "same"\n')).spec
    assert same.title == published.title
    preset = write(tmp_path, "p.toml", 'base = "palm-70"\n[thresholds]\ncontaminated = 0.5\n')
    assert "0.5" in get_policy(preset).spec.title


def test_a_written_down_policy_reads_back_the_same(tmp_path):
    spec = get_policy(
        write(tmp_path, "a.toml", 'base = "palm-70"\n[thresholds]\ncontaminated = 0.5')
    ).spec
    again = get_policy(write(tmp_path, "b.json", json.dumps(spec.to_dict()))).spec
    assert again == spec
    assert again.fingerprint() == spec.fingerprint()


def test_a_published_name_cannot_be_borrowed(tmp_path):
    path = write(tmp_path, "lmeval-13.toml", 'base = "lmeval-13"\nn = 10\n')
    with pytest.raises(PolicyError, match="name of a published policy"):
        get_policy(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "n = 10\n"),
        ("a.toml", 'base = "nobody"\n'),
        ("a.toml", 'base = "lmeval-13"\nunit = "char"\n'),
        ("a.toml", 'base = "lmeval-13"\nspeed = 3\n'),
        ("a.toml", 'base = "lmeval-13"\nid = "x"\nconfidence = "guess"\n'),
        ("a.toml", 'base = "lmeval-13"\nid = "x"\nconfidence = ["paper"]\n'),
        ("a.toml", "base = \n"),
        ("a.toml", 'base = "gpt4-50char"\nid = "x"\nparts = ["passage"]\n'),
        ("a.toml", 'base = "gpt4-50char"\n[parameters]\nn_substrings = 0\n'),
        ("a.toml", 'base = "decon-default"\n[parameters]\nramp_end = 5\n'),
        ("a.toml", 'base = "decon-default"\nid = "b"\n[parameters]\nrarity_within = "file"\n'),
        ("a.toml", 'base = "decon-default"\nid = "b"\n[parameters]\nanswer_gram = 0\n'),
        ("a.json", "[]"),
        ("a.json", "{"),
        ("a.json", '{"base": 3}'),
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path, name, text):
    with pytest.raises(PolicyError):
        get_policy(write(tmp_path, name, text))


def test_a_missing_or_binary_file_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="cannot read"):
        get_policy(tmp_path / "none.toml")
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyError):
        get_policy(path)


SPECS = {spec.id: spec for spec in list_policies()}


@pytest.mark.parametrize(
    ("base", "score"),
    [
        (spec.id, score)
        for spec in SPECS.values()
        for score in ("nan", "inf", "-inf", "60", "1.5", "-0.1")
        # A run of 60 words is a run.
        if not (spec.aggregation == "any run" and score == "60")
    ],
)
def test_a_threshold_that_no_score_can_reach_is_refused(tmp_path, base, score):
    """Every item would be clean; 60 is meant for a percentage."""
    labels = [label for _, label in SPECS[base].thresholds]
    lower = ["suspect = 0.1"] if "suspect" in labels else []
    lines = [f'base = "{base}"', "[thresholds]", *lower, f"contaminated = {score}"]
    with pytest.raises(PolicyError, match=r"threshold|flags from n|whole number"):
        get_policy(write(tmp_path, "mine.toml", "\n".join(lines)))


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (spec.id, name)
        for spec in SPECS.values()
        for name, value in spec.parameters
        if isinstance(value, float)
    ],
)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_parameter_is_a_finite_number(tmp_path, base, name, value):
    text = f'base = "{base}"\nid = "mine"\n[parameters]\n{name} = {value}'
    with pytest.raises(PolicyError, match=rf"parameter {name} cannot be -?(nan|inf)"):
        get_policy(write(tmp_path, "mine.toml", text))


@pytest.mark.parametrize(("base", "n"), [("openr1-8", 7), ("llama3-8gram", 6), ("gpt4-50char", 30)])
def test_a_policy_of_shorter_runs_than_a_scan_reports_is_refused(tmp_path, base, n):
    """Runs of common words shorter than `min_run` are not all reported: such a clean proves nothing."""
    path = tmp_path / "short.toml"
    path.write_text(f'base = "{base}"\nid = "short"\nn = {n}\n')
    items = write_items(tmp_path / "items.jsonl", QUESTION)
    corpus = corpus_of(tmp_path / "corpus", [FILLER])
    with pytest.raises(PolicyError, match=str(n)):
        contam.scan(corpus, items, policies=[str(path)])
    if base != "gpt4-50char":
        result = contam.scan(corpus, items, policies=[str(path)], min_run=n)
        assert [verdict.label for verdict in result] == ["clean"]


# ---------------------------------------------------------------------------------- adding a policy


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
