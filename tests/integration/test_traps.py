"""Defects seen in other tools (T1 to T18), held against the whole scan."""

import unicodedata

import pytest

from contam.detect.policies.policy import list_policies
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    labels,
    quoted,
    search,
    verdict,
)

ALL = [spec.id for spec in list_policies()]
WORDS = (
    "amber bishops carve dancing elephants from granite holding ivory jugs kept lately moist new"
)


def test_t2_thirteen_words_make_one_gram_and_twelve_are_never_clean(tmp_path):
    thirteen = " ".join(WORDS.split()[:13])
    twelve = " ".join(WORDS.split()[1:13])
    result = search(tmp_path, [f"{FILLER} {thirteen} {FILLER}"], thirteen, twelve, policies=ALL)
    assert labels(result, "lmeval-13")["q0"] == "contaminated"
    assert "clean" not in {one.label for one in result if one.item_id == "q1"} - {"not_checkable"}
    absent = search(tmp_path / "absent", [FILLER], thirteen, twelve, policies=["lmeval-13"])
    assert labels(absent, "lmeval-13") == {"q0": "clean", "q1": "not_checkable"}


def test_t4_a_closing_dot_does_not_hide_a_match_in_mid_sentence(tmp_path):
    item = ABSENT.replace("?", ".")
    result = search(tmp_path, [f"{FILLER} {item[:-1]} and so on {FILLER}"], item, policies=ALL[:5])
    assert verdict(result).label == "contaminated"


FORMS = [
    str,
    str.upper,
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: text.replace(" ", " 😀 "),
    lambda text: text.replace("e", "e\u200d"),
]


@pytest.mark.parametrize("form", FORMS)
def test_t6_spans_are_positions_in_the_original_texts(tmp_path, form):
    item = (
        "Wie groß war die Straße, İstanbul'a giden ﬁne Café naïve übermäßig 数学 ½ ﬀ Maße am Ende"
    )
    documents = ["😀ß﷽ " + form(item) + " 😀 " + FILLER]
    result = search(tmp_path, documents, item)
    ((_, said, text),) = quoted(result, documents)
    assert said == item
    # Marks and joiners behind the last letter are quoted with it.
    assert text == form(item)


def test_t14_a_shared_instruction_alone_flags_nothing(tmp_path):
    template = (
        "The following are multiple choice questions. Choose the best answer among the options"
        " given below and reply with its letter only."
    )
    things = [f"thing{n} blob{n * 3} wisp{n * 5} corn{n * 7} dusk{n * 11}" for n in range(60)]
    items = [f"{template} {text} and what became of it later?" for text in things]
    result = search(tmp_path, [f"{FILLER} {template} {FILLER}"], *items)
    assert set(labels(result).values()) == {"clean"}


@pytest.mark.parametrize("n_copies", [1, 2])
def test_t14_a_template_flags_nothing_however_often_a_document_says_it(tmp_path, n_copies):
    template = "The following is a question about the history of the town "
    items = [f"{template}zeta{n} eta{n * 3}" for n in range(60)]
    result = search(tmp_path, [FILLER + template * n_copies + FILLER], *items)
    assert set(labels(result).values()) == {"clean"}


def test_t15_counts_beyond_the_evidence_kept_are_exact(tmp_path):
    documents = [f"{n} {QUESTION}" for n in range(70)]
    result = search(tmp_path, documents, QUESTION, max_evidence=3)
    found = verdict(result)
    assert (found.n_documents, found.n_occurrences) == (70, 70)
    assert len({row["row"] for row in result.evidence.to_pylist()}) == 3


def test_t18_other_numbers_are_near_and_never_exact(tmp_path):
    item = (
        "A school buys 12 boxes of chalk with 48 sticks each and loses 37 sticks on the way; how"
        " many sticks are left for the 9 teachers?"
    )
    other = item.replace("12", "15").replace("48", "60").replace("37", "41").replace("9", "8")
    found = verdict(search(tmp_path, [f"{FILLER} {other} {FILLER}"], item))
    assert found.kind == "near"
    assert found.label in {"contaminated", "suspect"}
