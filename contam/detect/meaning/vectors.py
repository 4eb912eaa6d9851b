"""Vectors of words and texts, from the static embedding model that a policy names by its digests.

Such a model is a table with a vector for each token, and a tokenizer.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from contam.detect.meaning.models import (
    TABLES,
    TOKENIZERS,
    model_homes,
    read_model_file,
    table_of,
    tokenizer_of,
)
from contam.errors import ConfigError, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

    from contam.detect.model import Float32s
    from contam.detect.policies.policy_spec import PolicySpec

#: Words whose vectors one worker remembers.
_MOST_REMEMBERED: Final = 1 << 15
_WORD: Final = re.compile(r"[^\W\d_]+")


class Embedder(Protocol):
    """What gives words their vectors."""

    @property
    def n_dimensions(self) -> int:
        """Numbers of a vector."""

    def word_vectors(self, words: Sequence[str]) -> Float32s:
        """A vector for each word, float32[n, dimensions]; of a text they are added up."""


class StaticEmbedder:
    """A vector for each token of a tokenizer; that of a word is the sum of its tokens'."""

    def __init__(self, table: Float32s, tokenizer: Tokenizer) -> None:
        self._table = table
        self._tokenizer = tokenizer

    @property
    def n_dimensions(self) -> int:
        """Numbers of a vector."""
        return int(self._table.shape[1])

    def word_vectors(self, words: Sequence[str]) -> Float32s:
        """A vector for each word, float32[n, dimensions]."""
        encoded = self._tokenizer.encode_batch(list(words), add_special_tokens=False)
        found = np.zeros((len(encoded), self._table.shape[1]), np.float32)
        for vector, encoding in zip(found, encoded, strict=True):
            if encoding.ids:
                vector[:] = self._table[encoding.ids].sum(axis=0)
        return found


class TextVectors:
    """Vectors of texts; one worker's, which remembers those of words."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._place: dict[str, int] = {}
        self._table = np.empty((0, 0), np.float32)

    def of(self, text: str) -> Float32s:
        """The sum of the vectors of a text's words, whatever their case, of length 1.

        Numbers and marks have no part in it. A text without words has zeros.
        """
        return _of_length_1(self.of_words(_WORD.findall(text.lower())))

    def of_words(self, words: Sequence[str]) -> Float32s:
        """A vector for each word, float32[n, dimensions]."""
        if len(words) > _MOST_REMEMBERED:
            return self._embedder.word_vectors(words)
        if new := [word for word in dict.fromkeys(words) if word not in self._place]:
            if len(self._place) + len(new) > _MOST_REMEMBERED:
                self._place.clear()
                new = list(dict.fromkeys(words))
            first, vectors = len(self._place), self._embedder.word_vectors(new)
            if not len(self._table):
                self._table = np.empty((_MOST_REMEMBERED, vectors.shape[1]), np.float32)
            self._table[first : first + len(new)] = vectors
            self._place.update(zip(new, range(first, first + len(new)), strict=True))
        return self._table[[self._place[word] for word in words]]


def _of_length_1(vectors: Float32s) -> Float32s:
    """The sum of vectors, scaled; zeros stay zeros."""
    total: Float32s = vectors.sum(axis=0)
    length = np.sqrt((total * total).sum())
    return total / length if length > 0 else total


def load_embedder(spec: PolicySpec) -> Embedder:
    """The model that a policy names by its digests, from the folder that has it.

    Raises MissingExtraError where there is no model, ConfigError where there is another one.
    """
    return static_embedder(str(spec.parameter("weights")), str(spec.parameter("tokenizer")))


def static_embedder(weights_sha256: str, tokenizer_sha256: str) -> StaticEmbedder:
    """The static model with these digests. Raises as `load_embedder` does."""
    return _load(model_homes(), weights_sha256, tokenizer_sha256)


@cache
def _load(homes: tuple[str, ...], weights_sha256: str, tokenizer_sha256: str) -> StaticEmbedder:
    table = table_of(*read_model_file(homes, TABLES, weights_sha256))
    path, content = read_model_file(homes, TOKENIZERS, tokenizer_sha256)
    tokenizer = tokenizer_of(path, content)
    if tokenizer.get_vocab_size() > len(table):
        raise ConfigError(
            "{}: has {} tokens, and the model {} vectors", Place(path),
            tokenizer.get_vocab_size(), len(table), hint="is it the right file, and whole?",
        )  # fmt: skip
    return StaticEmbedder(table, tokenizer)
