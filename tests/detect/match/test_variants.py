"""What an item reads like without its punctuation, and where that stands in the item as it is."""

from __future__ import annotations

import string
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import PARTS
from contam.detect.match import token_view
from contam.detect.match.token_view import build_view
from contam.detect.match.variants import Variant, VariantTexts, variants_of
from contam.detect.result_columns import spans_of
from contam.text.tokenizer import tokenize_bytes
from tests.kernels.support import few, make_item

#: In the order of their names.
MARKS = ("\\{}", "!\"#%&'()*,./:;?@[\\]{}", string.punctuation)
FORMULA = r"Simplify the ratio $\frac{7}{9}-\sqrt[3]{a_{2}+b}$ as far as the lantern allows."


def words(text: str) -> list[str]:
    raw = text.encode()
    return [raw[start:end].decode() for start, end in tokenize_bytes(raw).spans.tolist()]


def as_table(*questions: str) -> ItemTable:
    return ItemTable.of([make_item(n, question=text) for n, text in enumerate(questions)])


def readings(*questions: str) -> list[Variant]:
    n_words = np.array([len(words(text)) for text in questions], np.int32)
    return variants_of(as_table(*questions), n_words)


def test_a_formula_is_read_without_braces_brackets_and_all_punctuation():
    found = readings(FORMULA)
    data, starts = VariantTexts.of(as_table(FORMULA), found).left()
    said = [data[a:b].tobytes().decode() for a, b in pairwise(starts.tolist())]
    assert [" ".join(words(text)) for text in said if text] == [
        "Simplify the ratio frac79 sqrt 3 a 2 b as far as the lantern allows",
        "Simplify the ratio frac79 sqrt3a 2 b as far as the lantern allows",
        "Simplify the ratio frac79sqrt3a2b as far as the lantern allows",
    ]
    assert len({variant.name for variant in found}) == 3


@pytest.mark.parametrize(
    "question",
    [
        "Which lantern stands nearest to the harbour, and who keeps it lit?",
        "Why don't sparrows nest in the orchard, the meadow (or the quarry)?",
        "?!",
        "",
    ],
)
def test_prose_is_read_as_it_is_alone(question):
    assert readings(question) == []


pieces = st.sampled_from([*"\\{}[]()^_/.,-+=$12xé中Σ \n", "frac", "lantern", "&amp;"])
texts = st.lists(pieces, max_size=40).map("".join)


@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=4))
@few
def test_every_word_of_a_reading_is_traced_to_what_it_is_made_of(rows):
    items = [
        make_item(n, question=FORMULA + question, passage=passage, answer=answer)
        for n, (question, passage, answer) in enumerate(rows)
    ]
    view = build_view(items, unit="word", seed=5, min_run=8, with_variants=True)
    plain = build_view(items, unit="word", seed=5, min_run=8)
    variants = view.variants
    assert variants is not None
    assert set(variants.owner.tolist()) == set(range(len(items)))
    spans = every_span(items, view)
    for number, owner in enumerate(variants.owner.tolist()):
        drop = str.maketrans("", "", MARKS[int(view.benchmark[len(items) + number]) - 1])
        for at, part in enumerate(PARTS):
            text = items[owner].part_text(part)
            lo, hi = view.gram_table.part_start[4 * (variants.n_items + number) + at :][:2].tolist()
            own = range(*view.gram_table.part_start[4 * owner + at :][:2].tolist())
            said = [text[a:b].translate(drop) for a, b in spans[lo:hi].tolist()]
            assert said == [
                part_text[a:b]
                for part_text in [text.translate(drop)]
                for a, b in _code_points(part_text)
            ]
            for token in range(lo - variants.n_tokens, hi - variants.n_tokens):
                a, b = spans[variants.n_tokens + token].tolist()
                inside = [k for k in own if spans[k, 0] < b and spans[k, 1] > a]
                made_of = list(range(variants.first[token], variants.last[token]))
                assert made_of == inside
                if inside:
                    weight = float(plain.gram_table.weight[inside].sum())
                    assert view.gram_table.weight[token + variants.n_tokens] == pytest.approx(
                        weight, 1e-5
                    )


