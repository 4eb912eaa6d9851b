"""What may be done to a document without changing what is said of the items in it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.support import few
from tests.property.worlds import ALL_POLICIES, full_text, labels, padding, records, scan
from tests.twins import decon

SEVERITY = {"clean": 0, "not_checkable": 0, "suspect": 1, "contaminated": 2}


@given(records())
@few
def test_an_item_matches_itself_under_every_policy_that_admits_it(rows):
    texts = [full_text(row) for row in rows]
    result = scan(rows, texts, ALL_POLICIES)
    decons = decon.Index(rows, decon.Settings())
    for (item, policy), label in labels(result).items():
        if (policy, label) == ("decon-default", "clean"):
            # decon itself passes over copies, say of options too far behind their question.
            number = [row["id"] for row in rows].index(item)
            least = decons.settings.contamination_score_threshold
            assert all(decons.score(number, text) < least + 1e-6 for text in texts)
            continue
        assert label in {"contaminated", "not_checkable"}, (item, policy, label)
    of_ours = [label for (_, policy), label in labels(result).items() if policy == "contam"]
    assert set(of_ours) == {"contaminated"}


@given(records())
@few
def test_a_question_alone_matches_itself(rows):
    result = scan(rows, [row["question"] for row in rows])
    assert set(labels(result).values()) == {"contaminated"}
    assert {verdict.kind for verdict in result} == {"exact"}


@st.composite
def damaged(draw, rows: list[dict]) -> list[str]:
    """Documents that hold items whole, in part, or not at all: every label has its examples."""
    texts = []
    for row in rows:
        words = full_text(row).split(" ")
        lo = draw(st.integers(0, len(words) // 2))
        texts.append(" ".join(words[lo : lo + draw(st.integers(4, len(words)))]))
    return texts


worlds = records().flatmap(lambda rows: st.tuples(st.just(rows), damaged(rows)))


def rewrapped(text: str) -> str:
    return re.sub(r"[ \n]+", lambda gap: "\n" if gap.start() % 3 == 0 else " ", text)


def in_capitals(text: str) -> str:
    # Capital and small Greek nu, upsilon and so on look like different Latin letters only beside
    # Latin ones, so whole Greek words keep their reading.
    return text.upper()


def punctuated(text: str) -> str:
    return re.sub(r"[ \n]+", lambda gap: (", ", " — ", "; ", " (", ") ")[gap.start() % 5], text)


CHANGES = {
    "lines": rewrapped,
    "capitals": in_capitals,
    "title": str.title,
    "punctuation": punctuated,
    "html": lambda text: "<p>" + text.replace(" ", " <b>").replace("\n", "<br/>\n") + "</p>",
    "zero width": lambda text: text.replace("a", "a\u200b").replace("o", "\u00ado"),
    "full width": lambda text: "".join(
        chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text
    ),
    "json": lambda text: "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text),
}


@given(world=worlds)
@few
def test_how_a_text_is_written_changes_no_verdict(world):
    rows, texts = world
    policies = ("contam", "gpt3-test", "openr1-8", "llama3-8gram")
    before = scan(rows, texts, policies)
    told = [(v.item_id, v.policy, v.label, v.n_documents, v.score) for v in before]
    for name, change in CHANGES.items():
        after = scan(rows, [change(text) for text in texts], policies)
        assert [(v.item_id, v.policy, v.label, v.n_documents, v.score) for v in after] == told, name


@given(world=worlds, head=padding, tail=padding)
@few
def test_other_text_around_it_changes_no_verdict(world, head, tail):
    rows, texts = world
    policies = ("contam", "gpt3-test", "openr1-8", "llama3-8gram", "tulu3-50")
    before = labels(scan(rows, texts, policies))
    padded = [f"{head}.\n{text}.\n{tail}" for text in texts]
    assert labels(scan(rows, padded, policies)) == before


@given(world=worlds, other=padding)
@few
def test_more_documents_never_take_a_hit_away(world, other):
    rows, texts = world
    before = scan(rows, texts, ALL_POLICIES)
    after = scan(rows, [*texts, other, *texts[:1]], ALL_POLICIES)
    for old, new in zip(before, after, strict=True):
        assert (old.item_id, old.policy) == (new.item_id, new.policy)
        assert SEVERITY[new.label] >= SEVERITY[old.label]
        assert new.n_documents >= old.n_documents
        assert new.n_occurrences >= old.n_occurrences
        assert (new.score or 0) >= (old.score or 0)
