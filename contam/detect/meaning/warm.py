"""Find one small text in itself: what compiles or loads the kernels that rephrasings need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import BenchItem
from contam.corpus.batches import DocBatch
from contam.detect.match.collect import Collection
from contam.detect.match.token_view import build_view
from contam.detect.meaning.matching import RephraseMatcher
from contam.detect.meaning.rare_words import RareWords
from contam.detect.meaning.vectors import TextVectors
from contam.detect.meaning.windows import WordByWord
from contam.detect.policies.meaning import CONTAM_MEANING, Meaning
from contam.detect.query import query_a_little
from contam.detect.warm import warmup_scan
from contam.index.warm import TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.model import Float32s

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


class _Letters:
    """Vectors that count letters: no model has to be there."""

    n_dimensions = len(_LETTERS)

    def word_vectors(self, words: Sequence[str]) -> Float32s:
        """How often each letter stands in each word, so that every word is a rare one."""
        rare = CONTAM_MEANING.number("rare_from")
        counts = [[rare * word.count(letter) for letter in _LETTERS] for word in words]
        return np.array(counts, np.float32).reshape(-1, self.n_dimensions)


def look_for_rephrasings_a_little() -> None:
    """Match the text against itself in memory, and word by word."""
    items = [BenchItem(benchmark="warm", split="", item_id="1", question=TEXT)]
    policy, letters = Meaning(CONTAM_MEANING), _Letters()
    rare = RareWords.of(items, CONTAM_MEANING, letters)
    view = build_view(items, unit="word", seed=5, min_run=8, with_grams=False)
    known = replace(view.items, read=(policy.known(rare),))
    view = replace(view, rephrasings=rare, items=known)
    data = np.frombuffer(TEXT.encode(), np.uint8)
    batch = DocBatch(0, 0, data, np.array([0, len(data)], np.int64))
    RephraseMatcher(view, letters).match(batch, Collection.start(view, [policy], policy, 1))
    WordByWord(rare, TextVectors(letters)).beside(0, TEXT.encode())


def run_a_little() -> None:
    """Index, query and scan a corpus of one text: all that has kernels."""
    query_a_little()
    warmup_scan()
    look_for_rephrasings_a_little()
