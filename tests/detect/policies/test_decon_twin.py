"""The policy `decon-default` against a slow twin of the tool's rules, on random texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contam.detect.policies.policy import get_policy
from tests.detect.policies.conformance.harness import bench_items
from tests.kernels.support import few
from tests.twins import decon

WORDS = [f"{first}{second}" for first in "bdfglmnprst" for second in ("a", "en", "ist", "orum")]
VARIANTS = [
    ("decon-default", decon.Settings()),
    ("decon-default:olmo-web", decon.WEB),
    ("decon-default:olmo-synth", decon.SYNTH),
]
MARKS = ["", "", "", ",", ".", " -", "'", "\u2014", ":\n"]


def some(pick, low, high):
    """Words, one in ten of them a number."""
    words = pick.choice(WORDS, pick.integers(low, high))
    numbers = pick.integers(0, 20_000, len(words)).astype(str)
    return [n if pick.random() < 0.1 else w for w, n in zip(words, numbers, strict=True)]


def with_marks(pick, words):
    return "".join(f"{word}{pick.choice(MARKS)} " for word in words).strip()


def touched(pick, words):
    """Some words changed, left out or doubled."""
    rate = pick.choice([0.0, 0.0, 0.02, 0.05])
    out = []
    for word in words:
        ways = [[], ["changed"], [word, word]]
        out += [word] if pick.random() > rate else ways[pick.integers(3)]
    return out


def an_item(pick, common):
    """With an answer, options or neither, and perhaps a passage; some share one question."""
    words = common if pick.random() < 0.1 else some(pick, 3, 60)
    item = {"question": with_marks(pick, words)}
    kind = pick.integers(5)
    if kind in {0, 1}:
        item["answer"] = with_marks(pick, some(pick, 1, 4 if kind else 20))
    if kind == 2:
        item["choices"] = [with_marks(pick, some(pick, 1, 5)) for _ in range(4)]
    if pick.random() < 0.4:
        item["passage"] = with_marks(pick, some(pick, 1, 80))
    return item


def a_document(pick, items):
    """Items in pieces, mostly in the order in which they are read, with other text between."""
    words = []
    for _ in range(pick.integers(1, 4)):
        item = items[pick.integers(len(items))]
        order = ["passage", "question", "answer"]
        if pick.random() < 0.2:
            pick.shuffle(order)
        for name in order:
            text = item.get(name) or ""
            if name == "answer" and "choices" in item:
                text = str(pick.choice(item["choices"]))
            words += touched(pick, text.split()) + some(pick, 0, pick.choice([1, 8, 70]))
    return " ".join(map(str, words))


@st.composite
def worlds(draw):
    """Items of few words, and documents made of pieces of them, of each other and of filler."""
    pick = np.random.default_rng(draw(st.integers(0, 2**32)))
    common = some(pick, 5, 30)
    items = [an_item(pick, common) for _ in range(draw(st.integers(2, 5)))]
    return items, [a_document(pick, items) for _ in range(draw(st.integers(1, 4)))]


def read(reader, document, items):
    """What a document holds of these items."""
    return reader.read([document.encode()], np.array(items), np.array([0, len(items)]))


@pytest.mark.parametrize(("name", "rules"), VARIANTS, ids=[name for name, _ in VARIANTS])
@given(world=worlds())
@few
def test_the_score_of_every_pair_is_the_twins(name, rules, world):
    items, documents = world
    reader = get_policy(name).reader(bench_items(items), None)
    index = decon.Index(items, rules)
    for document in documents:
        found = read(reader, document, range(len(items)))
        for item in range(len(items)):
            possible = [index.score(item, document, slack) for slack in (-1e-6, 1e-6)]
            assert any(found[item, 0] == pytest.approx(one, abs=2e-6) for one in possible)


@pytest.mark.parametrize("n_question", [13, 14, 20, 22, 23])
@pytest.mark.parametrize("n_answer", [3, 4, 5])
def test_a_whole_copy_scores_as_the_twins_where_the_sum_of_its_parts_is_rounded(
    n_question, n_answer
):
    # With a passage of 8 words some of these add up to 1 in 32 bits, and some to less: the tool
    # lowers the score of a short item unless it is exactly 1.
    words = WORDS[: n_question + n_answer + 8]
    question, answer, passage = (
        " ".join(words[begin : begin + n])
        for begin, n in ((0, n_question), (n_question, n_answer), (n_question + n_answer, 8))
    )
    other = {"question": " ".join(WORDS[-7:] * 3)}
    items = [{"question": question, "answer": answer, "passage": passage}, other]
    # The tool does not read the token right before a question.
    document = f"{passage} between {question} {answer}"
    found = read(get_policy("decon-default").reader(bench_items(items), None), document, [0])
    score = decon.Index(items, decon.Settings()).score(0, document)
    assert found[0, 1:].tolist() == [1.0, 1.0, 1.0]
    assert found[0, 0] == pytest.approx(score, abs=2e-6)


def test_a_question_without_spaces_between_most_of_its_words_is_found_character_by_character():
    # Made-up Han, kana and Hangul: by whole words these are no 20 pieces.
    question, other = (
        " ".join("".join(map(chr, range(first + at, first + at + 7))) for at in range(0, 42, 7))
        for first in (0x4E00, 0xAC00)
    )
    items = [{"question": question}, {"question": other}]
    document = f"\u3042\u3044\u3046 {question}\u3042\u3044 \u30a2\u30a4\u30a6\u30a8"
    reader = get_policy("decon-default").reader(bench_items(items), None)
    assert reader.known.checkable.all()
    assert read(reader, document, [0, 1])[:, 0].tolist() == [1.0, 0.0]
    assert decon.Index(items, decon.Settings()).score(0, document) == 1.0


@pytest.mark.parametrize("first", range(12))
def test_a_short_answer_whose_rarities_cancel_out_counts_as_nothing(first):
    # Of 6 rows, 2 of 18 parts have the one word, 9 the other and 12 the last: 6 * 6 * 6 = 2 * 9 * 12.
    rare, usual, common = WORDS[first : first + 3]
    fields = [[] for _ in range(18)]
    for word, n in ((rare, 2), (usual, 9), (common, 12)):
        for field in fields[:n]:
            field.append(word)
    others = [word for word in WORDS if word not in {rare, usual, common}]
    items = [
        {
            "question": " ".join([*others[row : row + 25], *fields[3 * row]]),
            "passage": " ".join(["a", *fields[3 * row + 1]]),
            "answer": " ".join(fields[3 * row + 2] or ["b"]),
        }
        for row in range(6)
    ]
    items[0] |= {"answer": f"{rare} {usual} {common}", "passage": f"{usual} {common}"}
    document = f"{items[0]['passage']} between {items[0]['question']} {items[0]['answer']}"
    found = read(get_policy("decon-default").reader(bench_items(items), None), document, [0])
    assert found[0, 2] == 0.0
    score = decon.Index(items, decon.Settings()).score(0, document)
    assert found[0, 0] == pytest.approx(score, abs=2e-6)


@given(world=worlds())
@settings(deadline=None)
def test_an_item_is_checkable_when_a_row_is_taken_and_its_grams_weigh_something(world):
    items, _ = world
    reader = get_policy("decon-default").reader(bench_items(items), None)
    index = decon.Index(items, decon.Settings())
    for number in range(len(items)):
        mine = [row for row in index.rows if row.item == number and row.taken]
        weighs = mine and sum(index.weights(mine[0].question, "question", 5).values()) > 0
        assert reader.known.checkable[number] == bool(weighs)
