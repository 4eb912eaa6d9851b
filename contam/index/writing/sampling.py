"""Sample the grams of document batches for a segment: one worker's part of a build."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.errors import IndexMismatchError, Place
from contam.index.minhash import sketch
from contam.kernels.document import new_buffers
from contam.kernels.sample_grams import sample_text, sample_tokens
from contam.kernels.tokens import CHARS, WORDS
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.corpus.batches import DocBatch
    from contam.corpus.documents import MetaColumns
    from contam.index.minhash import MinHashSketch
    from contam.index.model import Recipe
    from contam.text.bpe import FileTokenizer

TOKENIZER_BATCH_BYTES = 1 << 20
"""Text sampled at once where a tokenizer file makes the tokens: it makes Python objects of them."""

_ENTRY_BYTES = 24  # the entry itself, all of them behind each other, and their table
_DOCUMENT_BYTES = 64  # rows of the document arrays, and a share of the lists that hold batches


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """What is stored of consecutive documents of one shard.

    shard, first_row  their place in the corpus
    entries           uint64[n], pairs of a gram and the number of a document among these
    doc_tokens, doc_crc   uint32[docs], doc_bytes int64[docs]
    letters           uint64[m], the same of letters of torn words, see contam.kernels.letters
    metadata          their metadata
    sketch            their sketch, None where the recipe has no MinHash
    """

    shard: int
    first_row: int
    entries: NDArray[np.uint64]
    doc_tokens: NDArray[np.uint32]
    doc_crc: NDArray[np.uint32]
    doc_bytes: NDArray[np.int64]
    letters: NDArray[np.uint64]
    metadata: MetaColumns
    sketch: MinHashSketch | None

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.doc_tokens)

    @property
    def weight(self) -> int:
        """Bytes of memory until the segment is written: depends on the documents alone."""
        texts = sum(len(text) for some in self.metadata.values() for text in some if text)
        n_bytes = _ENTRY_BYTES * len(self.entries) + 2 * self.letters.nbytes
        n_bytes += _DOCUMENT_BYTES * self.n_docs + 3 * texts
        return n_bytes + (self.sketch.n_bytes if self.sketch is not None else 0)


class Sampler:
    """One worker's buffers for one recipe. Not shared between threads.

    tokenizer  as the recipe has it; it may be shared
    """

    def __init__(self, recipe: Recipe, tokenizer: FileTokenizer | None) -> None:
        self._recipe = recipe
        self._sizes = recipe.gram, recipe.stride, recipe.key_bits
        self._tokenizer = tokenizer
        self._unit = CHARS if recipe.unit == "char" else WORDS
        self._room, self._buffers = 0, new_buffers(0, self._unit, char_tables())
        self._entries = np.empty(0, np.uint64)
        self._letters = np.empty(0, np.uint64)
        self._kept = np.empty(0, np.uint64)

    def sample(self, batch: DocBatch, metadata: MetaColumns) -> Sampled:
        """Sample every document of a batch."""
        n_letters = 0
        if self._tokenizer is None:
            hashes, starts, n, n_letters = self._sample_text(batch)
        else:
            tokens = self._tokenizer.encode(batch.data, batch.offsets)
            hashes, starts = tokens.hashes, tokens.starts
            most = len(hashes) // self._recipe.stride + batch.n_docs
            self._entries = _capacity(self._entries, most)
            n = sample_tokens(hashes, starts, self._sizes, self._entries)
        found = None
        if self._recipe.minhash:
            found = sketch(hashes, starts)
        return Sampled(
            shard=batch.shard,
            first_row=batch.first_row,
            entries=self._entries[:n].copy(),
            doc_tokens=np.diff(starts).astype(np.uint32),
            doc_crc=text_crc(batch.data, batch.offsets),
            doc_bytes=np.diff(batch.offsets),
            letters=self._letters[:n_letters].copy(),
            metadata=metadata,
            sketch=found,
        )

    def _sample_text(
        self, batch: DocBatch
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], int, int]:
        recipe, n_docs = self._recipe, batch.n_docs
        longest = int(np.diff(batch.offsets).max(initial=0))
        if longest > self._room:
            self._buffers = new_buffers(longest, self._unit, char_tables())
            self._room = longest
        most = (5 if self._unit == CHARS else 2) * batch.n_bytes + 16 * n_docs
        # Untouched pages cost nothing: there are far fewer tokens than room for them.
        self._entries = _capacity(self._entries, most // recipe.stride + n_docs)
        self._letters = _capacity(self._letters, 2 * most)
        self._kept = _capacity(self._kept, most if recipe.minhash else 0)
        starts = np.empty(n_docs + 1, np.int64)
        n, n_letters = sample_text(
            *(batch.data, batch.offsets, self._unit, self._sizes, self._buffers),
            *(starts, self._entries, self._letters, self._kept),
        )
        return self._kept[: starts[-1]], starts, n, n_letters


def _capacity(buffer: NDArray[Any], n: int) -> NDArray[Any]:
    return buffer if len(buffer) >= n else np.empty(n, buffer.dtype)


def text_crc(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint32]:
    """CRC-32 of each text data[offsets[i] : offsets[i + 1]]; 0 for an empty one."""
    view, ends = data.data, offsets.tolist()
    found = (zlib.crc32(view[begin:end]) for begin, end in pairwise(ends))
    return np.fromiter(found, np.uint32, len(ends) - 1)


def tokenizer_of(recipe: Recipe) -> FileTokenizer | None:
    """The tokenizer of a recipe's unit, None for words and letters.

    Raises UsageError or ConfigError when the file is gone or no tokenizer, and IndexMismatchError
    when it is not the one that the recipe was made with.
    """
    if recipe.tokenizer is None:
        return None
    from contam.text.bpe import load_tokenizer

    loaded = load_tokenizer(recipe.tokenizer["path"])
    if loaded.sha256 != recipe.tokenizer["sha256"]:
        raise IndexMismatchError(
            "{} is not the tokenizer that the index was made with",
            Place(recipe.tokenizer["path"]),
            hint="put the old file back, or build the index again",
        )
    return loaded