@given(
    st.lists(st.tuples(texts, texts, st.booleans()), min_size=1, max_size=8),
    st.sampled_from([1, 200, 1 << 20]),
    st.data(),
)
@few
def test_spans_of_some_tokens_are_those_that_all_tokens_have(rows, size, data):
    items = [
        make_item(n, question=FORMULA + question if formula else question, passage=passage)
        for n, (question, passage, formula) in enumerate([*rows, ("", "", True)])
    ]
    view = build_view(items, unit="word", seed=5, min_run=8, with_variants=True)
    table = ItemTable.of(items)
    every = every_span(items, view)
    asked = st.lists(st.integers(0, len(every) - 1), min_size=1, max_size=5)
    tokens = np.array(data.draw(asked), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_view, "_BLOCK_BYTES", size)
        assert spans_of(table, view, tokens).tolist() == every[tokens].tolist()
        blocks = build_view(items, unit="word", seed=5, min_run=8, with_variants=True)
        assert (
            spans_of(table, blocks, tokens).tolist() == every_span(table, blocks)[tokens].tolist()
        )


def every_span(items, view):
    return spans_of(ItemTable.of(items), view, np.arange(len(view.gram_table.token)))


def _code_points(text: str) -> list[tuple[int, int]]:
    raw = text.encode()
    return [
        (len(raw[:start].decode()), len(raw[:end].decode()))
        for start, end in tokenize_bytes(raw).spans.tolist()
    ]


@given(st.lists(texts, min_size=1, max_size=20))
@few
def test_readings_change_nothing_of_what_is_known_of_the_items_themselves(questions):
    items = [make_item(n, question=text) for n, text in enumerate([*questions, FORMULA])]
    with_them = build_view(items, unit="word", seed=3, min_run=8, with_variants=True)
    without = build_view(items, unit="word", seed=3, min_run=8)
    assert with_them.variants is not None
    total = len(without.gram_table.token)
    for name in ("token", "weight"):
        mine, theirs = getattr(with_them.gram_table, name), getattr(without.gram_table, name)
        assert mine[:total].tolist() == theirs.tolist(), name
    assert with_them.items.part_weight.tolist() == without.items.part_weight.tolist()
    assert with_them.items.n_tokens.tolist() == without.items.n_tokens.tolist()


def test_what_runs_together_without_a_word_equals_no_other():
    item = make_item(
        0,
        question=r"How much is 1/2 of \frac{3}{4} and 12 of 2(x+3), ２/３ of 1.5kg, \sqrt{x_{1}} too?",
        answer="the U.S.A. and/or vice-versa",
    )
    view = build_view([item], unit="word", seed=5, min_run=8, with_variants=True)
    variants = view.variants
    assert variants is not None
    text = item.question
    spans = every_span([item], view)
    begin = variants.token_start[1:, 3] - variants.n_tokens
    of_answer = np.zeros(len(variants.ambiguous), np.bool_)
    for lo, hi in zip(
        begin.tolist(), [*variants.token_start[2:, 0], len(view.gram_table.token)], strict=True
    ):
        of_answer[lo : hi - variants.n_tokens] = True
    found = {
        text[a:b] for a, b in spans[variants.n_tokens :][variants.ambiguous & ~of_answer].tolist()
    }
    assert found == {"1/2", "2(x", "２/３", "1.5kg", "2(x+3", "x_{1"} - {"x_{1"}
    own = {
        text[a:b] for a, b in spans[variants.n_tokens :][~variants.ambiguous & ~of_answer].tolist()
    }
    assert r"frac{3}{4" in own
    answered = {
        item.answer[a:b]
        for a, b in spans[variants.n_tokens :][variants.ambiguous & of_answer].tolist()
    }
    assert answered == {"U.S.A"}
    twelve = tokenize_bytes(b"12").hashes[0]
    kept = view.gram_table.token[variants.n_tokens :]
    assert (kept == twelve).sum() == len(variants.owner)
