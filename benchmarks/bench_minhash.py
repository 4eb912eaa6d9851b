"""Text -> 128-permutation signatures: contam beside datasketch and rensa, in MB per CPU-second.

Usage: python benchmarks/bench_minhash.py --corpus PATH... [--text COLUMN] [--mb 50] [--json]

One thread. contam is given raw text and tokenises it; the others are given the words that contam
found, already made into shingles, and sketch those ("bulk"), or make the shingles too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contam.corpus.batches import BATCH_BYTES, read_chunk
from contam.detect.corpus import Corpus
from contam.index.minhash import sign_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from contam.corpus.batches import DocBatch

SHINGLE = 3
N_PERM = 128
#: The others are slow enough to be timed on less.
SMALL_BYTES = 2_000_000


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--corpus", nargs="+", required=True)
    parser.add_argument("--text", default=None, help="column of the text")
    parser.add_argument("--mb", type=float, default=50.0, help="megabytes of text to read")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    batches = read(given.corpus, given.text, int(given.mb * 1e6))
    sign_one(batches[0], "affine32")
    sign_one(batches[0], "mersenne61")
    answer = {
        f"contam {scheme}, raw text": rate(batches, scheme) for scheme in ("affine32", "mersenne61")
    }
    small = words_of(batches)
    n_bytes = sum(len(word) + 1 for document in small for word in document)
    for name, work in others(small).items():
        started = time.process_time()
        work()
        answer[name] = n_bytes / 1e6 / (time.process_time() - started)
    if given.json:
        print(json.dumps(answer, indent=1))
    else:
        for name, value in answer.items():
            print(f"{name:40} {value:8.1f} MB per CPU-second")
    return 0


def read(paths: list[str], text: str | None, n_bytes: int) -> list[DocBatch]:
    """The first batches of a corpus, until they hold so many bytes."""
    corpus = Corpus.open(paths, text)
    found: list[DocBatch] = []
    for unit in corpus.chunks:
        for batch in read_chunk(unit, corpus.shards, corpus.selections, BATCH_BYTES):
            if sum(doc_batch.n_bytes for doc_batch in found) >= n_bytes:
                return found
            found.append(batch)
    return found


def sign_one(batch: DocBatch, scheme: str) -> None:
    """Signatures of one batch."""
    sign_batch(batch.data, batch.offsets, n_perm=N_PERM, scheme=scheme, shingle=SHINGLE)


def rate(batches: list[DocBatch], scheme: str) -> float:
    """Megabytes of text that contam signs in a CPU-second."""
    started = time.process_time()
    for batch in batches:
        sign_one(batch, scheme)
    return sum(batch.n_bytes for batch in batches) / 1e6 / (time.process_time() - started)


def words_of(batches: list[DocBatch]) -> list[list[str]]:
    """Words of the first documents, split at white space."""
    found: list[list[str]] = []
    left = SMALL_BYTES
    for batch in batches:
        for i in range(batch.n_docs):
            raw = batch.data[batch.offsets[i] : batch.offsets[i + 1]].tobytes()
            left -= len(raw)
            if left < 0:
                return found
            found.append(raw.decode().split())
    return found


def shingles(words: list[str]) -> list[str]:
    """Every three words, joined."""
    return [
        " ".join(some)
        for some in zip(*(islice(words, k, None) for k in range(SHINGLE)), strict=False)
    ]


def others(documents: list[list[str]]) -> dict[str, Callable[[], Any]]:
    """What is installed of the other makers of signatures."""
    found: dict[str, Callable[[], Any]] = {}
    made = [shingles(words) for words in documents]
    try:
        import datasketch
    except ImportError:
        pass
    else:
        encoded = [[one.encode() for one in some] for some in made]
        hashes = [np.arange(len(some), dtype=np.uint32).tolist() for some in made]

        def with_shingles() -> None:
            datasketch.MinHash.bulk(
                [[shingle.encode() for shingle in shingles(words)] for words in documents],
                num_perm=N_PERM,
            )

        found["datasketch bulk, words to signatures"] = with_shingles
        found["datasketch bulk, shingles given"] = lambda: datasketch.MinHash.bulk(
            encoded, num_perm=N_PERM
        )
        found["datasketch bulk, hashes given"] = lambda: datasketch.MinHash.bulk(
            hashes, num_perm=N_PERM, hashfunc=int
        )
    try:
        rensa = import_module("rensa")
    except ImportError:
        return found

    def by_rensa() -> None:
        for words in documents:
            one = rensa.RMinHash(num_perm=N_PERM, seed=1)
            one.update(shingles(words))
            one.digest()

    found["rensa, words to signatures"] = by_rensa
    return found


if __name__ == "__main__":
    raise SystemExit(main())
