"""Decoys are no items, do not count where their items stand, and tell chance from leaks."""

import dataclasses
import json
import random

import numpy as np
import pytest
from pydantic import TypeAdapter

from contam.audit import calibration
from contam.audit.decoys import make_decoys
from contam.audit.pack import run_audit
from contam.audit.spec import AuditSpec, checked
from contam.benchmark.read_files import read_benchmarks
from contam.detect.report import load_report
from contam.errors import ConfigError
from contam.tables import schemas
from tests.audit.conftest import FIXTURES

NAMES = ("Anselm", "Brunhild", "Corentin", "Dagny", "Eskil", "Fenna", "Gudrun", "Hamza")
THINGS = ("lanterns", "kettles", "saddles", "anchors", "violins", "barrels", "ladders", "mirrors")
STEM = "Read the following short story with care and then work out the final amount step by step:"


def own_text(at):
    """A question that no other is like."""
    draw = random.Random(at)
    words = [f"{draw.choice('bdfgklmnprst')}{draw.choice('aeiou')}{draw.choice('bdglmnrst')}"]
    words = [words[0] + draw.choice(("er", "en", "ip", "ock", "urn")) + str(i) for i in range(14)]
    name, thing = NAMES[at % 8], THINGS[at // 8 % 8]
    story = " ".join(f"{word.rstrip('0123456789')}{draw.choice(('y', 'o', 'a'))}" for word in words)
    return f"Yesterday {name} counted {at + 100} {thing} beside {story}, and sold {at + 300} later."


def write_items(path, questions):
    rows = [
        {"id": f"q{at}", "question": text, "answer": f"{at + 17} pieces"}
        for at, text in enumerate(questions)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def write_corpus(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def audit(tmp_path, questions, texts, *, natural=(), **more):
    benchmarks = [{"paths": [write_items(tmp_path / "items.jsonl", questions)]}]
    if natural:
        paths = [write_items(tmp_path / "young.jsonl", natural)]
        benchmarks.append({"paths": paths, "decoys": True})
    spec = {
        "out": str(tmp_path / "pack"),
        "corpora": [{"name": "web", "paths": [write_corpus(tmp_path / "web.jsonl", texts)]}],
        "benchmarks": benchmarks,
        "policies": ("contam", "lmeval-13"),
        **more,
    }
    return run_audit(checked(TypeAdapter(AuditSpec).validate_python(spec), "spec"), workers=1)


def said(pack, policy, benchmark=None):
    rows = [row for row in pack.facts.calibration["policies"] if row["policy"] == policy]
    return next(row for row in rows if benchmark in (None, row["benchmark"]))


def test_decoys_are_made_the_same_of_the_same_items_and_are_none_of_them():
    for bench in read_benchmarks([FIXTURES / "items"]):
        made = make_decoys(bench, draw=1, seed=0)
        backwards = dataclasses.replace(bench, items=bench.items[::-1])
        again = {
            item.item_id: item for item in make_decoys(backwards, draw=1, seed=0).benchmark.items
        }
        assert again == {item.item_id: item for item in made.benchmark.items}
        assert make_decoys(bench, draw=2, seed=0).digest() != made.digest()
        assert make_decoys(bench, draw=1, seed=1).digest() != made.digest()
        questions = {item.question for item in bench.items}
        for item in made.benchmark.items:
            if made.kinds[item.split, item.item_id] == "swap":
                assert item.question not in questions


def test_a_swap_is_the_same_in_every_part_of_an_item(tmp_path):
    path = tmp_path / "one.jsonl"
    rows = [
        {"id": "a", "question": "Was Odalys paid 47 crowns?", "answer": "Yes, Odalys got 47."},
        {"id": "b", "question": "Did the mayor thank Percival in 1903?", "answer": "No."},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (bench,) = read_benchmarks([path])
    first, second = make_decoys(bench, draw=1, seed=0).benchmark.items
    number = next(word for word in first.question.split() if word.isdigit())
    assert number != "47"
    assert first.question == f"Was Percival paid {number} crowns?"
    assert first.answer == f"Yes, Percival got {number}."
    assert second.question.startswith("Did the mayor thank Odalys in 19")


def test_questions_without_words_are_joined_to_other_answers(tmp_path):
    path = tmp_path / "signs.jsonl"
    rows = [{"id": i, "question": f"{sign} ?", "answer": sign * 3} for i, sign in enumerate("+-*%")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (bench,) = read_benchmarks([path])
    made = make_decoys(bench, draw=1, seed=0)
    assert set(made.kinds.values()) == {"join"}
    for item, decoy in zip(bench.items, made.benchmark.items, strict=True):
        assert decoy.question == item.question
        assert decoy.answer != item.answer
        donor = made.donors[item.split, item.item_id]
        assert decoy.answer == next(one.answer for one in bench.items if one.item_id == donor[1])


@pytest.mark.parametrize("claimed", [0.1, 0.25])
def test_leaks_do_not_hide_chance_and_their_clones_are_not_chance(claimed):
    rng = np.random.default_rng(23)
    shares, naive = [], []
    for _ in range(300):
        null, clones = rng.random((2, 160)) ** 3
        leaked = rng.uniform(0.8, 1, 60)
        found = leaked - rng.uniform(0, 0.1, 60)
        items, beside = np.concatenate([null, leaked]), np.concatenate([clones, found])
        none = np.full(len(items), np.nan)
        scores = calibration.compete(items, beside, np.zeros(len(items)), none)
        q = calibration.calibrate(items, scores, n_decoys=len(items)).q
        accepted = q <= claimed
        shares.append(accepted[:160].sum() / max(1, accepted.sum()))
        naive.append((calibration.calibrate(items, beside).q <= claimed).sum() / 60)
    assert np.mean(shares) <= claimed
    assert np.mean(shares) > claimed / 4
    # Counted as they are, clones of leaks hide nearly every leak.
    assert np.mean(naive) < 0.2


def test_a_clone_of_two_items_must_beat_both():
    one, nan = np.array([0.5]), np.array([np.nan])
    zero = np.array([0.0])
    assert calibration.compete(one, np.array([0.4]), zero, np.array([0.1])).size == 0
    assert sorted(calibration.compete(one, np.array([0.6]), zero, np.array([0.1]))) == [
        0.1,
        0.5,
        0.6,
    ]
    assert sorted(calibration.compete(one, np.array([0.6]), zero, nan)) == [0.5, 0.6]
    assert calibration.compete(one, one, zero, nan).tolist() == [0.5]
    assert calibration.compete(one, one, np.array([3.0]), nan).size == 0


def test_leaked_items_leave_no_chance_though_their_decoys_are_found(tmp_path):
    questions = [own_text(at) for at in range(60)]
    pack = audit(tmp_path, questions, [f"Notes. {text} End." for text in questions[:30]])
    found = said(pack, "contam")
    assert found["n_flagged"] == 30
    assert found["n_decoys_flagged"] >= 25
    assert found["n_chance"] == 0
    assert found["smallest_q"] == pytest.approx(1 / 30)
    assert found["fdr"] == pytest.approx(2.9957 / 30, abs=1e-4)
    assert found["check"]["holds"]
    table = schemas.rows(
        schemas.read_parquet(
            pack.folder / "calibration" / "calibration.parquet", schemas.CALIBRATION
        )
    )
    own = {row["item_id"]: row for row in table if row["policy"] == "contam"}
    assert own["q3"]["q_value"] == pytest.approx(1 / 30)
    # All who are not flagged draw with their clones: half of everything would be chance.
    assert own["q45"]["q_value"] == pytest.approx(31 / 60)
    (facts,) = (policy for policy in pack.facts.benchmarks[0].policies if policy.policy == "contam")
    assert facts.fdr == found["fdr"]


def test_flags_on_wording_that_all_items_share_are_called_chance(tmp_path):
    questions = [f"{STEM} {own_text(at)}" for at in range(40)]
    pack = audit(tmp_path, questions, [f"Forum rules. {STEM} thank you all for your patience."])
    found = said(pack, "lmeval-13")
    assert found["n_flagged"] == 40
    assert found["fdr"] == 1
    assert found["check"]["holds"] is None
    assert said(pack, "contam")["fdr"] is None
    assert said(pack, "contam")["reason"] == "nothing is flagged"


def test_natural_decoys_are_not_reported_and_check_the_claim(tmp_path):
    questions = [own_text(at) for at in range(48)]
    leaked = [f"Notes. {text} End." for text in questions[:24]]
    young = [own_text(at + 500) for at in range(30)]
    pack = audit(tmp_path, questions, leaked, natural=young)
    assert [bench.name for bench in pack.facts.benchmarks] == ["items"]
    found = said(pack, "contam")
    assert (found["decoys"], found["n_natural"]) == ("made", 30)
    assert found["check"]["kind"] == "natural"
    assert found["check"]["n_held_out"] == 0
    assert found["check"]["holds"]
    # What was called younger than the corpus stands in it: the claim does not hold.
    (tmp_path / "pack").rename(tmp_path / "before")
    pack = audit(tmp_path, questions, leaked + young, natural=young)
    assert said(pack, "contam")["check"]["holds"] is False


def test_natural_decoys_alone_calibrate_too(tmp_path):
    questions = [own_text(at) for at in range(48)]
    leaked = [f"Notes. {text} End." for text in questions[:24]]
    young = [own_text(at + 500) for at in range(48)]
    found = said(audit(tmp_path, questions, leaked, natural=young, decoys=0), "contam")
    assert found["decoys"] == "natural"
    assert found["fdr"] == pytest.approx(2.9957 / 24, abs=1e-4)


def test_too_few_decoys_and_unread_shards_estimate_nothing(tmp_path):
    questions = [own_text(at) for at in range(12)]
    pack = audit(tmp_path, questions, questions)
    found = said(pack, "contam")
    assert (found["estimable"], found["fdr"]) == (False, None)
    assert found["reason"] == "12 decoys, and 20 are needed"
    page = (pack.folder / "report.html").read_text("utf-8")
    assert found["reason"] in page
    (tmp_path / "pack").rename(tmp_path / "before")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    spec = {"paths": [str(tmp_path / "web.jsonl"), str(tmp_path / "broken.parquet")]}
    many = [own_text(at) for at in range(40)]
    pack = audit(tmp_path, many, questions, corpora=[{"name": "web", **spec}])
    assert not said(pack, "contam")["estimable"]
    assert said(pack, "contam")["reason"] == "not all of the corpora was read"


def test_no_text_of_a_decoy_is_in_the_pack(audited):
    folder = audited.folder / "decoys" / "early"
    report = load_report(folder)
    assert {row["question"] for row in schemas.rows(report.items)} == {None}
    assert all("decoys" in row["benchmark"] for row in schemas.rows(report.items))


def test_an_audit_of_nothing_but_decoys_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="benchmark"):
        audit(tmp_path, [], [], benchmarks=[{"paths": ["x.jsonl"], "decoys": True}])
