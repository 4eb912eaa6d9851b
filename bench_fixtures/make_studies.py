"""Write bench_fixtures/studies: scores of invented models, for the studies of the guide.

`fresh_original.csv` and `fresh_new.csv`: twelve models on 600 items of a public set and on 500 new
ones that are 5 points harder; `quokka-7b` has part of the public set by heart.
`preparation.csv`: 36 models on two tasks, with parameters, tokens and scores after the same
fine-tuning; those of the group prepared for `brook`, and not for `lantern`.
Everything follows from SEED. Usage: python bench_fixtures/make_studies.py [--out FOLDER]
"""

from __future__ import annotations

import argparse
import csv
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING

from draw import Draw

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
SEED = 2611
#: Items in a thousand that a model of this name solves by skill.
SKILL = {
    "dunlin-1b": 300,
    "plover-3b": 360,
    "avocet-3b": 410,
    "heron-8b": 470,
    "quokka-7b": 520,
    "curlew-8b": 540,
    "godwit-9b": 590,
    "plover-14b": 630,
    "avocet-20b": 690,
    "heron-30b": 730,
    "curlew-70b": 790,
    "heron-90b": 840,
}
FRESH_ITEMS = {"fresh_original": 600, "fresh_new": 500}
#: How much harder the new items are, in a thousand.
HARDER = 50
#: Items in a thousand that a model recalls, of the public set.
MEMORY = {"quokka-7b": 400}


def fresh(name: str) -> list[dict[str, str | int]]:
    """One row a model: how many items of a set it answers right."""
    public, n = name == "fresh_original", FRESH_ITEMS[name]
    found: list[dict[str, str | int]] = []
    for model, skill in SKILL.items():
        draw = Draw(SEED, name, model)
        right = 0
        for _ in range(n):
            recalled = public and draw.below(1000) < MEMORY.get(model, 0)
            right += recalled or draw.below(1000) < skill - (0 if public else HARDER)
        found.append({"model": model, "correct": right, "n": n})
    return found


#: Points in a thousand that preparation is worth on each task.
PREPARED = {"brook": 120, "lantern": 0}
SIZES = ((1, 300), (2, 600), (3, 1000), (7, 2000), (13, 2000), (30, 3000))


def preparation() -> list[dict[str, str | int]]:
    """One row a model and task; scores grow with compute above a knot, from chance on."""
    found: list[dict[str, str | int]] = []
    for task, worth in PREPARED.items():
        draw = Draw(SEED, "preparation", task)
        for number in range(36):
            billions, tokens = SIZES[number % len(SIZES)]
            group = number // len(SIZES) % 2
            tokens += 100 * draw.below(8)
            above = max(0.0, log10(6e18 * billions * tokens) - 21.3)
            skill = 250 + int(160 * above)
            score = skill + group * worth + draw.between(-25, 25)
            tuned = skill + worth + 10 + draw.between(-25, 25)
            found.append(
                {
                    "model": f"{'new' if group else 'old'}-{billions}b-{number:02}",
                    "task": task,
                    "params": billions * 10**9,
                    "tokens": tokens * 10**9,
                    "group": group,
                    "score": f"{score / 1000:.3f}",
                    "tuned": f"{tuned / 1000:.3f}",
                }
            )
    return found


def write(path: Path, rows: Sequence[dict[str, str | int]]) -> None:
    """Write rows as a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Write one table a set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    folder = parser.parse_args().out / "studies"
    folder.mkdir(parents=True, exist_ok=True)
    for name in FRESH_ITEMS:
        write(folder / f"{name}.csv", fresh(name))
    write(folder / "preparation.csv", preparation())


if __name__ == "__main__":
    main()
