"""Evidence: every row and piece that a scan writes is the one that the twin writes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect import grams as gram_tables
from tests.kernels.evidence_support import check
from tests.kernels.support import frozen, lane_of, make_item

if TYPE_CHECKING:
    from contam.benchmark.items import BenchItem
    from contam.detect.lane import Lane

FEW_WORDS = ("red", "fox", "runs", "by")
MANY_WORDS = tuple(f"w{n}" for n in range(24))
#: What stands around an answer, and what no item holds.
BESIDE = ("answer", "a", "b", "c", "0", "1", "2", "correct")
OTHER = ("und", "so", "weiter")
#: Sums of these are exact, interpreted and compiled.
WEIGHTS = st.sampled_from((0.0, 0.03125, 0.0625, 0.25, 0.25, 0.5, 1.0, 1.0, 1.0))


@st.composite
def item_words(draw) -> list[list[str]]:
    """Passage, question and up to four choices."""
    word = st.sampled_from(draw(st.sampled_from((FEW_WORDS, MANY_WORDS, MANY_WORDS))))
    passage = draw(st.lists(word, max_size=24))
    question = draw(st.lists(word, max_size=24))
    if passage and draw(st.booleans()):
        question = [*question, *passage[:9]]
    choice = st.lists(word, min_size=1, max_size=5)
    return [passage, question, *draw(st.lists(choice, max_size=4))]


@st.composite
def excerpts(draw, texts: list[list[str]]) -> list[str]:
    """A text, or some of it, with a few edits."""
    words = list(draw(st.sampled_from(texts)))
    if words and draw(st.booleans()):
        cut = draw(st.integers(0, len(words)))
        words = draw(st.sampled_from((words[:cut], words[cut:], words[cut:] + words[:cut])))
    word = st.sampled_from((*OTHER, *FEW_WORDS, *MANY_WORDS[:3]))
    for at, how, new in draw(
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from("dri"), word), max_size=3)
    ):
        if at < len(words):
            words[at : at + (how != "i")] = [] if how == "d" else [new]
    return words


@st.composite
def documents_of(draw, texts: list[list[str]]) -> str:
    """What a document may hold: excerpts, answers and their marks, and other text between."""
    beside = st.lists(st.sampled_from(BESIDE), max_size=3)
    other = st.tuples(st.sampled_from(OTHER), st.sampled_from((0, 1, 2, 5, 30, 60))).map(
        lambda some: [some[0]] * some[1]
    )
    excerpt = excerpts(texts)
    pieces = draw(st.lists(excerpt | excerpt | beside | other, max_size=7))
    return " ".join(word for piece in pieces for word in piece)


@st.composite
def worlds(draw) -> tuple[list[BenchItem], list[str]]:
    """Up to three items, and documents that are made of them."""
    drawn = draw(st.lists(item_words(), min_size=1, max_size=3))
    items = []
    for number, (passage, question, *choices) in enumerate(drawn):
        texts = tuple(" ".join(choice) for choice in choices)
        right = draw(st.integers(0, len(choices) - 1)) if choices else None
        items.append(
            make_item(
                number,
                question=" ".join(question),
                passage=" ".join(passage) or None,
                choices=texts,
                answer=texts[right] if right is not None else draw(st.sampled_from((None, "w3"))),
                answer_index=right,
            )
        )
    texts = [text for one in drawn for text in one]
    # Whole items as documents have them: question, choices, answer.
    texts += [[word for text in one[1:] for word in text] for one in drawn]
    return items, draw(st.lists(documents_of(texts), min_size=1, max_size=3))


def with_weights(lane: Lane, weights: list[float]) -> Lane:
    """The lane with these token weights, over and over."""
    plan = lane.plan
    weight = np.resize(np.array(weights, np.float32), len(plan.token))
    ends = zip(plan.part_start[:-1], plan.part_start[1:], strict=True)
    whole = [float(weight[lo:hi].sum(dtype=np.float64)) for lo, hi in ends]
    return replace(
        lane,
        plan=plan._replace(
            weight=frozen(weight, np.float32), part_weight=frozen(whole, np.float64)
        ),
    )


def everything(items: list[BenchItem], documents: list[str]) -> list[tuple[int, int]]:
    return list(product(range(len(documents)), range(len(items))))


def some_lane(items: list[BenchItem], owners: int, **lengths: int) -> Lane:
    """A lane in which a gram of more than `owners` items is common."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram_tables, "COMMON_OWNERS", owners)
        return lane_of(items, **lengths)


LENGTHS = st.sampled_from(((2, 3, 1), (2, 4, 1), (3, 6, 1), (5, 8, 1), (3, 5, 2), (5, 8, 4)))


@given(
    worlds(), LENGTHS, st.sampled_from((16, 16, 1, 0)), st.lists(WEIGHTS, min_size=1, max_size=9)
)
def test_every_row_and_piece_is_the_twins(world, lengths, owners, weights):
    items, documents = world
    seed, min_run, stride = lengths
    lane = some_lane(items, owners, seed=seed, min_run=min_run, stride=stride)
    check(with_weights(lane, weights), documents, everything(items, documents))
