"""However many items share the words of a question, it is never `clean` where it stands whole."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from tests.detect.indexed.indexes import evidence, make, verdicts
from tests.kernels.support import few
from tests.property.test_verdicts import SEVERITY
from tests.property.worlds import PADDING_WORDS, folder, scan, write_items

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Below, at and beyond what makes shared wording weigh next to nothing.
SIBLINGS = (1, 2, 10, 14, 16, 17, 100)
SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "zu")
#: Content words, so that each of them weighs something.
VOCABULARY = [f"{a}{b}{c}n" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES[:2]]
WORD = st.sampled_from(VOCABULARY)

#: So many words of a question in a row are a long one, and so much of it is nearly all.
LONG, NEARLY = 12, 0.8


def prompts(question: Sequence[str], front: int, behind: int, n: int) -> list[dict]:
    """n items of one question, each with words of its own before and behind it."""
    rows = []
    for number in range(n):
        before = ["Problem", str(number), *(f"front{number}x{at}" for at in range(front))]
        after = [f"behind{number}x{at}" for at in range(behind)]
        words = [*before[: front and front + 1], *question, *after]
        rows.append({"id": f"q{number}", "question": " ".join(words) + "."})
    return rows


@st.composite
def whole_questions(draw) -> tuple[list[str], int, int]:
    """A question, and how many words of their own the items have before and behind it."""
    question = draw(st.lists(WORD, min_size=LONG, max_size=60, unique=True))
    room = int(len(question) / NEARLY) - len(question)
    front = draw(st.integers(0, max(room - 1, 0)))
    behind = draw(st.integers(0, room - front - (front > 0)))
    return question, front, behind


def documents(question: Sequence[str], before: int, after: int) -> list[str]:
    filler = [*PADDING_WORDS, *reversed(PADDING_WORDS)] * 4
    return [" ".join([*filler[:before], *question, *filler[:after]])]


def severities(rows: list[dict], texts: list[str]) -> list[int]:
    return [SEVERITY[verdict.label] for verdict in scan(rows, texts)]


places = st.tuples(st.integers(0, 60), st.integers(0, 60))


@given(whole_questions(), places)
@few
def test_siblings_never_make_a_whole_question_clean(world, place):
    question, front, behind = world
    texts = documents(question, *place)
    for n in SIBLINGS:
        found = severities(prompts(question, front, behind, n), texts)
        assert min(found) >= SEVERITY["suspect"], (n, front, behind, len(question))


@st.composite
def edited_questions(draw) -> tuple[list[str], list[str]]:
    """A question, and a copy of which every twelfth word or fewer is another, far from its ends."""
    question = draw(st.lists(WORD, min_size=24, max_size=60, unique=True))
    copy = list(question)
    step = draw(st.integers(12, 20))
    for at in range(draw(st.integers(8, step - 1)), len(copy) - 8, step):
        copy[at] = f"other{at}"
    return question, copy


@pytest.mark.slow
@given(edited_questions(), st.integers(0, 1), places)
@few
def test_siblings_never_make_a_question_with_few_edits_clean(world, front, place):
    question, copy = world
    same = sum(a == b for a, b in zip(question, copy, strict=True))
    if same < 0.9 * (len(question) + 2 * front):
        return
    texts = documents(copy, *place)
    for n in SIBLINGS:
        found = severities(prompts(question, front, 0, n), texts)
        assert min(found) >= SEVERITY["suspect"], (n, len(question))


def test_what_ten_items_share_and_five_thousand():
    question = VOCABULARY[3:36]
    texts = documents(question, 20, 20)
    worst = [min(severities(prompts(question, 1, 0, n), texts)) for n in (1, 9, 10, 14, 100, 5000)]
    assert worst[0] == SEVERITY["contaminated"]
    assert min(worst) >= SEVERITY["suspect"]
    assert all(before >= after for before, after in pairwise(worst))


def test_another_item_that_stands_whole_takes_the_text():
    question = VOCABULARY[3:36]
    rows = prompts(question, 1, 0, 20)
    rows[7] = {**rows[7], "question": " ".join(question)}
    result = scan(rows, documents(question, 20, 20))
    found = {verdict.item_id: verdict for verdict in result}
    assert found["q7"].label == "contaminated"
    others = [verdict for name, verdict in found.items() if name != "q7"]
    assert {verdict.label for verdict in others} == {"clean"}
    assert all("text of another item, q7" in verdict.reason for verdict in others)


def test_the_reason_says_that_many_items_share_the_words():
    question = VOCABULARY[3:36]
    verdict = next(iter(scan(prompts(question, 1, 0, 20), documents(question, 20, 20))))
    assert verdict.label == "suspect"
    assert "many items share them" in verdict.reason


@pytest.mark.parametrize("n", [1, 10, 14, 40])
@pytest.mark.parametrize("front", [1, 4])
def test_an_index_says_so_too(n, front):
    question = VOCABULARY[3:36]
    rows = prompts(question, front, 1, n)
    with folder() as home:
        corpus = home / "corpus.jsonl"
        corpus.write_text(json.dumps({"text": documents(question, 20, 20)[0]}) + "\n")
        bench = write_items(home / "bench.jsonl", rows)
        scanned = contam.scan(corpus, bench, workers=1)
        index = make(corpus, home / "index")
        asked = contam.query(index, bench, workers=1)
        assert verdicts(asked) == verdicts(scanned)
        assert evidence(asked) == evidence(scanned)
        assert min(SEVERITY[verdict.label] for verdict in asked) >= SEVERITY["suspect"]
