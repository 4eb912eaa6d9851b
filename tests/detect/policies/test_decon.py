"""The rows, tokens and formulas of decon against what decon itself gives, and what is said of an
item that a document holds and decon does not find.
"""

import json
import math

import numpy as np
import pytest

import contam
from contam.benchmark.items import BenchItem
from contam.detect.policies import decon_rows as f
from contam.detect.policies import decon_tokens
from contam.detect.policies.decon import DECON_DEFAULT
from contam.detect.policies.decon_rows import answers_of, read_rows
from contam.detect.policies.decon_tokens import FileTokens, PieceTokens, clean
from contam.text.bpe import load_tokenizer
from tests.text.tokenizer_files import save_word_level

WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in ("lan", "mor", "tis", "ven", "sok")]


def item(question, benchmark="one", **rest):
    return BenchItem(benchmark=benchmark, split="", item_id=question[:9], question=question, **rest)


def rows(items, **parameters):
    changes = {"id": "mine", "parameters": parameters} if parameters else {}
    return read_rows(items, DECON_DEFAULT.with_changes(changes), PieceTokens())


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        ({}, [""]),
        ({"answer": "42"}, ["42"]),
        ({"choices": ("a", "b"), "answer": "b", "answer_index": 1}, ["a", "b"]),
        ({"choices": ("a", "b"), "answer": "B", "answer_index": 1}, ["a", "b"]),
        ({"choices": ("a", "b"), "answer": "because"}, ["a", "b", "because"]),
        ({"choices": ("a", "b"), "answer": "b"}, ["a", "b"]),
    ],
)
def test_an_option_is_a_row_and_so_is_an_answer_that_is_none_of_them(given, answers):
    one = item("q", **given)
    parts = DECON_DEFAULT.parts
    assert answers_of(one.choices, one.answer, one.answer_index, parts) == answers


def test_a_row_is_taken_by_its_own_length():
    question = " ".join(WORDS[:18])
    found = rows([item(question, choices=("one", "one two")), item(" ".join(WORDS[30:60]))])
    assert found.taken.tolist() == [False, True, True]
    assert found.findable.tolist() == [True, True]
    assert found.most_tokens.tolist() == [20, 30]


def test_rarity_counts_rows_and_copies_of_a_row_once():
    shared, other = " ".join(WORDS[:25]), " ".join(WORDS[40:70])
    items = [item(shared, choices=("x y", "y z")), item(shared, choices=("x y",)), item(other)]
    found = rows(items)
    assert found.first.tolist() == [0, 2, 3, 4]
    assert np.allclose(found.question.text(0), math.log(3 / 2))
    assert np.allclose(found.question.text(1), math.log(3 / 2))
    assert np.allclose(found.question.text(2), math.log(3 / 1))


def test_rarity_is_counted_within_a_benchmark_or_over_the_run():
    one, two = " ".join(WORDS[:25]), " ".join(WORDS[40:70])
    items = [item(one), item(two), item(one, "two"), item(" ".join(WORDS[70:95]), "two")]
    assert np.allclose(rows(items).question.idf, math.log(2))
    over_all = rows(items, rarity_within="run").question
    assert np.allclose(over_all.text(0), math.log(4 / 2))
    assert np.allclose(over_all.text(1), math.log(4 / 1))
    alone = rows([item(one), item(one, "two"), item(two, "two")])
    assert alone.findable.tolist() == [False, True, True]


def ramp(length, value):
    return f.ramp(length, value, start=20, end=50)


def base(kind, o_q, o_a, o_p, grams=20, answer_tokens=4):
    weight = f.weights(
        "A" in kind, "P" in kind, f.question_confidence(grams), f.answer_confidence(answer_tokens)
    )
    return f.base_score(weight, o_q, o_a, o_p)


@pytest.mark.parametrize(("length", "score"), [(20, 0.760), (35, 0.8444), (50, 0.950)])
def test_a_base_of_95_is_shrunk_for_short_items(length, score):
    assert f.scaled_score(0.95, 0.8, ramp(length, 0.8)) == pytest.approx(score, abs=5e-5)


@pytest.mark.parametrize(("length", "needed"), [(0, 1), (20, 1), (35, 0.9), (50, 0.8), (900, 0.8)])
def test_the_needed_score_falls_from_1_to_the_threshold(length, needed):
    assert ramp(length, 0.8) == pytest.approx(needed)


@pytest.mark.parametrize(
    ("threshold", "gate"), [(0.8, 0.7143), (0.78, 0.6857), (0.88, 0.8286), (0.2, 0)]
)
def test_the_early_gate_follows_the_threshold(threshold, gate):
    assert f.early_gate(threshold) == pytest.approx(gate, abs=5e-5)


@pytest.mark.parametrize(("grams", "score"), [(20, 0.750), (40, 0.750), (10, 0.5625)])
def test_a_question_without_its_answer_is_never_flagged(grams, score):
    assert base("QA", 1, 0, 0, grams) == pytest.approx(score)


