"""How often honest models are called leaked, and leaked ones found, when easier items leak more.

    python benchmarks/fairness.py [--rounds N] [--published DIR]

Each round draws a benchmark, flags items, the easier ones likelier, and tests every model against
the others (`contam.rescore.field`). `honest` is the share of honest models with p < .05,
`Holm` that of rounds in which one of them is significant after Holm, `raw` the share with p < .05
by Fisher's test of the gap alone; `found` the share of rounds in which the model that leaked has
p < .05. With DIR the matrices of public results are tested too: their items are flagged by the
difficulty that some of the models show, and the others are tested.
"""

from __future__ import annotations

import argparse
import csv
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.parquet as pq
from scipy.special import expit
from scipy.stats import fisher_exact

from contam.rescore.field import beyond_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Round = tuple[Floats, list[bool], list[float]]
    """p of honest models, whether raw tests are significant, and whether the leaked one is."""

SEED: Final = 37
SURE: Final = 0.05
FLAGGED: Final = 0.3
WIDTH: Final = 62
"""Letters of the longest name of a cell."""
#: Models of the field, their mean ability and its spread, the ability of the model under test, and
#: what else a cell has.
CELLS: Final[dict[str, dict[str, Any]]] = {
    "3 others, as able": {"others": 3},
    "10 others, as able": {"others": 10},
    "40 others, as able": {"others": 40},
    "10 others around it": {"others": 10, "spread": 1.5},
    "3 others, 1.5 to 3.5 logits weaker": {"others": 3, "mean": -2.5, "spread": 0.6},
    "10 others, 1.5 to 3.5 logits weaker": {"others": 10, "mean": -2.5, "spread": 0.6},
    "40 others, 1.5 to 3.5 logits weaker": {"others": 40, "mean": -2.5, "spread": 0.6},
    "3 weak others, ability near 92 %": {"others": 3, "mean": -1.0, "spread": 0.5, "own": 2.8},
    "10 others, ability near 92 %": {"others": 10, "mean": -0.5, "own": 2.8},
    "10 others, passages of 10": {"others": 10, "passages": 50},
    "20 others, discriminations differ": {"others": 20, "discrimination": 0.4},
    "20 others, half of them leaked": {"others": 20, "leaked": 10},
    "20 others, all of them leaked": {"others": 20, "leaked": 20},
    "it saw 30 %": {"others": 20, "seen": 0.3},
    "it saw 60 %": {"others": 20, "seen": 0.6},
    "it saw 30 %, near 88 % right": {"others": 20, "seen": 0.3, "own": 2.3},
    "it saw 60 %, near 88 % right": {"others": 20, "seen": 0.6, "own": 2.3},
    "it and half of the others saw 60 %": {"others": 20, "seen": 0.6, "leaked": 10},
    "10 others, 2 logits weaker; items 2 logits harder after a day": {
        "others": 10,
        "mean": -2.0,
        "spread": 0.6,
        "harder": 2.0,
    },
}


