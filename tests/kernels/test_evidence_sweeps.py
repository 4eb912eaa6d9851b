"""Evidence on both sides of every number that decides: row and pieces are the twin's on each."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from contam.kernels import match_rows as columns
from tests.kernels.evidence_support import check, with_weights
from tests.kernels.support import make_item, view_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def words(letters: str, numbers: Iterable[int]) -> list[str]:
    return [f"{letters}{n}" for n in numbers]


def filler(n: int) -> list[str]:
    return [f"fill{k % 7}" for k in range(n)]


def sweep(question: list[str], documents: Iterable[list[str]], **parts: object) -> list[tuple]:
    """(columns, reals, pieces) of one item in each document that has a row."""
    weights = parts.pop("weights", None)
    view = view_of([make_item(0, question=" ".join(question), **parts)])
    if weights is not None:
        view = with_weights(view, weights)
    return list(check(view, [" ".join(document) for document in documents]).values())


def varies(rows: list[tuple], column: str) -> bool:
    return len({str(row[column]) for row, _, _ in rows}) > 1


QUESTION = words("que", range(50))


@pytest.mark.parametrize("n", range(40, 61))
def test_how_much_a_run_must_weigh_for_its_part_to_be_aligned(n):
    question = words("que", range(n))
    rows = sweep(question, [[*question[:5], *question[6::2]]])
    assert bool(rows) == (n <= 50)


def test_how_many_tokens_of_long_runs_are_enough_although_they_weigh_little():
    question = words("que", range(40))
    rows = []
    for k in range(26, 36):
        weights = [0.0078125] * k + [1.0] * (40 - k)
        document = [*question[:k], "other", question[k + 1]]
        rows += sweep(question, [document], weights=weights)
    assert len(rows) == 10
    assert varies(rows, "aligned")


def test_how_much_must_be_aligned_without_a_long_run():
    documents = [[*QUESTION[:5], *QUESTION[6 : 6 + 2 * k : 2]] for k in range(23)]
    assert 0 < len(sweep(QUESTION, documents)) < len(documents)


@pytest.mark.parametrize("n", [20, 399, 401, 450])
def test_how_far_apart_two_places_are(n):
    question = words("que", range(n))
    limit = min(n, 400) + 32
    first, second = question[: n // 2], question[n // 2 :]
    gaps = range(limit - 2, limit + 3)
    rows = sweep(question, [[*first, *filler(gap), *second] for gap in gaps])
    assert [row["split"] for row, _, _ in rows] == [0, 0, 0, 1, 1]


def test_how_much_of_a_question_its_best_two_places_hold():
    sizes = (8, 9, 10, 11, 12, 23, 24, 25, 26, 27, 36, 37, 38, 39, 50)
    rows = sweep(
        QUESTION,
        [[*QUESTION[:n], *filler(90), *QUESTION[50 - m :]] for n, m in product(sizes, sizes)],
    )
    assert varies(rows, "places")
    assert varies(rows, "split")
    assert varies(rows, "aligned")


@pytest.mark.parametrize("between", [0, 1, 5])
def test_how_far_apart_two_runs_of_a_chain_are(between):
    question = words("que", range(10 + between))
    head, tail = question[:5], question[5 + between :]
    gaps = range(20 + 2 * between, 30 + 2 * between)
    rows = sweep(question, [[*head, *filler(gap), *tail] for gap in gaps])
    assert len(rows) == len(gaps)
    assert len({str(pieces) for _, _, pieces in rows}) > 1


@pytest.mark.parametrize("weight", [0.015625, 0.03125])
def test_how_much_a_shift_costs(weight):
    question = words("que", range(10))
    documents = [[*question[:5], *filler(gap), *question[5:]] for gap in range(25)]
    rows = sweep(question, documents, weights=[weight])
    assert len({len({piece[1] for piece in pieces}) for _, _, pieces in rows}) == 2


@pytest.mark.parametrize("n", [2, 3, 4])
def test_how_far_beside_its_runs_a_part_is_looked_for(n):
    question = words("que", range(10 + n))
    reach = n + n // 2 + 12
    gaps = range(reach - n - 3, reach - n + 3)
    before = [[*question[:n], *filler(gap), *question[n:]] for gap in gaps]
    behind = [[*question[:10], *filler(gap), *question[10:]] for gap in gaps]
    for documents in (before, behind):
        assert varies(sweep(question, documents), "aligned")


def test_what_skipped_tokens_cost():
    question = words("que", range(30))
    tails = (20, 21, 22, 23, 25, 27, 29)
    ways = product(range(10, 19), (0, 1, 2, 4, 7, 10, 14), tails)
    documents = [[*question[:n], *filler(gap), *question[tail:]] for n, gap, tail in ways]
    for weight in (1.0, 0.5, 0.25, 0.0625):
        rows = sweep(question, documents, weights=[1.0] * 10 + [weight] * 20)
        assert varies(rows, "aligned")


def test_how_far_an_open_end_falls_behind_before_it_is_given_up():
    head, middle = words("que", range(10)), words("mid", range(24))
    tail = words("tail", range(12))
    for n in range(24):
        question = [*head, *middle[:n], *tail]
        rows = sweep(question, [[*head, *tail], [*tail, *head]])
        assert len(rows) == 2
        sweep([*tail, *middle[:n], *head], [[*tail, *head], [*tail, "other", *head]])


# --------------------------------------------------------------- what stands around the runs

PASSAGE = words("pas", range(30))


@pytest.mark.parametrize("n", range(37, 44))
def test_how_long_a_question_is_looked_for_without_runs(n):
    question = words("stem", range(n))
    spread = [one for word in question for one in (word, "other")]
    ((_, reals, _),) = sweep(question, [[*PASSAGE, *spread]], passage=" ".join(PASSAGE))
    assert (reals[columns.QUESTION] > 0) == (n <= 40)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("behind", [False, True])
def test_how_far_from_its_passage_a_question_is_looked_for(n, behind):
    question = words("stem", range(n))
    documents = []
    for gap in range(56 - n, 64):
        around = [[*question, *filler(gap), *PASSAGE], [*PASSAGE, *filler(gap), *question]]
        documents.append(around[behind])
    assert varies(sweep(question, documents, passage=" ".join(PASSAGE)), "places")


def test_how_much_of_an_edited_question_must_stand_behind_its_passage_and_where():
    question = words("stem", range(20))
    most = range(8, 17)
    few = [[*PASSAGE, *(one for word in question[:k] for one in (word, "other"))] for k in most]
    far = [
        [*PASSAGE, *filler(gap), *(one for word in question for one in (word, "other"))]
        for gap in (*range(0, 64, 9), *range(20, 32))
    ]
    for documents in (few, far):
        rows = sweep(question, documents, passage=" ".join(PASSAGE))
        assert varies(rows, "aligned")


def test_how_much_of_a_question_its_passage_may_have():
    rows = []
    for k in range(20):
        question = [*PASSAGE[:20], *words("why", range(k))]
        document = [*PASSAGE, "and", *question[20:], *filler(9), *question[:1]]
        rows += sweep(question, [document], passage=" ".join(PASSAGE))
    assert len({reals[columns.QUESTION] for _, reals, _ in rows}) > 9


@pytest.mark.parametrize("n", range(14, 27))
def test_how_much_of_a_question_must_be_left_when_its_passage_has_its_own(n):
    question = [*PASSAGE[:n], *words("why", range(5))]
    document = [*PASSAGE, *question[n:], "answer", "yes"]
    parts = {"passage": " ".join(PASSAGE), "answer": "yes"}
    ((row, reals, _),) = sweep(question, [document], **parts)
    assert row["answer"] == (reals[columns.QUESTION] >= 0.2) == (n <= 20)


def test_how_much_of_the_choices_must_stand_behind_the_question():
    choices = [words(letters, range(4)) for letters in ("ein", "zwei", "drei", "vier", "funf")]
    written = tuple(" ".join(choice) for choice in choices)
    plain = [word for choice in choices for word in choice]
    spread = [one for word in plain for one in (word, "other")]
    some = [[*QUESTION, *spread[: 2 * k]] for k in range(21)]
    first = [[*QUESTION, *spread[2 * k :]] for k in range(16)]
    far = [[*QUESTION, *filler(gap), *spread] for gap in range(20, 64)]
    for right in range(5):
        parts = {"choices": written, "answer": written[right], "answer_index": right}
        answered = [[*one, "answer", *choices[right]] for one in (*some, *first)]
        for documents in (some, first, far, answered):
            rows = sweep(QUESTION, documents, **parts)
            assert varies(rows, "aligned")


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_how_far_behind_a_question_its_answer_is_looked_for(n):
    answer = words("ans", range(n))
    spread = [one for word in answer for one in (word, "other")]
    gaps = (*range(8), *range(50, 66))
    documents = [[*QUESTION, *filler(gap), *answer] for gap in gaps]
    documents += [[*QUESTION, *filler(9), "answer", *filler(gap), *answer] for gap in gaps]
    documents += [[*QUESTION, *filler(gap), "answer", *answer] for gap in gaps]
    documents += [[*QUESTION, *filler(gap), *spread] for gap in gaps]
    assert varies(sweep(QUESTION, documents, answer=" ".join(answer)), "answer")


@pytest.mark.parametrize("kept", range(12, 21))
def test_how_much_of_a_long_answer_must_stand_how_near(kept):
    answer = words("ans", range(20))
    some = answer[:kept]
    gaps = (0, 9, *range(296, 304), *range(356, 364))
    documents = [[*QUESTION, *filler(gap), *some] for gap in gaps]
    documents += [[*some, *filler(gap), *QUESTION] for gap in gaps]
    documents += [[*QUESTION, *filler(gap), *answer[5 : 5 + kept - 6], "z"] for gap in gaps]
    rows = sweep(QUESTION, documents, answer=" ".join(answer))
    assert varies(rows, "answer")
