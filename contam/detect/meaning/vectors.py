"""Vectors of words and texts, from the static embedding model that a policy names by its digests.

Such a model is a table with a vector for each token, and a tokenizer. It lies in the folder that
CONTAM_MEANING_MODEL names, or in the package `wordllama`. Files are found by their digests and read
as they are; nothing of a package runs, and nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import orjson
from tokenizers import Tokenizer

from contam.errors import ConfigError, Place, Public, Statement
from contam.extras import INSTALL, require
from contam.files.single import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.model import Float32s
    from contam.detect.policies.policy_spec import PolicySpec


_PACKAGE: Final = "wordllama"
#: Where the package keeps its files, and how they are called in a folder of another model.
TABLES: Final = ("weights/l2_supercat_256.safetensors", "model.safetensors")
TOKENIZERS: Final = ("tokenizers/l2_supercat_tokenizer_config.json", "tokenizer.json")

_TYPES: Final = {"F16": "<f2", "F32": "<f4"}
_LENGTH_BYTES: Final = 8
_DIGITS: Final = 16


def model_homes() -> tuple[str, ...]:
    """The folders in which models lie: the one that was named, and the package.

    Raises MissingExtraError where there is none.
    """
    named = os.environ.get("CONTAM_MEANING_MODEL")
    if not named:
        require("meaning", _PACKAGE)
    package = find_spec(_PACKAGE)
    installed = (package and package.submodule_search_locations) or ()
    return (*([named] if named else ()), *installed)


def read_model_file(homes: Sequence[str], names: Sequence[str], sha256: str) -> tuple[Path, bytes]:
    """The file of a model with this digest, which has one of these names in one of these folders.

    Raises ConfigError where there is none, or another one.
    """
    there = [path for home in homes for name in names if (path := Path(home, name)).exists()]
    way_out = Statement(
        "set CONTAM_MEANING_MODEL to its folder (SHA-256 {}), or {}",
        Public(sha256),
        Statement(INSTALL, Public("meaning")),
    )
    if not there:
        raise ConfigError(
            "{}: has none of {}",
            Place(homes[0] if homes else _PACKAGE),
            Public(", ".join(names)),
            hint=way_out,
        )
    for path in there:
        try:
            content = read_file(path)
        except OSError as error:
            raise ConfigError(
                "{}: cannot be read: {}", Place(path), Public(error.strerror), hint=way_out
            ) from error
        if (found := hashlib.sha256(content).hexdigest()) == sha256:
            return path, content
    raise ConfigError(
        "{}: another model than the policy names: SHA-256 {}, not {}", Place(path),
        Public(found[:_DIGITS]), Public(sha256[:_DIGITS]), hint=way_out,
    )  # fmt: skip


def tokenizer_of(path: Path, content: bytes) -> Tokenizer:
    """The tokenizer of a tokenizer.json, which pads and cuts nothing. Raises ConfigError."""
    try:
        tokenizer = Tokenizer.from_buffer(content)
    # What the library raises is no class of its own.
    except Exception as error:
        raise damaged(path, "no tokenizer.json") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def table_of(path: Path, content: bytes) -> Float32s:
    """The vector of each token, float32[tokens, dimensions], of a file in the format safetensors.

    It has a head in JSON, then the numbers. Raises ConfigError for a file that is damaged, or holds
    something else than one such table.
    """
    try:
        begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
        head: dict[str, Any] = orjson.loads(content[_LENGTH_BYTES:begin])
        head.pop("__metadata__", None)
        about, *others = head.values()
        first, end = (begin + at for at in about["data_offsets"])
        numbers = np.frombuffer(content[first:end], _TYPES[about["dtype"]])
        table = numbers.reshape(about["shape"]).astype(np.float32)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(path, "not whole, or not in the format safetensors") from error
    if others or table.ndim != 2:  # noqa: PLR2004 - a table
        raise damaged(path, "it holds not one table of vectors")
    if not np.isfinite(table).all():
        raise damaged(path, "vectors with values that are no numbers")
    return table


def damaged(path: Path, why: str) -> ConfigError:
    """The error for a file of a model that cannot be used."""
    return ConfigError("{}: {}", Place(path), Public(why), hint="is it the right file, and whole?")


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
