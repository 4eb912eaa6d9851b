"""Size of an index of rare words, and what a look-up of rephrased questions in it would read.

Usage: python benchmarks/rare_postings.py --data DIR [--items N]

DIR holds items/ and corpus/ (Parquet). Prints the size of an entry for each rare word and document,
and 64 tokens, and token, as differences in numbers of variable length; and for N random questions
how many documents have enough of their rare words. Rare is what `contam-meaning` calls so.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.parquet as pq
import zstandard

# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contam.benchmark.read_files import read_benchmarks
from contam.detect.meaning.rare_words import RareWords
from contam.detect.meaning.vectors import load_embedder
from contam.detect.policies.policy import get_policy
from contam.text.common_words import common_words
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

SPEC: Final = get_policy("contam-meaning").spec
BLOCK: Final = 64
_DICTIONARY_BYTES: Final = 13
_WORDS_AT_ONCE: Final = 100_000
_MB: Final = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """All tokens of a corpus, and its rare words, ascending.

    first  int64[documents + 1], where the tokens of each begin;  sizes  int64[documents], bytes
    at, word  int64[rare tokens], which token it is and the number of its word
    """

    first: Ints
    sizes: Ints
    rare: NDArray[np.uint64]
    at: Ints
    word: Ints

    @property
    def document(self) -> Ints:
        """Of each rare token."""
        return np.searchsorted(self.first, self.at, side="right") - 1


def texts(corpus: Path) -> Iterator[bytes]:
    """The documents of all shards."""
    for path in sorted(corpus.rglob("*.parquet")):
        with pq.ParquetFile(path) as file:
            (column,) = {"text", "content"} & set(file.schema_arrow.names)
            for batch in file.iter_batches(columns=[column]):
                yield from ((text or "").encode() for text in batch.column(0).to_pylist())


def read(corpus: Path) -> Corpus:
    """Tokenise the corpus, and look for its rare words as the policy does for those of items."""
    hashes, lengths, sizes = [], [], []
    spelling: dict[int, str] = {}
    for raw in texts(corpus):
        tokens = tokenize_bytes(raw)
        hashes.append(tokens.hashes)
        lengths.append(len(tokens))
        sizes.append(len(raw))
        for value, token in zip(*np.unique(tokens.hashes, return_index=True), strict=True):
            if int(value) not in spelling:
                begin, end = tokens.spans[token]
                spelling[int(value)] = raw[begin:end].decode(errors="replace").lower()
    common = set(common_words().tolist())
    likely = sorted(
        value
        for value, word in spelling.items()
        if len(word) > 2 and word.isascii() and word.isalpha() and value not in common  # noqa: PLR2004 - as the policy
    )
    embedder = load_embedder(SPEC)
    weights = np.concatenate(
        [
            np.linalg.norm(
                embedder.word_vectors(
                    [spelling[value] for value in likely[start : start + _WORDS_AT_ONCE]]
                ).astype(np.float64),
                axis=1,
            )
            for start in range(0, len(likely), _WORDS_AT_ONCE)
        ]
    )
    rare = np.array(likely, np.uint64)[np.rint(weights) >= SPEC.number("rare_from")]
    whole = np.concatenate(hashes)
    place = np.minimum(np.searchsorted(rare, whole), len(rare) - 1)
    at = np.flatnonzero(rare[place] == whole)
    first = np.concatenate([[0], np.cumsum(lengths)])
    return Corpus(first, np.array(sizes), rare, at, place[at])


def packed(numbers: Ints) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    width = 5
    digits = numbers[:, None] >> (7 * np.arange(width))
    more = digits > 127  # noqa: PLR2004 - seven bits
    used = np.concatenate([np.ones((len(numbers), 1), np.bool_), more[:, :-1]], axis=1)
    return bytes(((digits & 127) | (more << 7)).astype(np.uint8)[used])


def entries(word: Ints, unit: Ints) -> tuple[Ints, Ints]:
    """Each pair of word and unit once, in order."""
    n = int(unit.max()) + 1
    key = np.unique(word * n + unit)
    return key // n, key % n


def print_size(name: str, corpus: Corpus, word: Ints, unit: Ints) -> None:
    """One line of sizes."""
    differences = np.diff(unit, prepend=0)
    begins = np.diff(word, prepend=-1) != 0
    differences[begins] = unit[begins]
    raw = packed(differences)
    small = len(zstandard.compress(raw, 3))
    dictionary, text = _DICTIONARY_BYTES * len(corpus.rare), corpus.sizes.sum()
    print(
        f"{name:10} {len(word):12,} entries {(len(raw) + dictionary) / _MB:7.1f} MB"
        f" ({(len(raw) + dictionary) / text:.1%} of the text), with zstd"
        f" {(small + dictionary) / _MB:7.1f} MB ({(small + dictionary) / text:.1%})"
    )


def print_look_up(corpus: Corpus, word: Ints, document: Ints, data: Path, n_items: int) -> None:
    """What random questions would have to read: no document with a rephrasing is left out."""
    names = sorted(str(path) for path in (data / "items").iterdir())
    items = [item for benchmark in read_benchmarks(names) for item in benchmark.items]
    known = RareWords.of(items, SPEC, load_embedder(SPEC))
    starts = np.searchsorted(word, np.arange(len(corpus.rare) + 1))
    can = np.flatnonzero(known.checkable)
    chosen = np.random.default_rng(0).choice(can, min(n_items, len(can)), replace=False)
    n_read, n_bytes, any_of = [], [], np.zeros(len(corpus.sizes), np.bool_)
    for item in chosen:
        own = known.table.item_word[slice(*known.table.item_start[item : item + 2])]
        weight, n_words = np.zeros((2, len(corpus.sizes)))
        for number in own:
            place = min(int(np.searchsorted(corpus.rare, known.hashes[number])), len(starts) - 2)
            if corpus.rare[place] == known.hashes[number]:
                found = document[starts[place] : starts[place + 1]]
                weight[found] += known.table.weight[number]
                n_words[found] += 1
        enough = (weight >= known.table.least[item]) & (n_words >= SPEC.number("least_words"))
        any_of |= enough
        n_read.append(int(enough.sum()))
        n_bytes.append(int(corpus.sizes[enough].sum()))
    total = corpus.sizes.sum()
    print(
        f"{len(chosen):,} questions: {np.mean(n_read):.1f} documents each (95th percentile"
        f" {np.percentile(n_read, 95):.0f}), {np.mean(n_bytes) / total:.2%} of the text;"
        f" any of them {corpus.sizes[any_of].sum() / total:.0%}"
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--items", type=int, default=1_000)
    given = parser.parse_args()
    corpus = read(given.data / "corpus")
    n_tokens = int(corpus.first[-1])
    print(
        f"{len(corpus.sizes):,} documents, {corpus.sizes.sum() / _MB:.0f} MB, {n_tokens:,} tokens;"
        f" {len(corpus.rare):,} rare words, {len(corpus.at) / n_tokens:.0%} of the tokens"
    )
    document = corpus.document
    within = (corpus.at - corpus.first[document]) // BLOCK
    n_blocks = np.maximum(1, -(-np.diff(corpus.first) // BLOCK))
    block = np.concatenate([[0], np.cumsum(n_blocks)])[document] + within
    by_document = entries(corpus.word, document)
    print_size("documents", corpus, *by_document)
    print_size(f"{BLOCK} tokens", corpus, *entries(corpus.word, block))
    print_size("tokens", corpus, *entries(corpus.word, corpus.at))
    print_look_up(corpus, *by_document, given.data, given.items)


if __name__ == "__main__":
    main()