@pytest.mark.parametrize(("grams", "least"), [(5, 0.624), (10, 0.543), (15, 0.418), (20, 0.200)])
def test_the_least_answer_overlap_that_flags_a_whole_question(grams, least):
    assert base("QA", 1, least + 0.0005, 0, grams) >= 0.8
    assert base("QA", 1, least - 0.0015, 0, grams) < 0.8


def test_question_answer_and_passage_weigh_7_2_and_1():
    assert base("QAP", 1, 1, 0) == pytest.approx(0.900)
    assert base("QAP", 1, 0, 1) == pytest.approx(0.800)
    assert base("QAP", 0, 1, 1) == pytest.approx(0.300)


@pytest.mark.parametrize(("grams", "score"), [(10, 0.6375), (18, 0.8075), (20, 0.850)])
def test_a_question_without_its_passage(grams, score):
    assert base("QP", 1, 0, 0, grams) == pytest.approx(score)


@pytest.mark.parametrize("kind", ["Q", "QA", "QP", "QAP"])
def test_an_item_that_is_all_there_scores_1_whatever_the_confidence(kind):
    for grams in range(1, 25):
        for tokens in range(1, 6):
            assert base(kind, 1, 1, 1, grams, tokens) == pytest.approx(1.0)


def test_one_changed_token_passes_the_gate_from_37_and_flags_from_41():
    lengths = np.arange(20, 60)
    o_q = (lengths - 9) / (lengths - 4)
    through = o_q >= ramp(lengths, f.early_gate(0.8))
    flagged = f.scaled_score(o_q, 0.8, ramp(lengths, 0.8)) >= 0.8
    assert lengths[through].min() == 37
    assert lengths[through & flagged].min() == 41
    assert np.all(flagged[lengths >= 41])


def in_document(tokens, text):
    return tokens.of_documents([text.encode()]).tokens.tolist()


def test_a_text_of_items_has_the_tokens_of_a_document():
    texts = ["A t\u03a3", "\u0130\u0307 x", "?!", "\u6771\u4eac 1234", "\x1c\x1cb"]
    tokens = PieceTokens()
    found, _ = tokens.of_items(texts)
    for at, text in enumerate(texts):
        assert found.text(at).tolist() == in_document(tokens, text)
        assert in_document(tokens, clean(text)) == found.text(at).tolist()
    assert in_document(tokens, "7")[0] == tokens.space


@pytest.fixture
def words_of_a_file(tmp_path):
    """A tokenizer of whole words, that takes the space before a word into it."""
    vocab = {"[UNK]": 0, " red": 1, " kettle": 2, " ": 3, "1": 4}
    path = save_word_level(tmp_path / "tokenizer.json", vocab, r" ?[a-z]+|\d|\s")
    return FileTokens(load_tokenizer(path))


def test_tokens_of_a_file_keep_the_space_before_a_number(words_of_a_file):
    assert words_of_a_file.space == 4
    mine, words = words_of_a_file.of_items(["1 red kettle"])
    assert mine.tokens.tolist() == [4, 5, 2, 3]
    assert words.lengths.tolist() == [3]
    assert in_document(words_of_a_file, "") == []


def test_a_long_text_has_the_tokens_of_its_stretches(words_of_a_file, monkeypatch):
    text = " ".join(["red kettle 1"] * 50)
    whole = in_document(words_of_a_file, text)
    monkeypatch.setattr(decon_tokens, "_LONGEST", 40)
    monkeypatch.setattr(decon_tokens, "_AT_ONCE", 3)
    assert in_document(words_of_a_file, text) == whole
    found, _ = words_of_a_file.of_items([text, "", "red", text, text[:60]])
    assert found.lengths[:4].tolist() == [len(whole), 0, 1, len(whole)]
    assert np.array_equal(found.text(3), whole)


QUESTION = (
    "Which of the two ferrymen at Ostrand kept a lantern burning on the northern landing through"
    " all the foggy weeks of November, and who of their neighbours paid for the oil that it took?"
)
OTHER = (
    "How many herons did the keepers of the three locks below the weir count in March, when the"
    " water stood a hand above the lowest mark and nobody had yet mown the reeds along the bank?"
)
FILLER = " ".join(f"Page {n} of the almanac lists seeds and tides." for n in range(60))


def reason(tmp_path, text, **item):
    """The clean verdict's reason on one document of this text."""
    corpus, items = tmp_path / "corpus", tmp_path / "items.jsonl"
    corpus.mkdir()
    rows = [{"text": text}, {"text": FILLER}]
    (corpus / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    lines = [{"id": "1", "question": QUESTION, **item}, {"id": "2", "question": OTHER}]
    items.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
    result = contam.scan(corpus=corpus, benchmark=items, policies=["decon-default"])
    (found,) = (one for one in result if one.item_id == "1")
    assert found.label == "clean", found
    return found.reason
