"""How fast a corpus is searched for rephrasings, by `contam-meaning` with one thread.

Usage: python benchmarks/bench_rephrasings.py --corpus PATH... --items PATH... [--runs N]

Prints the CPU seconds of the least run, and MB of text a CPU-second: of tokens alone; of
candidates, the windows with enough rare words of an item, tokens included; and of all matching,
which judges the candidates, too. Reading the corpus is not in it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_kernel import tokenise_batch
from bench_task import Clock

from contam.corpus.batches import read_chunk
from contam.detect.chunk_scan import start_collections
from contam.detect.corpus import Corpus
from contam.detect.meaning.matching import RephraseMatcher
from contam.detect.plan import ScanParameters, make_plan
from contam.kernels.document import new_buffers
from contam.kernels.rare_windows import find_windows
from contam.kernels.rare_words import new_rare_scratch
from contam.kernels.tokens import WORDS
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from contam.corpus.batches import DocBatch
    from contam.detect.plan import Plan

_MB: Final = 1e6


def steps(plan: Plan, longest: int) -> dict[str, Callable[[DocBatch], object]]:
    """What is measured, for documents of up to so many bytes."""
    (view,) = plan.search_views
    if view.rephrasings is None:
        raise SystemExit("no policy that looks for rephrasings")
    tables, buffers = char_tables(), new_buffers(longest, WORDS, char_tables())
    table = view.rephrasings.table
    scratch = new_rare_scratch(table, len(buffers.hashes))
    matcher, (collection,) = RephraseMatcher(view), start_collections(plan)

    def candidates(batch: DocBatch) -> object:
        return find_windows(
            batch.data, batch.offsets, table, scratch, buffers.hashes, buffers.spans, tables
        )

    return {
        "tokens": lambda batch: tokenise_batch(batch.data, batch.offsets, buffers, tables),
        "candidates": candidates,
        "all matching": lambda batch: matcher.match(batch, collection),
    }


def measure(corpus: Corpus, plan: Plan) -> tuple[dict[str, float], int]:
    """CPU seconds of each step over all batches, and bytes of text; the first batch runs twice."""
    named = steps(plan, max(1, *(chunk.n_bytes for chunk in corpus.chunks)))
    spent = dict.fromkeys(named, 0.0)
    n_bytes = 0
    for chunk in corpus.chunks:
        for batch in read_chunk(chunk, corpus.shards, corpus.selections):
            for name, step in named.items():
                if n_bytes == 0:
                    step(batch)
                clock = Clock()
                step(batch)
                spent[name] += clock.lap()[0]
            n_bytes += batch.n_bytes
    return spent, n_bytes


def main() -> None:
    """Measure, and print one line for each step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", nargs="+", required=True, help="shards or folders")
    parser.add_argument("--items", nargs="+", required=True, help="benchmark files or folders")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    corpus = Corpus.open(asked.corpus, None)
    plan = make_plan(asked.items, ScanParameters(policies=("contam-meaning",)))
    runs = [measure(corpus, plan) for _ in range(asked.runs)]
    n_bytes = runs[0][1]
    print(f"{len(plan.items):,} items, {n_bytes / _MB:.1f} MB of text")
    print(f"{'':14}{'CPU s':>10}{'MB/CPU s':>10}")
    for name in runs[0][0]:
        least = min(spent[name] for spent, _ in runs)
        print(f"{name:14}{least:10.2f}{n_bytes / _MB / least:10.1f}")


if __name__ == "__main__":
    main()
