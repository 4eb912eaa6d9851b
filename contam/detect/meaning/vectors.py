"""Vectors of words and texts, from the static embedding model that a policy names by its digests.

The model lies in the package `wordllama`: a table with a vector for each token, and a tokenizer. It
is read from the package's files as they are; nothing of the package runs, and nothing is fetched.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import orjson
from tokenizers import Tokenizer

from contam.errors import ConfigError, Place, Public, Remedy
from contam.extras import require
from contam.files.single import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.model import Float32s

_PACKAGE: Final = "wordllama"
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_TYPES: Final = {"F16": "<f2", "F32": "<f4"}
_LENGTH_BYTES: Final = 8
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
        self._table = np.empty((_MOST_REMEMBERED, embedder.n_dimensions), np.float32)

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
            first = len(self._place)
            self._table[first : first + len(new)] = self._embedder.word_vectors(new)
            self._place.update(zip(new, range(first, first + len(new)), strict=True))
        return self._table[[self._place[word] for word in words]]


def _of_length_1(vectors: Float32s) -> Float32s:
    """The sum of vectors, scaled; zeros stay zeros."""
    total: Float32s = vectors.sum(axis=0)
    length = np.sqrt((total * total).sum())
    return total / length if length > 0 else total


def load_embedder(weights_sha256: str, tokenizer_sha256: str) -> StaticEmbedder:
    """The model with these digests.

    Raises MissingExtraError where it is not installed, ConfigError where another one is.
    """
    return _load(str(_folder()), weights_sha256, tokenizer_sha256)


def _folder() -> Path:
    require("meaning", _PACKAGE)
    found = find_spec(_PACKAGE)
    folders = (found and found.submodule_search_locations) or [_PACKAGE]
    return Path(folders[0])


@cache
def _load(folder: str, weights_sha256: str, tokenizer_sha256: str) -> StaticEmbedder:
    weights = _checked(Path(folder, _WEIGHTS), weights_sha256)
    tokenizer = Tokenizer.from_str(_checked(Path(folder, _TOKENIZER), tokenizer_sha256).decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return StaticEmbedder(_table_of(weights), tokenizer)


def _checked(path: Path, sha256: str) -> bytes:
    """The bytes of a file with this digest."""
    try:
        content = read_file(path)
    except OSError as error:
        raise ConfigError(
            "{}: cannot be read: {}", Place(path), Public(error.strerror),
            remedy=Remedy.INSTALL_EXTRA(extra="meaning"),
        ) from error  # fmt: skip
    if (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise ConfigError(
            "{}: another model than the policy names: SHA-256 {}, not {}", Place(path),
            Public(found[:16]), Public(sha256[:16]), remedy=Remedy.INSTALL_NAMED_MODEL,
        )  # fmt: skip
    return content


def _table_of(content: bytes) -> Float32s:
    """The one matrix of a file in the format safetensors: a head in JSON, then the numbers."""
    n_head = int.from_bytes(content[:_LENGTH_BYTES], "little")
    head = orjson.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + n_head])
    (about,) = (about for name, about in head.items() if name != "__metadata__")
    first, end = (_LENGTH_BYTES + n_head + at for at in about["data_offsets"])
    numbers = np.frombuffer(content[first:end], _TYPES[about["dtype"]])
    return numbers.reshape(about["shape"]).astype(np.float32)
