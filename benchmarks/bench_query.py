"""How long an index takes to answer: a whole benchmark, cold and warm, and one item at a time.

python benchmarks/bench_query.py --index DIR --items mmlu.jsonl gsm8k.jsonl [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import contam

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Single questions asked; the first ones fill what is kept in memory.
N_SINGLE = 400
N_WARM = 20


def measure(index: str, items: Sequence[str], *, n_single: int = N_SINGLE) -> dict[str, Any]:
    """Figures of one index and some benchmark files; all times are CPU time on one thread.

    open_ms         opening the index and looking at its shards
    first_s, warm_s  a whole query, tables of the result included
    item_ms         median, ninth decile and largest time of single questions, asked twice: the
                    second time the row groups read last are in memory
    """
    begin = time.process_time()
    reader = contam.open_index(index)
    open_ms = 1e3 * (time.process_time() - begin)
    whole = []
    for _ in range(2):
        begin = time.process_time()
        result = contam.query(index, list(items), workers=1)
        n_rows = result.evidence.num_rows + result.verdicts.num_rows
        whole.append(time.process_time() - begin)
    asked = list(result.items_in_order)
    step = max(1, len(asked) // n_single)
    chosen = asked[::step][:n_single]
    for item in chosen[:N_WARM]:
        reader.check(item)
    times = [[_one(reader, item) for item in chosen] for _ in range(2)][1]
    return {
        "items": len(asked),
        "corpus_bytes": result.coverage["n_bytes"],
        "rows_of_result": n_rows,
        "documents_read": result.run["index"]["documents_read"],
        "open_ms": open_ms,
        "first_s": whole[0],
        "warm_s": whole[1],
        "item_ms": {
            "median": statistics.median(times),
            "p90": sorted(times)[int(0.9 * len(times))],
            "largest": max(times),
        },
    }


def _one(reader: contam.IndexReader, item: contam.BenchItem) -> float:
    begin = time.process_time()
    verdicts = list(reader.check(item))
    took = time.process_time() - begin
    if not verdicts:
        raise RuntimeError("an item was given no verdict")
    return 1e3 * took


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", required=True)
    parser.add_argument("--items", nargs="+", required=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.index, options.items)
    if options.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    one = found["item_ms"]
    lines = [
        f"{found['corpus_bytes'] / 1e6:,.0f} MB of text, opened in {found['open_ms']:.0f} ms",
        (
            f"{found['items']:,} items: {found['first_s']:.2f} s, again {found['warm_s']:.2f} s, "
            f"{found['documents_read']:,} documents read"
        ),
        (
            f"one item: median {one['median']:.2f} ms, 90 % {one['p90']:.2f} ms, "
            f"largest {one['largest']:.1f} ms"
        ),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
