"""Count the documents in which a phrase stands, word for word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.match.grams import GramPlaces
from contam.errors import ShardError, UsageError
from contam.kernels.candidates import CLOSED, Lists, open_by_grams
from contam.kernels.pairs import DOCUMENT_BITS
from contam.kernels.tokens import CHARS, WORDS
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from contam.detect.indexed.candidates import PlacedSegment
    from contam.detect.indexed.indexes import IndexSet
    from contam.detect.model import Bools, Int64s, Uint64s


@dataclass(frozen=True, slots=True)
class PhraseCount:
    """How many documents hold a phrase, whatever case, punctuation and white space.

    documents  (shard, row) of each, by shard and row
    exact      whether there are no others: not where only grams of more documents than an index
               keeps are in the phrase, or a part of the corpus could not be read
    """

    documents: tuple[tuple[str, int], ...]
    exact: bool


def count_phrase(opened: IndexSet, phrase: str) -> PhraseCount:
    """The documents that hold all words of a phrase in a row.

    Raises UsageError for a phrase of fewer tokens than a gram of the index, and for an index that
    does not keep every gram; IndexDamageError when a file of it is not what was written.
    """
    recipe = opened.recipe
    if recipe.stride != 1 or recipe.tokenizer is not None:
        hint = "one of recipe `complete` does, in words or letters"
        raise UsageError("this index does not count phrases", hint=hint)
    unit = CHARS if recipe.unit == "char" else WORDS
    tokens = tokenize_bytes(phrase.encode("utf-8", "replace"), unit=unit).hashes
    if len(tokens) < recipe.gram:
        said = "the text has {} tokens, and phrases of {} or more can be counted"
        raise UsageError(said, len(tokens), recipe.gram, hint="give a longer text")
    grams = GramPlaces.of(tokens, np.array([0, len(tokens)], np.int64), recipe.gram)
    keys = np.unique(grams.key >> np.uint64(DOCUMENT_BITS))
    wanted = tokens.tobytes()
    documents: list[tuple[int, int]] = []
    exact = True
    opened.look_again()
    for part in opened.parts:
        with opened.lock:
            chosen, capped = _holding(part, keys)
        exact &= not capped.all()
        shards, rows = opened.place_of(part, chosen)
        crcs = part.segment.arrays["doc_crc"]
        crcs.check_all()
        for shard in np.unique(shards).tolist():
            own = shards == shard
            order = np.argsort(rows[own])
            at = rows[own][order]
            try:
                texts = opened.rows.texts(shard, at, crcs.array[chosen[own][order]])
            except ShardError as error:
                opened.fail(shard, error)
                continue
            documents += [
                (shard, row)
                for row, text in zip(at.tolist(), texts, strict=True)
                if _stands_in(wanted, tokenize_bytes(text, unit=unit).hashes)
            ]
    exact &= opened.coverage.complete
    # A file that two indexes hold has two names where each has retired a document of its own.
    places: dict[tuple[str, str, int], tuple[str, int]] = {}
    for shard, row in sorted(documents):
        record = opened.records[shard]
        file = (record.uri, record.sha256) if record else (opened.names[shard], "")
        places.setdefault((*file, row), (opened.names[shard], row))
    return PhraseCount(tuple(places.values()), exact)


def _holding(part: PlacedSegment, keys: Uint64s) -> tuple[Int64s, Bools]:
    """Documents of a segment with all grams, ascending, and of which grams it has only some."""
    segment, state = part.segment.grams, part.state
    first, stop = segment.find(keys)
    capped = segment.capped(keys)
    none = np.empty(0, np.int64)
    if ((first == stop) & ~capped).any():
        return none, np.zeros(len(keys), np.bool_)
    known = np.flatnonzero(~capped) if not capped.all() else np.arange(len(keys))
    lists = Lists(first, stop, segment.packed(first, stop), segment.width)
    found = open_by_grams(known[np.newaxis].astype(np.int32), lists, state)
    state[found] = CLOSED
    return np.sort(found), capped


def _stands_in(phrase: bytes, tokens: Uint64s) -> bool:
    """Whether some tokens stand in a row among others; a token is 8 bytes."""
    text = tokens.tobytes()
    at = text.find(phrase)
    while at >= 0 and at % tokens.itemsize:
        at = text.find(phrase, at + 1)
    return at >= 0
