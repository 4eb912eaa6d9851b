"""What the grams of a large segment cost, simulated, and what real items find in it by mistake.

    python benchmarks/bench_segment.py --items FOLDER [--documents N] [--key-bits N ...]

The keys are random, as hashes are; .79 of the pairs have a key of their own, as in English text,
the rest repeat others, the first ones oftenest. To save memory only the keys of a 16th of all
hashes are drawn, without the bits that these share: bytes and chances are those of the whole. The
table is that of the writer of indexes, and the items are looked up as `contam query` does it. All
that they find is found in vain, since no document holds a gram of theirs.

of text    bytes of the table for each byte of text, at 5,184 a document, as in the labelled corpus
false      documents opened for an item in all segments together
ms         CPU of an item's look-up in all of them, measured in one whose blocks are checked
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from contam.detect.given import given_benchmark
from contam.detect.indexed.candidates import Lookup, PlacedSegment, find_candidates
from contam.detect.indexed.search import torn_documents
from contam.detect.plan import ScanParameters, make_plan, view_for_unit
from contam.detect.policies.policy import get_policy
from contam.index.array_files import CheckedArray
from contam.index.recipe import load_recipe
from contam.index.segment import PairTable
from contam.index.writing.write import make_table, most_documents, write_arrays
from contam.kernels.pairs import DOCUMENT_BITS

TEXT = 5_184
ALONE = 0.79
#: Pairs of a document, of grams and of letters.
PAIRS, LETTERS = 600, 13
#: Bits of the hashes that are not drawn.
SLICE = 4
AT_ONCE = 1 << 24
ONE_BY_ONE = 200


def drawn(n_documents: int, n_pairs: int, key_bits: int) -> np.ndarray:
    """Pairs of key and document, uint64[n_pairs]."""
    rng = np.random.default_rng(38)
    pairs = np.empty(n_pairs, np.uint64)
    n_keys = int(ALONE * n_pairs)
    cuts = [*range(0, n_keys, AT_ONCE), *range(n_keys, n_pairs, AT_ONCE), n_pairs]
    for begin, end in pairwise(cuts):
        if begin < n_keys:
            keys = rng.integers(0, 1 << key_bits, end - begin, np.uint64)
        else:
            places = (rng.random(end - begin) ** 8 * n_keys).astype(np.int64)
            keys = pairs[places] >> np.uint64(DOCUMENT_BITS)
        documents = rng.integers(0, n_documents, end - begin, np.uint64)
        pairs[begin:end] = keys << np.uint64(DOCUMENT_BITS) | documents
    return pairs


def written(folder: Path, name: str, table: dict[str, np.ndarray]) -> PairTable:
    """A table as a query reads it."""
    files = write_arrays(folder, {f"{name}_{key}": array for key, array in table.items()})
    arrays = {file.name.removesuffix(".npy"): CheckedArray(folder, file) for file in files}
    return PairTable.of(arrays, name)


def main() -> None:
    """Print a line for each number of bits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--segments", type=int, default=100)
    parser.add_argument("--key-bits", type=int, nargs="+", default=[36, 41])
    given = parser.parse_args()
    parameters = ScanParameters()
    policies = (get_policy("contam"),)
    plan = make_plan(given_benchmark(given.items, None), parameters)
    (view,) = plan.search_views
    few = plan.items[:: len(plan.items) // ONE_BY_ONE]
    heads = ("key bits", "documents", "pairs", "r", "of text", "false", "ms", "made in s")
    sys.stdout.write("".join(f"{head:>14}" for head in heads) + "\n")
    for key_bits in given.key_bits:
        recipe = replace(load_recipe("complete"), key_bits=key_bits)
        own, n = key_bits - SLICE, given.documents
        n_pairs = n * PAIRS >> SLICE
        pairs = drawn(n, n_pairs, own)
        began = time.process_time()
        table = make_table(pairs, own, n, most_documents(recipe, n))
        seconds = time.process_time() - began
        del pairs
        n_bytes = sum(array.nbytes for array in table.values()) << SLICE
        with tempfile.TemporaryDirectory() as folder:
            letters = make_table(drawn(n, n * LETTERS >> SLICE, own), own, n, n)
            segment: Any = SimpleNamespace(
                folder=Path(folder),
                n_documents=n,
                recipe=SimpleNamespace(key_bits=own, unit="word"),
                keys_of=lambda grams, own=own: grams >> np.uint64(64 - own),
                grams=written(Path(folder), "grams", table),
                letters=written(Path(folder), "letters", letters),
            )
            rest = int(table["sizes"][2])
            del table
            part = PlacedSegment(segment, np.zeros(1, np.int32), np.zeros(n, np.uint8))
            lookup = Lookup.of(view, recipe)
            torn = torn_documents(plan.items, (part,), lookup.grams)
            found = find_candidates(lookup, (part,), None, torn)
            n_false = given.segments * len(found.documents[0]) / len(plan.items)
            spent = 0.0
            for _ in range(2):
                # The second time every block is checked.
                spent = 0.0
                for number in range(len(few)):
                    asked = few[number : number + 1]
                    own_view = view_for_unit(asked, "word", parameters, policies)
                    lookup = Lookup.of(own_view, recipe)
                    at = time.process_time()
                    torn = torn_documents(asked, (part,), lookup.grams)
                    find_candidates(lookup, (part,), None, torn)
                    spent += time.process_time() - at
        ms = 1000 * given.segments * spent / len(few)
        figures = (
            *(f"{number:,}" for number in (key_bits, n, n_pairs << SLICE, rest)),
            *(f"{n_bytes / (TEXT * n):.3f}", f"{n_false:.2f}", f"{ms:.0f}", f"{seconds:.1f}"),
        )
        sys.stdout.write("".join(f"{figure:>14}" for figure in figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
