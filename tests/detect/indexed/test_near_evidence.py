"""Evidence that only MinHash led to says so, with how much of the part the text holds."""

import json
from dataclasses import replace

import pytest

import contam
from contam.index.build import build
from contam.index.recipe import load_recipe
from tests.detect.indexed.test_near_copies import EDITED, QUESTION, filler

SAMPLED = replace(load_recipe("compact"), gram=5)
#: One word late: runs of five begin at tokens 1, 7, 13, ..., an index samples 0, 4, 8, ...
WHOLE = f"once {EDITED} {filler(2)}"
SPLIT = f"once {' '.join(EDITED.split()[:18])} {filler(3, 200)} {' '.join(EDITED.split()[18:])}"


@pytest.fixture
def ask(tmp_path):
    """What indexes of these texts say of the question, with and without sketches."""

    def asked(texts, recipe=SAMPLED):
        corpus, items = tmp_path / "corpus.jsonl", tmp_path / "items.jsonl"
        lines = [json.dumps({"id": f"d{n}", "text": text}) for n, text in enumerate(texts)]
        corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
        items.write_text(json.dumps({"id": "q", "question": QUESTION}) + "\n", encoding="utf-8")
        index = tmp_path / f"index-{recipe.minhash}"
        build(corpus, index, recipe, workers=1)
        return contam.query(index, items), contam.scan(corpus, items)

    return asked


def similarities(result):
    found = {}
    for row in result.evidence.to_pylist():
        found.setdefault(row["document_id"], set()).add(row["similarity"])
    return found


def without(rows, *names):
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.parametrize(
    ("text", "kind"), [(WHOLE, "near"), (SPLIT, "partial")], ids=["whole", "split"]
)
def test_an_edited_copy_without_a_sampled_gram_says_how_much_it_holds(ask, text, kind):
    texts = [filler(1), text]
    blind, scanned = ask(texts, replace(SAMPLED, minhash=False))
    assert not similarities(blind)
    assert similarities(scanned) == {"d1": {None}}
    found, _ = ask(texts)
    (verdict,) = found
    assert verdict.flagged
    assert (verdict.kind, verdict.best_document_id) == (kind, "d1")
    ((similarity,),) = similarities(found).values()
    assert 0.8 < similarity < 0.95
    assert verdict.to_dict() == next(iter(scanned)).to_dict()
    rows, expected = found.evidence.to_pylist(), scanned.evidence.to_pylist()
    assert without(rows, "similarity") == without(expected, "similarity")


def test_what_grams_led_to_has_no_similarity(ask):
    found, scanned = ask([QUESTION, filler(1), WHOLE])
    assert similarities(scanned) == {"d0": {None}, "d2": {None}}
    by_document = similarities(found)
    assert by_document["d0"] == {None}
    assert None not in by_document["d2"]


def test_the_similarity_is_the_share_of_the_question_that_stands_there(ask):
    """Of equally weighty words: the words of the runs that were kept, of all words."""
    found, _ = ask([filler(1), WHOLE])
    rows = [row for row in found.evidence.to_pylist() if row["part"] == "question"]
    kept = sum(row["n_tokens"] for row in rows) / len(QUESTION.split())
    ((similarity,),) = similarities(found).values()
    assert similarity == pytest.approx(kept, abs=0.12)
