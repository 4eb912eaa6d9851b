"""A copy that lost its spaces, or got some too many, is found by its letters, in an index too."""

from __future__ import annotations

import random
import re

import pytest

import contam
from contam.index.build import build
from tests.detect.indexed.indexes import evidence, make
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    corpus_of,
    labels,
    write_items,
)


def lost(share):
    def edit(text):
        rng = random.Random(5)
        return re.sub(" ", lambda _: "" if rng.random() < share else " ", text)

    return edit


def split(share):
    def edit(text):
        rng = random.Random(6)
        cut = [
            f"{word[:at]} {word[at:]}" if len(word) > 2 and rng.random() < share else word
            for word in text.split()
            for at in [rng.randrange(1, max(len(word), 2))]
        ]
        return " ".join(cut)

    return edit


def camel(text):
    return "".join(word.capitalize() for word in re.findall(r"\w+", text))


def lost_between_short(text):
    """Behind a run two words of at most ten letters together are one: none of them is long."""
    before, run, rest = text.partition("sells seventeen rye loaves every morning and keeps ")
    words, out = rest.split(" "), []
    while words:
        n = 2 if len("".join(words[:2])) < 10 and len(words) > 1 else 1
        out.append("".join(words[:n]))
        words = words[n:]
    return before + run + " ".join(out)


EDITS = {
    "spaces between short words lost": lost_between_short,
    "one space in three lost": lost(0.33),
    "half of the spaces lost": lost(0.5),
    "all spaces lost": lost(1.0),
    "one word in three split": split(0.33),
    "one word in two split": split(0.5),
    "spaced letters": lambda text: re.sub(r"(\w)(?=\w)", r"\1 ", text),
    "camelCase": camel,
    "all spaces lost, accents": lambda text: text.replace(" ", "").replace("e", "é"),
}


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)


@pytest.mark.parametrize("kind", EDITS)
def test_a_scan_and_an_index_find_it(tmp_path, items, kind):
    document = EDITS[kind](FILLER + QUESTION + " " + FILLER)
    corpus = corpus_of(tmp_path / "corpus", [FILLER, document, FILLER + ABSENT[:40]])
    scanned = contam.scan(corpus, items)
    assert labels(scanned) == {"q0": "contaminated", "q1": "clean"}
    asked = contam.query(make(corpus, tmp_path / "index"), items)
    assert labels(asked)["q0"] == "contaminated"
    assert evidence(asked) == evidence(scanned)


def test_evidence_quotes_the_text_as_it_is(tmp_path, items):
    document = lost(1.0)(f"{FILLER}{QUESTION} {FILLER}")
    corpus = corpus_of(tmp_path / "corpus", [document])
    (row, *_) = contam.scan(corpus, items).evidence.to_pylist()
    quoted = document[row["document_start"] : row["document_end"]]
    assert quoted == QUESTION.replace(" ", "").removesuffix("?")


def test_text_with_its_spaces_is_read_as_it_is(tmp_path):
    corpus = corpus_of(tmp_path / "corpus", [f"{FILLER}{QUESTION} {FILLER}"])
    build(corpus, tmp_path / "index", "complete")
    (segment,) = contam.open_index(tmp_path / "index")._opened.parts
    assert segment.segment.letters.n_pairs == 0


def test_an_item_is_not_clean_where_the_text_of_torn_words_is_gone(tmp_path, items):
    corpus = corpus_of(tmp_path / "corpus", [FILLER], [lost(1.0)(f"{FILLER}{QUESTION}")])
    index = make(corpus, tmp_path / "index")
    (corpus / "part-1.parquet").unlink()
    found = {
        one.item_id: one
        for one in contam.query(index, items, policies=["openr1-8"], allow_missing=True)
    }
    assert found["q0"].label == "not_checkable"
    assert found["q1"].label == "clean"