def world(
    rng: np.random.Generator,
    *,
    others: int,
    mean: float = 0.0,
    spread: float = 1.0,
    own: float = 0.0,
    passages: int = 0,
    discrimination: float = 0.0,
    leaked: int = 0,
    seen: float = 0.0,
    harder: float = 0.0,
    n: int = 500,
) -> tuple[Floats, Bools, NDArray[np.int64] | None]:
    """Scores float64[others + 1, n], the tested model last, flags, and passages if there are.

    leaked  others that saw 60 % of the flagged items; seen  the share that the tested model saw
    harder  half of the items are flagged, those that came out before a day, and the others so much
    harder, as `contam study time` sets them apart
    """
    cluster = np.repeat(np.arange(passages), n // passages) if passages else None
    if cluster is None:
        difficulty = rng.normal(size=n)
        flagged = easier(rng, difficulty, int(FLAGGED * n))
        if harder:
            flagged = np.arange(n) < n // 2
            difficulty += harder * ~flagged
    else:
        # Whole passages are flagged, and what sets a model apart on one is shared by its items.
        of = rng.normal(scale=0.7, size=passages)
        difficulty = of[cluster] + rng.normal(scale=0.7, size=n)
        flagged = easier(rng, of, int(FLAGGED * passages))[cluster]
    ability = np.append(rng.normal(mean, spread, others), own)
    ahead = ability[:, None] - difficulty
    if cluster is not None:
        ahead += rng.normal(scale=0.5, size=(others + 1, passages))[:, cluster]
    if discrimination:
        ahead *= np.exp(rng.normal(scale=discrimination, size=n))
    scores = (rng.random(ahead.shape) < expit(ahead)).astype(np.float64)
    for row, share in zip(scores, [0.6] * leaked + [0.0] * (others - leaked) + [seen], strict=True):
        row[flagged & (rng.random(n) < share)] = 1
    return scores, flagged, cluster


def easier(rng: np.random.Generator, difficulty: Floats, count: int) -> Bools:
    """Flags of so many items, the easier ones likelier."""
    weight = np.exp(-difficulty)
    chosen = rng.choice(len(difficulty), count, replace=False, p=weight / weight.sum())
    flagged = np.zeros(len(difficulty), np.bool_)
    flagged[chosen] = True
    return flagged


def p_values(scores: Floats, flagged: Bools, cluster: NDArray[np.int64] | None) -> Floats:
    """One for each model."""
    found = beyond_field(scores, flagged, cluster)
    return np.array([1.0 if one is None else one.p for one in found])


def raw_p(scores: Floats, flagged: Bools) -> float:
    """Of the gap, one-sided, as if flags were a random choice."""
    right = scores > 0
    cells = [[np.sum(right & flagged), np.sum(~right & flagged)]]
    cells += [[np.sum(right & ~flagged), np.sum(~right & ~flagged)]]
    return float(fisher_exact(cells, alternative="greater")[1])


def line(name: str, honest: Sequence[Floats], raw: Sequence[bool], found: Sequence[float]) -> str:
    """A row of the table."""
    some = [own for own in honest if len(own)]
    rate = np.mean([np.mean(own < SURE) for own in some]) if some else np.nan
    holm = np.mean([np.any(own < SURE / len(own)) for own in some]) if some else np.nan
    figures = map(float, (rate, holm, np.mean(raw), np.mean(found) if found else np.nan))
    return f"{name:{WIDTH}}" + "".join(f"{shown(value):>8}" for value in figures) + "\n"


def shown(value: float) -> str:
    """A figure of the table, "" for none."""
    return "" if np.isnan(value) else f"{value:.3f}"


def drawn(at: int, draw: int) -> Round:
    """A round of the cell at this place."""
    cell = [*CELLS.values()][at]
    scores, flagged, cluster = world(np.random.default_rng([SEED, at, draw]), **cell)
    p = p_values(scores, flagged, cluster)
    honest = p[cell.get("leaked", 0) : len(p) - bool(cell.get("seen"))]
    found = [float(p[-1] < SURE)] if cell.get("seen") else []
    return honest, [raw_p(scores[-1], flagged) < SURE], found


def matrices(folder: Path) -> dict[str, tuple[Floats, int]]:
    """Scores of public models, and how many of these show how hard the items are."""
    csv.field_size_limit(1 << 30)
    with (folder / "helm_gsm8k_items.csv").open(encoding="utf-8") as lines:
        helm = [[int(bit) for bit in row["correct_bits"]] for row in csv.DictReader(lines)]
    found = {"HELM GSM8K": (np.array(helm, np.float64), 10)}
    for name, file, n_first in (
        ("MMLU-Pro", "mmlu_pro_26_models.parquet", 10),
        ("PSN-IRT", "psn_irt_12_models.parquet", 6),
    ):
        table = pq.read_table(folder / file).drop_columns(["item"])
        found[name] = np.array(table.columns, np.float64), n_first
    return found


def of_matrix(matrix: Floats, n_first: int, n: int, draw: int) -> Round:
    """A round of n items of a public matrix."""
    rng = np.random.default_rng([SEED, n, draw])
    order = rng.permutation(len(matrix))
    items = rng.choice(matrix.shape[1], n, replace=False)
    shown = matrix[order[:n_first]][:, items].sum(axis=0)
    difficulty = np.log((n_first - shown + 0.5) / (shown + 0.5))
    flagged = easier(rng, difficulty, int(FLAGGED * n))
    scores = matrix[order[n_first:]][:, items]
    return p_values(scores, flagged, None), [raw_p(row, flagged) < SURE for row in scores], []


def told(name: str, rounds: Iterable[Round]) -> None:
    """Print the row of a cell."""
    honest, raw, found = zip(*rounds, strict=True)
    sys.stdout.write(line(name, honest, [*chain(*raw)], [*chain(*found)]))
    sys.stdout.flush()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--published", type=Path)
    given = parser.parse_args()
    heads = ("honest", "Holm", "raw", "found")
    sys.stdout.write(" " * WIDTH + "".join(f"{head:>8}" for head in heads) + "\n")
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for at, name in enumerate(CELLS):
            told(name, pool.map(partial(drawn, at), range(given.rounds)))
        for name, (matrix, n_first) in (
            matrices(given.published) if given.published else {}
        ).items():
            n_all = min(matrix.shape[1], 12_032)
            for n in sorted({500, min(2_000, n_all), n_all}):
                # All items are the same ones each time.
                rounds = given.rounds if n < n_all else max(10, given.rounds // 10)
                cell = f"{name}, {len(matrix) - n_first} models, {n:,} items"
                told(cell, pool.map(partial(of_matrix, matrix, n_first, n), range(rounds)))


if __name__ == "__main__":
    main()
