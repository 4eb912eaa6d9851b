"""CPU time and memory of a scan by the number of items: read, planned, searched for and judged.

    python benchmarks/bench_items.py --corpus CORPUS --items ITEMS
    python benchmarks/bench_items.py --corpus CORPUS --items ITEMS --n 10000 1000000

Every number of items is written to a file of its own, made of the items that are there: as many
copies of each as it takes, in which half of the words are others of the same benchmark, so that
copies share hardly more than any two items do. Each number has a process of its own.

    read, plan, scan, finish   CPU seconds of each part, with one worker; `finish` judges and writes
    peak GB                    the most memory the process held in that part and before, in 10^9
                               bytes
    bytes an item              what a further item costs: peak of the whole command against that of
                               the number before it
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if TYPE_CHECKING:
    from collections.abc import Callable

    from contam.benchmark.items import BenchItem

_POLICIES = ("contam", "lmeval-13", "openr1-8", "llama3-8gram")
_STAGES = ("read", "plan", "scan", "finish")
_WORD = re.compile(r"\w+")
#: Share of the words of a copy that are others than in the item.
_CHANGED = 0.5
_POOL = 1 << 20


class _Copies:
    """Makes copies of items, the same for the same seed."""

    def __init__(self, items: list[BenchItem], seed: int = 1) -> None:
        self._random = random.Random(seed)  # noqa: S311 - varied text, no secret
        words: dict[str, list[str]] = {}
        for item in items:
            words.setdefault(item.benchmark, []).extend(_WORD.findall(item.question))
        # Long enough that no place is met twice in the same order.
        self._pools = {
            name: self._random.choices(found or ["word"], k=max(1 << 12, len(found)))
            for name, found in words.items()
        }

    def of(self, item: BenchItem, number: int) -> dict[str, Any]:
        """A row of JSON of one copy; copy 0 is the item itself."""
        change = (lambda text: text) if number == 0 else self._changer(self._pools[item.benchmark])
        row = {
            "benchmark": item.benchmark,
            "split": item.split,
            "id": item.item_id if number == 0 else f"{item.item_id}-{number}",
            "question": change(item.question),
        }
        if item.passage:
            row["passage"] = change(item.passage)
        if item.choices:
            row["choices"] = [change(choice) for choice in item.choices]
        if item.answer and item.answer_index is None:
            row["answer"] = change(item.answer)
        elif item.answer_index is not None:
            row["answer_index"] = item.answer_index
        return row

    def _changer(self, pool: list[str]) -> Callable[[str], str]:
        draw, n = self._random.random, len(pool)

        def other(word: re.Match[str]) -> str:
            drawn = draw()
            return pool[int(drawn / _CHANGED * n)] if drawn < _CHANGED else word[0]

        return lambda text: _WORD.sub(other, text)


def write_items(path: Path, sources: list[str], n_items: int) -> None:
    """Write `n_items` items as JSONL, the same for the same sources."""
    from contam.benchmark.read_files import read_benchmarks

    items = [item for benchmark in read_benchmarks(sources) for item in benchmark.items]
    copies = _Copies(items)
    with path.open("w", encoding="utf-8") as file:
        for at in range(n_items):
            number, place = divmod(at, len(items))
            # Fewer than there are: evenly from all benchmarks.
            item = items[place if n_items >= len(items) else at * len(items) // n_items]
            file.write(json.dumps(copies.of(item, number), ensure_ascii=False) + "\n")


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measure(corpus: list[str], items: str, policies: list[str]) -> dict[str, Any]:
    """Scan a corpus for the items of a file in this process."""
    from contam.extras import claim_process
    from contam.memory import tune_command

    claim_process()
    tune_command()
    from contam.benchmark.read_files import read_benchmarks
    from contam.detect.chunk_scan import scan_chunks
    from contam.detect.corpus import Corpus
    from contam.detect.finish import finish_scan
    from contam.detect.plan import ScanParameters, plan_for
    from contam.detect.report import write_report
    from contam.detect.warm import match_a_little

    match_a_little()  # kernels from their cache
    spent: dict[str, tuple[float, float]] = {}
    began, started = _cpu(), time.time()

    def lap(stage: str) -> None:
        nonlocal began
        spent[stage] = _cpu() - began, _peak()
        began = _cpu()

    benchmarks = list(read_benchmarks([items]))
    lap("read")
    opened = Corpus.open(corpus, None)
    plan = plan_for(benchmarks, ScanParameters(policies=tuple(policies)))
    lap("plan")
    n_tokens = sum(len(view.items.token_hash) for view in plan.views)
    partial = scan_chunks(plan, opened, workers=1)
    lap("scan")
    with tempfile.TemporaryDirectory() as folder:
        result = finish_scan(plan, opened, partial, workers=1, started=started)
        write_report(result, Path(folder) / "result")
    lap("finish")
    return {
        "items": len(plan.items),
        "tokens": n_tokens,
        "stages": spent,
    }


def _in_a_process(asked: argparse.Namespace, path: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--corpus", *asked.corpus, "--items", str(path)]
    command += ["--policies", *asked.policies, "--measure"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> int:
    """Print one line for each number of items."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", nargs="+", required=True, help="shards or folders")
    parser.add_argument("--items", nargs="+", required=True, help="benchmark files or folders")
    parser.add_argument("--policies", nargs="+", default=list(_POLICIES))
    parser.add_argument("--n", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        sys.stdout.write(json.dumps(measure(asked.corpus, asked.items[0], asked.policies)))
        return 0
    titles = ["items", "tokens", *(f"{name} s" for name in _STAGES)]
    titles += [*(f"{name} GB" for name in _STAGES), "bytes/item"]
    sys.stdout.write("".join(f"{title:>12}" for title in titles) + "\n")
    before = (0, 0.0)
    for n_items in sorted(asked.n):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "items.jsonl"
            write_items(path, asked.items, n_items)
            seen = _in_a_process(asked, path)
        stages = seen["stages"]
        peak = stages["finish"][1]
        more = (peak - before[1]) * 1e9 / (seen["items"] - before[0]) if before[0] else 0.0
        before = seen["items"], peak
        cells = [str(seen["items"]), str(seen["tokens"])]
        cells += [f"{stages[name][0]:.1f}" for name in _STAGES]
        cells += [f"{stages[name][1]:.2f}" for name in _STAGES]
        cells.append(f"{more:,.0f}" if more else "-")
        sys.stdout.write("".join(f"{cell:>12}" for cell in cells) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
