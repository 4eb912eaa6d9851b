"""Write bench_fixtures/studies: scores of invented models, for the studies of the guide.

`fresh_original.csv` and `fresh_new.csv`: twelve models on 600 items of a public set and on 500 new
ones that are 5 points harder; `quokka-7b` has part of the public set by heart.
`preparation.csv`: 36 models on two tasks, with parameters, tokens and scores after the same
fine-tuning; those of the group prepared for `brook`, and not for `lantern`.
`board.csv`: 20 models on six tasks; the weak ones reorder the first four.
`problems.csv`: 810 problems with the day each came out; `quokka-7b` has seen those of half a year.
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


#: Points in a thousand that the best models have on each task of the board.
LEADERS = {
    "heron-90b": (880, 870, 860, 850, 840, 380),
    "curlew-70b": (860, 850, 840, 830, 820, 690),
    "heron-30b": (800, 780, 770, 760, 750, 640),
    "godwit-9b": (770, 760, 740, 730, 720, 620),
}
TASKS = ("sums", "maps", "plants", "rivers", "rhymes", "riddles")
WEAK = 16


def board() -> list[dict[str, str | int]]:
    """One row a model; on the last task the weak models are better than the first."""
    draw = Draw(SEED, "board")
    found: list[dict[str, str | int]] = []
    scores = {name: list(own) for name, own in LEADERS.items()}
    for number in range(WEAK):
        name = f"wren-{number + 1:02}"
        scores[name] = [300 + draw.between(0, 120) for _ in TASKS]
        scores[name][-1] += 100
    for name, own in scores.items():
        row: dict[str, str | int] = {"model": name}
        row |= {task: f"{score / 1000:.3f}" for task, score in zip(TASKS, own, strict=True)}
        found.append(row)
    return found


#: What the models of the dated problems solve of a thousand easy and hard ones.
SOLVED = {"quokka-7b": (620, 300), "heron-8b": (660, 340), "plover-3b": (560, 260)}
#: Those of a model that draws apart, so that the others stay as they are.
MORE_SOLVED = {"avocet-3b": (580, 290)}
MONTHS = 18
A_MONTH = 45
#: First and last month whose problems `quokka-7b` has seen, and how many of a thousand it knows.
SEEN = (6, 11, 650)


def problems() -> list[dict[str, str | int]]:
    """One row a problem, with the day it came out; they become harder over the months."""
    draw = Draw(SEED, "problems")
    found: list[dict[str, str | int]] = []
    for month in range(MONTHS):
        for number in range(A_MONTH):
            hard = draw.below(1000) < 300 + 15 * month
            row: dict[str, str | int] = {
                "item_id": f"p{month:02}-{number:02}",
                "date": f"{2023 + month // 12}-{1 + month % 12:02}-{1 + draw.below(28):02}",
                "difficulty": "hard" if hard else "easy",
            }
            for model, skill in SOLVED.items():
                seen = model == "quokka-7b" and SEEN[0] <= month <= SEEN[1]
                known = seen and draw.below(1000) < SEEN[2]
                row[model] = int(known or draw.below(1000) < skill[hard])
            found.append(row)
    for model, skill in MORE_SOLVED.items():
        draw = Draw(SEED, f"problems of {model}")
        for row in found:
            row[model] = int(draw.below(1000) < skill[row["difficulty"] == "hard"])
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
    write(folder / "board.csv", board())
    write(folder / "problems.csv", problems())


if __name__ == "__main__":
    main()
