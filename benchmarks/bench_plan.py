"""Memory and time of planning a scan: items read, and the table of their grams built.

    python benchmarks/bench_plan.py
    python benchmarks/bench_plan.py --items 1000000 --readings 0 0.5

Writes invented items, of which a share is LaTeX that reads otherwise without its punctuation,
and plans them in a process of its own, once for each number of items and share.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_VOCABULARY = 50_000
_SYLLABLES = ("ba", "cor", "den", "fi", "gan", "hul", "ka", "lim", "mo", "nir", "pe", "ros", "tu")
_FORMULAS = (
    r"$\frac{{{a}}}{{{b}}}$",
    r"$\binom{{{a}}}{{{b}}}$",
    r"$\dfrac{{{a}}}{{{b}}}$",
)
#: Words of an invented question, and how many stand between two formulas of one with readings.
_WORDS = (10, 30)
_BETWEEN = 8


def _vocabulary(random_: random.Random) -> list[str]:
    words = {"".join(random_.choices(_SYLLABLES, k=random_.randint(1, 4))) for _ in range(200_000)}
    return sorted(words)[:_VOCABULARY]


def write_items(path: Path, n_items: int, readings: float, seed: int = 1) -> None:
    """Write `n_items` items as JSONL, the same for the same arguments.

    readings  the share of them that is partly written in formulas
    """
    random_ = random.Random(seed)  # noqa: S311 - invented text, no secret
    words = _vocabulary(random_)
    # Some words are far more common than others, as in any language.
    weights = [1 / (rank + 1) for rank in range(len(words))]
    pool = random_.choices(words, weights, k=1 << 20)
    with path.open("w", encoding="utf-8") as file:
        for number in range(n_items):
            n_words = random_.randint(*_WORDS)
            at = random_.randrange(len(pool) - n_words)
            text = pool[at : at + n_words]
            random_.shuffle(text)
            if random_.random() < readings:
                for place in range(0, n_words, _BETWEEN):
                    a, b = random_.randint(2, 99), random_.randint(2, 99)
                    text[place] = random_.choice(_FORMULAS).format(a=a, b=b)
            row = {
                "id": str(number),
                "question": " ".join(text),
                "answer": str(random_.randint(0, 9999)),
            }
            file.write(json.dumps(row) + "\n")


def _used() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def measure(path: str) -> dict[str, Any]:
    """Plan the items of a file in this process; gigabytes of 10^9 bytes."""
    from contam.memory import tune_command

    tune_command()
    from contam.benchmark.read_files import read_benchmarks
    from contam.detect.parameters import ScanParameters
    from contam.detect.plan import plan_for

    parameters = ScanParameters()
    start, _ = _used()
    benchmarks = read_benchmarks([path])
    read, read_gb = _used()
    began = time.perf_counter()
    plan = plan_for(benchmarks, parameters)
    planned, plan_gb = _used()
    variants = plan.views[0].variants
    return {
        "items": len(plan.items),
        "readings": 0 if variants is None else len(variants.owner),
        "tokens": len(plan.views[0].items.token_hash),
        "read_cpu_s": read - start,
        "read_peak_gb": read_gb,
        "plan_cpu_s": planned - read,
        "plan_wall_s": time.perf_counter() - began,
        "plan_peak_gb": plan_gb,
    }


def _in_a_process(path: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> int:
    """Print one line for each number of items and share of items with readings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--items", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--readings", type=float, nargs="+", default=[0.0, 0.5])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        sys.stdout.write(json.dumps(measure(asked.measure)))
        return 0
    sys.stdout.write(
        "    items   readings     tokens   read GB   plan GB   read CPU-s   plan CPU-s\n"
    )
    for n_items in asked.items:
        for share in asked.readings:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "items.jsonl"
                write_items(path, n_items, share)
                seen = _in_a_process(path)
            cells = (
                *(str(seen[name]) for name in ("items", "readings", "tokens")),
                *(f"{seen[name]:.2f}" for name in ("read_peak_gb", "plan_peak_gb")),
                *(f"{seen[name]:.1f}" for name in ("read_cpu_s", "plan_cpu_s")),
            )
            sys.stdout.write("".join(f"{cell:>12}" for cell in cells) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
