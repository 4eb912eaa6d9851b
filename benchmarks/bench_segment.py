"""How much room the grams of a large segment take, simulated.

    python benchmarks/bench_segment.py [--documents N] [--pairs-per-document N]

Keys are random, as hashes are; .79 of the pairs have a key of their own, as in English text, the
rest repeat others, the first ones oftenest. The table is made by the writer of indexes. `of text`
is for 5,184 bytes of text a document, the mean of the labelled corpus, and `false` the chance that
a gram which no document holds is taken for one that some does.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from contam.index.recipe import load_recipe
from contam.index.writing.write import make_table
from contam.kernels.pairs import DOCUMENT_BITS

KEY_BITS = 64 - DOCUMENT_BITS
TEXT = 5_184
ALONE = 0.79
AT_ONCE = 1 << 24


def drawn(n_documents: int, n_pairs: int) -> np.ndarray:
    """Pairs of key and document, uint64[n_pairs]."""
    rng = np.random.default_rng(38)
    pairs = np.empty(n_pairs, np.uint64)
    n_keys = int(ALONE * n_pairs)
    for begin in range(0, n_pairs, AT_ONCE):
        end = min(n_pairs, begin + AT_ONCE)
        keys = rng.integers(0, 1 << KEY_BITS, end - begin, np.uint64)
        if end > n_keys:
            again = np.arange(max(begin, n_keys), end)
            places = (rng.random(len(again)) ** 8 * n_keys).astype(np.int64)
            keys[again - begin] = pairs[places] >> np.uint64(DOCUMENT_BITS)
        documents = rng.integers(0, n_documents, end - begin, np.uint64)
        pairs[begin:end] = keys << np.uint64(DOCUMENT_BITS) | documents
    return pairs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, nargs="+", default=[42_346, 1_000_000])
    parser.add_argument("--pairs-per-document", type=int, default=600)
    given = parser.parse_args()
    heads = ("documents", "pairs", "keys", "r", "MB", "of text", "false", "CPU s")
    sys.stdout.write("".join(f"{head:>13}" for head in heads) + "\n")
    for n_documents in given.documents:
        pairs = drawn(n_documents, n_documents * given.pairs_per_document)
        began = time.process_time()
        table = make_table(pairs, KEY_BITS, n_documents, load_recipe("complete").cap)
        seconds = time.process_time() - began
        n_pairs, n_keys, rest, _ = table["sizes"].tolist()
        n_bytes = sum(array.nbytes for array in table.values())
        figures = (
            *(f"{number:,}" for number in (n_documents, n_pairs, n_keys, rest, n_bytes // 10**6)),
            *(f"{n_bytes / (TEXT * n_documents):.3f}", f"{n_keys / 2**KEY_BITS:.2%}"),
            f"{seconds:.1f}",
        )
        sys.stdout.write("".join(f"{figure:>13}" for figure in figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
