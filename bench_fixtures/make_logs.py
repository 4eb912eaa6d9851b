"""Write bench_fixtures/logs: the scores of three invented models on our own items.

`heron-8b` is the better model; `quokka-7b` is weaker but has the items that stand in the corpus by
heart; `plover-3b` is the weakest. Everything follows from SEED.
Usage: python bench_fixtures/make_logs.py [--out FOLDER]
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

from draw import Draw

HERE = Path(__file__).resolve().parent
SEED = 2605
#: Items in a hundred a model solves by skill.
SKILL = {"heron-8b": 62, "plover-3b": 30, "quokka-7b": 45}
#: Planted items in a hundred that the model with a memory recalls.
MEMORY = {"quokka-7b": 95}
BENCHMARKS = ("brook_math", "lantern_quiz", "tinker_code")


def rows(benchmark: str) -> list[dict[str, str]]:
    """One row an item: its id and question, and 0 or 1 for each model."""
    planted = {
        one["item_id"]
        for line in (HERE / "truth.jsonl").read_text(encoding="utf-8").splitlines()
        if (one := json.loads(line))["expected"] in ("contaminated", "flagged")
    }
    draw = Draw(SEED, benchmark)
    found = []
    path = HERE / "items" / f"{benchmark}.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        name = str(item.get("id", item.get("task_id")))
        row = {"item_id": name, "question": str(item.get("question", item.get("prompt")))}
        for model, skill in SKILL.items():
            recalled = name in planted and draw.below(100) < MEMORY.get(model, 0)
            row[model] = str(int(recalled or draw.below(100) < skill))
        found.append(row)
    return found


def main() -> None:
    """Write one table a benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    folder = parser.parse_args().out / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for benchmark in BENCHMARKS:
        found = rows(benchmark)
        with (folder / f"{benchmark}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main()
