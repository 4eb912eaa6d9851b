"""Content keys: frozen values, and what they must not depend on."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark import keys
from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import BenchItem
from contam.benchmark.keys import KEYS, content_keys, equal_groups, item_key, normalise, text_key

if TYPE_CHECKING:
    import random
from dataclasses import astuple

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


def item(question: str, choices: tuple[str, ...] = (), **parts: str) -> BenchItem:
    return BenchItem(
        benchmark="b", split="s", item_id="i", question=question, choices=choices, **parts
    )


# Hashed by hand from the normal forms: question, choices, passage, answer.
FROZEN = [
    (item("Which plant floats?"), ("2682472948648249e4fefd41a5fb3de1",
        "f1ef29d0abde21a327653befe3537199", "f87608afd48ac2668b6cbb6bf7a081ca")),
    (item("Which plant floats?", ("moss", "reed"), answer="reed", passage="A pond."), (
        "2682472948648249e4fefd41a5fb3de1", "4a44bbf28a13fab0ba744f06c002ae73",
        "2a28f39453b37e1b1436016edf995992")),
    (item("“Straße” — 2\u00a0²?\u200b", ("\uff21", "ﬁ"), answer="ſ"), (
        "1b9568d594d4a8bb6457becb7332d924", "91c9361d4097d00f0ea7973fd2193de9",
        "aa91c893e853a5eaea9832a7bcd461e1")),
]  # fmt: skip


@pytest.mark.parametrize(("example", "keys"), FROZEN)
def test_keys_are_frozen(example: BenchItem, keys: tuple[str, str, str]):
    found = content_keys(example)
    assert (found.text_key, found.item_key, found.full_key) == keys


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Two\twords\r\n", "two words"),
        ("\u201cQuote\u201d \u2018s \u00abg\u00bb `x\u00b4", '"quote" \'s "g" \'x\''),
        ("1\u20132\u20143\u22124", "1-2-3-4"),
        ("zero\u200bwidth\ufeff so\u00adft", "zerowidth soft"),
        ("\uff26\uff55\uff4c\uff4c ﬁ \u00bd", "full fi 1\u20442"),
        ("STRASSE straße", "strasse strasse"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_normal_form(text: str, normal: str):
    assert normalise(text) == normal


@given(TEXTS.filter(str.isascii))
def test_short_way_for_ascii_changes_nothing(text: str):
    assert normalise(text + "\u200b") == normalise(text)


@given(TEXTS, st.lists(TEXTS, max_size=5), st.randoms(use_true_random=False))
def test_order_of_choices_does_not_matter(question: str, choices: list[str], rng: random.Random):
    shuffled = rng.sample(choices, len(choices))
    assert item_key(item(question, tuple(choices))) == item_key(item(question, tuple(shuffled)))


def test_keys_tell_apart_what_they_cover():
    plain = item("Q?", ("a", "b"), answer="a")
    other_answer = item("Q?", ("a", "b"), answer="b")
    other_choices = item("Q?", ("a", "c"), answer="a")
    moved = item("Q?", ("a",), passage="b", answer="a")
    assert text_key("q?") == content_keys(plain).text_key == content_keys(other_choices).text_key
    assert item_key(plain) == item_key(other_answer)
    assert content_keys(plain).full_key != content_keys(other_answer).full_key
    assert len({item_key(plain), item_key(other_choices), item_key(moved)}) == 3


ITEMS = st.builds(
    item,
    st.text(alphabet=" \t\n\x1d\0aB`é\u00a0ﬁ", max_size=6) | TEXTS,
    st.lists(st.text(alphabet=" \n\0xY", max_size=3) | TEXTS, max_size=3).map(tuple),
    passage=st.none() | st.just("") | TEXTS,
    answer=st.none() | st.just("") | TEXTS,
)


@given(st.lists(ITEMS, max_size=8))
def test_many_items_have_the_keys_of_each(items: list[BenchItem]):
    found = ItemTable.of(items).key_digests()
    told = [[key.tobytes().hex() if key.any() else None for key in keys] for keys in found]
    assert told == [[*astuple(content_keys(one))] for one in items]


@given(st.lists(st.sampled_from("abc"), max_size=9))
def test_items_with_equal_keys_are_found(questions: list[str]):
    table = ItemTable.of([item(question) for question in questions])
    groups = equal_groups(table.key_digests()[:, KEYS.index("text_key")])
    places = {
        letter: [at for at, other in enumerate(questions) if other == letter]
        for letter in dict.fromkeys(questions)
    }
    assert [group.tolist() for group in groups] == [
        found for found in places.values() if len(found) > 1
    ]


@given(
    st.text(
        alphabet="\uff01\uff02\uff07\uff0d\uff21\uff40\uff5e\uff5f\u3000\u0301\u3099\uff9eaｶ´\u0345",
        max_size=6,
    )
)
def test_wide_forms_are_what_nfkc_makes_of_them(text: str):
    def unified(text: str) -> str:
        return "".join(char if char in keys._WIDE else keys._UNIFY.get(char, char) for char in text)

    folded = unicodedata.normalize("NFKC", unified(text)).casefold()
    again = unified(unicodedata.normalize("NFKC", folded))
    assert normalise(text) == " ".join(again.split())
