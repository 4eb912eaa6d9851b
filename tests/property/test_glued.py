"""A copy without its punctuation is found, quoted where it stands, and nobody else's verdict moves."""

from __future__ import annotations

import string

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.detect.glued import ways_to_read
from contam.text.tokenizer import tokenize_bytes
from tests.kernels.support import few
from tests.property.worlds import WORDS, folder, padding, scan, write_items, write_shard
from tests.unit.detect.indexes import make

#: What copies leave out: from brackets alone to all punctuation.
LEFT_OUT = ("\\{}", "\\{}()[].,:;", "!\"#%&'()*,./:;?@[\\]{}", string.punctuation)
OTHERS = ("gpt3-test", "lmeval-13", "openr1-8", "llama3-8gram", "decon-default", "tulu3-50")

names = st.sampled_from(["x", "y", "alpha", "omega", "n"])
numbers = st.integers(2, 99).map(str)
terms = st.one_of(
    st.builds(r"\frac{{{}}}{{{}}}".format, names, numbers),
    st.builds(r"\sqrt[{}]{{{}+{}}}".format, numbers, names, numbers),
    st.builds(r"{}_{{{}}}^{{{}}}".format, names, names, numbers),
    st.builds(r"\left({}-{}\right)".format, numbers, names),
)
formulas = st.lists(terms, min_size=2, max_size=6).map("+".join)
prose = st.lists(st.sampled_from(WORDS[:20]), min_size=3, max_size=8).map(" ".join)


@st.composite
def questions(draw) -> list[dict]:
    """Rows whose questions are words around a formula, each with a word of its own."""
    return [
        {
            "id": f"q{n}",
            "question": f"{draw(prose)} tag{n}: ${draw(formulas)}$, {draw(prose)} ${draw(formulas)}$?",
        }
        for n in range(draw(st.integers(1, 3)))
    ]


def without(marks: str, text: str) -> str:
    return text.translate(str.maketrans("", "", marks))


def words(text: str) -> list[int]:
    return tokenize_bytes(text.encode()).hashes.tolist()


def same_words(item: str, document: str) -> bool:
    return any(words(way.decode()) == words(document) for way in ways_to_read(item.encode()))


@given(questions(), st.sampled_from(LEFT_OUT), padding, padding)
@few
def test_a_copy_without_its_punctuation_is_found_and_quoted(rows, marks, head, tail):
    texts = [f"{head}.\n{without(marks, row['question'])}\n{tail}" for row in rows]
    result = scan(rows, texts)
    for number, verdict in enumerate(result):
        assert verdict.label == "contaminated", verdict.reason
        assert (verdict.exposure, verdict.best_row) == ("question", number)
    for row in result.evidence.to_pylist():
        item = rows[int(row["item_id"][1:])]["question"][row["item_start"] : row["item_end"]]
        document = texts[row["row"]][row["document_start"] : row["document_end"]]
        assert same_words(item, document), (item, document)
        assert row["n_tokens"] == len(words(document))


@given(questions(), questions(), st.lists(st.sampled_from(("", *LEFT_OUT)), min_size=1, max_size=6))
@few
def test_what_other_policies_say_does_not_hang_on_it(rows, others, marks):
    texts = [
        without(mark, row["question"])
        for mark, row in zip(marks, [*rows, *others] * 3, strict=False)
    ]
    alone = scan(rows, texts, OTHERS).verdicts
    beside = scan(rows, texts, ("contam", *OTHERS)).verdicts
    theirs = beside.filter(pa.array(np.array(beside["policy"].to_pylist()) != "contam"))
    assert theirs.to_pylist() == alone.to_pylist()


@given(questions(), questions())
@few
def test_a_question_as_it_is_has_the_verdict_that_it_has_without_readings(rows, others):
    texts = [row["question"] for row in rows]
    result = scan([*rows, *({**row, "id": f"other {row['id']}"} for row in others)], texts)
    by_id = {verdict.item_id: verdict for verdict in result}
    for row in rows:
        verdict = by_id[row["id"]]
        assert (verdict.label, verdict.score, verdict.kind) == ("contaminated", 1.0, "exact")
        assert "punctuation" not in verdict.reason


@given(questions(), st.sampled_from(LEFT_OUT), st.integers(0, 3))
@few
def test_workers_and_the_order_of_documents_change_nothing(rows, marks, seed):
    texts = [without(marks, row["question"]) for row in rows] + [row["question"] for row in rows]
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    with folder() as home:
        for number, text in enumerate(texts):
            write_shard(home / "a" / f"{number}.parquet", [text], [f"d{number}"])
        for place, number in enumerate(order):
            write_shard(home / "b" / f"{place}.parquet", [texts[number]], [f"d{number}"])
        items = write_items(home / "bench.jsonl", rows)
        one = contam.scan(home / "a", items, workers=1)
        three = contam.scan(home / "a", items, workers=3)
        moved = contam.scan(home / "b", items, workers=2)
    assert three.verdicts.equals(one.verdicts)
    assert three.evidence.equals(one.evidence)
    told = ["item_id", "label", "score", "n_documents", "n_occurrences", "best_document_id"]
    assert moved.verdicts.select(told).equals(one.verdicts.select(told))


def test_an_index_finds_it_like_the_scan(tmp_path):
    rows = [
        {"id": f"q{n}", "question": rf"lantern tag{n} $\frac{{x_{n}}}{{y}}+\sqrt[{n}]{{a}}$ " * 4}
        for n in range(10, 14)
    ]
    texts = [without(marks, row["question"]) for marks, row in zip(LEFT_OUT, rows, strict=True)]
    write_shard(tmp_path / "corpus" / "part.parquet", [*texts, "no question at all stands here"])
    items = write_items(tmp_path / "bench.jsonl", rows)
    scanned = contam.scan(tmp_path / "corpus", items)
    asked = contam.query(make(tmp_path / "corpus", tmp_path / "index"), items)
    assert set(scanned.verdicts["label"].to_pylist()) == {"contaminated"}
    assert asked.verdicts.equals(scanned.verdicts)
    assert asked.evidence.equals(scanned.evidence)


def test_a_number_that_ran_together_is_no_evidence():
    rows = [{"id": "halves", "question": "What is the value of 1/2+1/2 if the lantern is 3/4?"}]
    result = scan(rows, ["What is the value of 12+12 if the lantern is 34?"])
    (verdict,) = result
    assert "punctuation" not in verdict.reason
    assert verdict.label != "contaminated"
