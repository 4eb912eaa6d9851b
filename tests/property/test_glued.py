"""A copy without its punctuation is found, quoted where it stands, and nobody else's verdict moves."""

from __future__ import annotations

import string

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.detect.match.variants import ways_to_read
from contam.text.tokenizer import tokenize_bytes
from tests.detect.indexed.indexes import make
from tests.kernels.support import few
from tests.property.worlds import WORDS, folder, padding, scan, write_items, write_shard

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


def test_the_name_of_a_command_runs_together_with_what_it_stands_before():
    formula, fraction, prose = r"\left(2-x\right)", r"\frac{x}{2}", "lantern lantern lantern"
    parts = [(f"{formula}+{formula}", f"{fraction}+{formula}"), (f"{fraction}+{fraction}",) * 2]
    rows = [
        {"id": str(n), "question": f"{prose} tag{n}: ${first}$, {prose} ${second}$?"}
        for n, (first, second) in enumerate(parts)
    ]
    texts = [without("\\{}()[].,:;", row["question"]) for row in rows]
    assert [verdict.label for verdict in scan(rows, texts)] == ["contaminated", "contaminated"]


def test_names_of_commands_that_become_words_hide_no_reading():
    formula = r"\frac{x}{2}+\left(2-x\right)"
    question = f"lantern harbour keeper tag0: ${formula}$, boats green night ${formula}$?"
    rows = [{"id": "a", "question": question}]
    for marks in LEFT_OUT:
        (verdict,) = scan(rows, [without(marks, question)])
        assert verdict.flagged, (marks, verdict.reason)


@given(questions(), st.sampled_from(LEFT_OUT), padding, padding)
@few
def test_a_copy_without_its_punctuation_is_found_and_quoted(rows, marks, head, tail):
    texts = [f"{head}.\n{without(marks, row['question'])}\n{tail}" for row in rows]
    result = scan(rows, texts)
    for number, verdict in enumerate(result):
        assert verdict.flagged, verdict.reason
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
        {
            "id": f"q{n}",
            "question": rf"lantern tag{n} $\frac{{alpha_{n}}}{{beta}}+\sqrt[{n}]{{a}}$ " * 4,
        }
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


OTHER_QUESTIONS = (
    ("What is the value of 1/2+1/2 if the lantern is 3/4?", "What is the value of 12+12 if the lantern is 34?"),
    ("Solve for x: 2(x+3)=4(x-5)+7(x+1)", "Solve for x: 2x+3=4x-5+7x+1"),
    ("What is the sum of 2(x-1)(x-4) = 3(x-2)?", "What is the sum of 2x-1x-4 = 3x-2?"),
    ("A rope of 2.5m is cut into 1.2m and 1.3m pieces.", "A rope of 25m is cut into 12m and 13m pieces."),
    ("A rope of ２.５ metres is cut into １.２ and １.３ parts", "A rope of ２５ metres is cut into １２ and １３ parts"),
    ("Is the shop open from 3-5pm or 1-2pm or 6-7pm?", "Is the shop open from 35pm or 12pm or 67pm?"),
    ("Does numpy v1.26 work with py3.11 and gcc1.2 here?", "Does numpy v126 work with py311 and gcc12 here?"),
    ("Simplify x^{1/2} + y^{1/3} for positive x and y", "Simplify x¹² + y¹³ for positive x and y"),
    ("Revenue (net) grew: $1.5M, $2.25M, $3.5M; why?", "Revenue (net) grew: $15M, $225M, $35M; why?"),
    ("What is the G.D.P. of the U.S.A.?", "He asked me what is the GDP of the USA and other such things"),
)  # fmt: skip


@pytest.mark.parametrize(("question", "other"), OTHER_QUESTIONS)
def test_another_question_that_looks_alike_without_punctuation_is_none(question, other):
    (verdict,) = scan([{"id": "one", "question": question}], [other])
    assert "punctuation" not in verdict.reason
    assert verdict.label != "contaminated"


def test_few_words_that_are_left_may_stand_anywhere():
    question = r"Simplify \frac{a}{b}+\frac{c}{d} for all real lanterns"
    (verdict,) = scan([{"id": "few", "question": question}], [without("\\{}", question)])
    assert verdict.label == "suspect"
    assert "longest run 7 of 7 words" in verdict.reason
    assert verdict.reason.endswith("so few words may stand anywhere")


def test_an_index_does_not_call_clean_what_it_may_have_missed(tmp_path):
    rows = [{"id": "few", "question": r"Simplify \frac{a}{b}+\frac{c}{d} for all real lanterns"}]
    write_shard(tmp_path / "corpus" / "part.parquet", ["no question at all stands here, none"])
    items = write_items(tmp_path / "bench.jsonl", rows)
    (verdict,) = contam.query(make(tmp_path / "corpus", tmp_path / "index", stride=4), items)
    assert verdict.label == "not_checkable"
    assert "without its punctuation its question has 6 words in a row" in verdict.reason


def test_text_that_is_another_items_takes_nothing_from_what_is_its_own():
    tail = r"\frac{sigma}{tau} - \sqrt{omega}  + \frac{apple}{berry} + \frac{candle}{dagger} - \sqrt{ember} + \frac{falcon}{garnet} - \sqrt{hazel} - \sqrt{ivory}"
    head = r"Given \frac{alpha}{beta} + \frac{gamma}{delta} - \sqrt{kappa}  + "
    other = r"Suppose \frac{one}{two} + \frac{six}{ten} - \sqrt{red} - \sqrt{blue} - \frac{cat}{dog}  + "
    rows = [{"id": "a", "question": head + tail}, {"id": "b", "question": other + tail}]
    half = (head + tail)[: len(head) + 38]
    filler = " zebra yonder xylem wigwam" * 30
    alone, beside = (
        {verdict.item_id: verdict for verdict in scan(rows, [text])}
        for text in (half + filler, half + filler + without(string.punctuation, other + tail))
    )
    assert alone["a"].label == "suspect"
    assert beside["a"].label in {"suspect", "contaminated"}
    assert beside["b"].label == "contaminated"


def test_a_copy_beside_one_without_punctuation_is_one_document():
    rows = [
        {
            "id": "q",
            "question": r"Given \frac{alpha}{beta} + \sqrt{gamma} - \frac{delta}{kappa}, find the harbour lantern.",
        }
    ]
    question = rows[0]["question"]
    filler = " zebra yonder xylem wigwam" * 30
    glued = without("\\{}", question)
    for texts, places in (([glued], 1), ([glued, glued], 2), ([question, glued, glued], 3)):
        (verdict,) = scan(rows, [filler.join(["", *texts, ""])])
        assert (verdict.label, verdict.n_documents) == ("contaminated", 1)
        assert verdict.n_occurrences == places
