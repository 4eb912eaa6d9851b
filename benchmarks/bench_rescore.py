"""How long a re-scoring takes: many models on many items, permutations and draws included.

python benchmarks/bench_rescore.py [--models 100] [--items 100000]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.labels import CLEAN, CONTAMINATED
from contam.rescore.metrics import main_metrics
from contam.rescore.panel import Flags, RescoreSettings, Series
from contam.rescore.tables import make_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SEED = 7


def made_up(n_models: int, n_items: int) -> tuple[list[Series], Flags]:
    """Invented 0/1 scores, a fifth of the items flagged."""
    rng = np.random.default_rng(SEED)
    share = rng.random(n_items)
    nothing = np.full(n_items, "", object)
    flags = Flags(
        policy="contam",
        label=np.where(share > 0.8, CONTAMINATED, CLEAN).astype(np.int8),  # noqa: PLR2004 - a fifth
        contamination=share,
        groups={"subject": nothing},
        cluster=np.arange(n_items),
        threshold=0.8,
    )
    series = []
    for number, skill in enumerate(np.linspace(0.3, 0.8, n_models)):
        score = (rng.random(n_items) < skill).astype(np.float64)
        series.append(
            Series(
                model=f"model-{number:03}",
                benchmark="made up",
                metric="score",
                score=score,
                item=np.arange(n_items),
                aggregate=_mean_of(score),
                additive=True,
            )
        )
    return series, flags


def _mean_of(score: NDArray[np.float64]) -> Callable[[NDArray[np.bool_]], float]:
    return lambda mask: float(score[mask].mean())


def main() -> None:
    """Print a line of figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--items", type=int, default=100_000)
    given = parser.parse_args()
    series, flags = made_up(given.models, given.items)
    wall, cpu, serial = time.perf_counter(), time.process_time(), time.thread_time()
    tables, _ = make_tables(series, [flags], RescoreSettings(), main_metrics(series))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stdout.write(
        f"re-scoring {given.models} models x {given.items:,} items: "
        f"{time.process_time() - cpu:.1f} CPU-s ({time.thread_time() - serial:.1f} of them in the "
        f"first thread), {time.perf_counter() - wall:.1f} s, "
        f"peak {peak:,} MB, {tables['scores'].num_rows:,} rows of scores\n"
    )


if __name__ == "__main__":
    main()
