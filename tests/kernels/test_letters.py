"""Words that are run together or cut: which are, and what they are by the letters of the items."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.detect.model import N_PARTS
from contam.kernels import letters, torn_words
from contam.kernels._jit import kernel
from contam.kernels.document import mend, new_buffers
from contam.kernels.gram_table import tag_of
from contam.kernels.pairs import DOCUMENT_BITS
from contam.kernels.run_together import Document
from contam.kernels.tokenize_items import tokenize_parts
from contam.kernels.tokens import WORDS, tokenize
from contam.text.tokenizer import char_tables, tokenize_bytes
from tests.kernels.support import (
    batch,
    damaged,
    few,
    frozen,
    letter_pieces,
    make_item,
    sentences,
    torn_worlds,
    twin_letters,
    u64s,
    view_of,
    words_of,
)
from tests.twins import letters as twin
from tests.twins import tokens as tokens_twin


def twin_part(text: str) -> twin.Part:
    """The words of a text and their letters, none where the letters do not spell the word."""
    pieces = letter_pieces(text)
    found = []
    for hashed, begin, end in words_of(text):
        own = "".join(chr(piece.folded) for piece in pieces if begin <= piece.start < end)
        found.append((hashed, own if tokens_twin.token_hash(own) == hashed else ""))
    return twin.Part(found)


def document_of(text: str) -> Document:
    data = np.frombuffer(text.encode(), np.uint8)
    tokens = tokenize_bytes(text.encode())
    spans = frozen(tokens.spans, np.int32)
    return Document(u64s(tokens.hashes), len(tokens), spans, data, 0, len(data))


def suspects_of(text: str) -> list[int]:
    document = document_of(text)
    out = np.empty(2 * document.n, np.int32)
    n = torn_words.find_suspects(document, np.empty(0, np.uint64), out)
    return sorted(set(out[:n].tolist()))


@given(sentences.flatmap(damaged) | st.lists(sentences.flatmap(damaged), max_size=4).map(" ".join))
@example("th e q uick bro wn f ox " * 12)
@example("Howmanycratesfallintotheharbour ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789abcdef01234567 " * 6)
def test_words_that_may_be_torn_are_those_of_the_twin(text):
    spans = [(begin, end) for _, begin, end in words_of(text)]
    assert suspects_of(text) == twin.suspects(text.encode(), spans)


def test_plain_prose_is_not_suspected():
    text = "The bakery on the corner opens before six and smells of rye; nobody minds the wait. "
    assert suspects_of(20 * text) == []
    assert suspects_of(20 * text.replace(" ", ""))
    assert suspects_of(20 * " ".join(text))


@kernel
def mended_words(text, n_bytes, gram_table, buffers):
    """The words of a text as a scan has them."""
    tables = buffers.letters.tables
    n = tokenize(text, (0, n_bytes), WORDS, buffers.hashes, buffers.spans, tables)
    doc = Document(buffers.hashes, n, buffers.spans, text, 0, n_bytes)
    return mend(doc, gram_table, buffers)


def scanned(view, text: str) -> list[twin.Word]:
    here = batch([text])
    buffers = new_buffers(here.n_bytes, WORDS, char_tables())
    n = mended_words(here.data, here.n_bytes, view.gram_table, buffers)
    spans = buffers.spans[:n].tolist()
    return [(h, *span) for h, span in zip(buffers.hashes[:n].tolist(), spans, strict=True)]


@given(torn_worlds())
@few
def test_a_document_is_put_right_as_the_twin_does(world):
    items, document = world
    own = words_of(document)
    spans = [(begin, end) for _, begin, end in own]
    parts = [twin_part(text) for item in items for text in item.part_texts()]
    assert len(parts) == N_PARTS * len(items)
    known = twin.entries(parts, letters.GRAM, letters.MOST_ALIKE)
    every = twin_letters(document)
    lengths = {
        gram: [len(parts[p].words[w][1]) for p, w in places] for gram, places in known.items()
    }
    is_there = twin.holds_torn(document.encode(), spans, every, lengths, letters.GRAM)
    want = twin.mended(own, every, parts, known, letters.GRAM) if is_there else own
    assert scanned(view_of(items), document) == want


@given(torn_worlds())
@few
def test_an_index_keeps_letters_of_every_document_that_a_scan_puts_right(world):
    items, document = world
    if scanned(view_of(items), document) == words_of(document):
        return
    here = batch([document])
    texts = batch([text for item in items for text in item.part_texts()])
    scratch = letters.new_letter_scratch(char_tables(), texts.n_bytes)
    hashes = letters.letter_hashes(texts.data, texts.offsets, scratch)
    asked = {value >> 64 - 40 for value in hashes.tolist()}
    doc = document_of(document)
    kept = np.empty(here.n_bytes + 16, np.uint64)
    scratch = letters.new_letter_scratch(char_tables(), n_words=doc.n)
    n = letters.keep_keys(doc, scratch, (kept, 0, 7, 40))
    assert {pair % 2**DOCUMENT_BITS for pair in kept[:n].tolist()} == {7}
    assert asked & {pair >> DOCUMENT_BITS for pair in kept[:n].tolist()}


def test_a_text_longer_than_a_piece_is_put_right_throughout():
    question = "How many crates of tangerines fall into the harbour before noon on the ninth barge"
    view = view_of([make_item(0, question=question)])
    filler = "thebakeryonthecorneropensbeforesixandsmellsofrye" * 400
    document = filler + question.replace(" ", "") + filler + question.replace(" ", "")
    found = [hashed for hashed, _, _ in scanned(view, document)]
    words = [hashed for hashed, _, _ in words_of(question)]
    at = [i for i in range(len(found)) if found[i : i + len(words)] == words]
    assert len(at) == 2


@given(st.lists(sentences.map(" ".join), min_size=1, max_size=3))
@few
def test_the_letters_of_an_item_spell_its_words(texts):
    here = batch(texts)
    hashes, spans, starts = tokenize_parts(here.data, here.offsets, WORDS, char_tables())
    scratch = letters.new_letter_scratch(char_tables(), here.n_bytes)
    counts, own = letters.word_letters(here.data, here.offsets, starts, hashes, spans, scratch)
    words = [word for text in texts for word in twin_part(text).words]
    assert counts.tolist() == [len(its) for _, its in words]
    assert own.tolist() == [twin.byte_of(letter) for _, its in words for letter in its]
    known = twin.entries([twin_part(text) for text in texts], letters.GRAM, 10_000)
    filter_words = np.zeros(64, np.uint64)
    grams = letters.letter_grams(counts, own, starts, filter_words).tolist()
    by_gram: dict[int, set[tuple[int, int]]] = {}
    for p, (begin, end) in enumerate(itertools.pairwise(starts.tolist())):
        for t in range(begin, end):
            if grams[t]:
                by_gram.setdefault(grams[t], set()).add((p, t - begin))
    assert sorted(map(sorted, by_gram.values())) == sorted(map(sorted, known.values()))


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from((7, 2**40 + 7)), max_size=40))
def test_every_gram_is_entered_some_times(grams):
    tags, places = np.zeros(100, np.uint8), np.zeros(100, np.int32)
    letters.enter_letters(u64s(grams), 0, tags, places)
    entered = set(places[tags != 0].tolist())
    there = [t for t, gram in enumerate(grams) if gram]
    assert entered <= set(there)
    for t in there:
        alike = [
            at
            for at in there[: there.index(t)]
            if tag_of(u64s(grams)[at]) == tag_of(u64s(grams)[t])
        ]
        assert t in entered or len(alike) >= letters.MOST_ALIKE
