"""What an index costs: to build, to keep, to open and to ask, on one machine in one run.

Usage: python benchmarks/bench_index.py --corpus PATH... [--items PATH...] [--out build/bench-index]

With items, the first of the indexes is asked for them, beside a scan: see bench_query.py.

Every build runs in a process of its own, with kernels compiled and the files in the page cache, and
of two the one with the least CPU counts. Peak memory is that of the whole process; beside it stands
what the same process needs for a corpus of one document: the base that --memory does not count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

REPEATS: Final = 2
OPENINGS: Final = 5
#: Recipe, MinHash or not, --memory.
BUILDS: Final = (
    ("complete", True, 2_000_000_000),
    ("complete", True, 256_000_000),
    ("complete", False, 2_000_000_000),
    ("compact", False, 2_000_000_000),
    ("chars", False, 2_000_000_000),
)

Record = dict[str, Any]

# A child's peak starts from its parent's: nothing heavy may be imported here.
CHILD: Final = """
import dataclasses, json, resource, sys, time
asked = json.loads(sys.argv[1])
from contam.index.build import build
from contam.index.recipe import load_recipe
recipe = load_recipe(asked["recipe"])
if not asked["minhash"]:
    recipe = dataclasses.replace(recipe, minhash=False)
warm = asked["out"] + "-warm"
build(asked["warm"], warm, recipe, workers=1, overwrite=True)
unit = 1 if sys.platform == "darwin" else 1024
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
began = time.process_time()
made = build(asked["corpus"], asked["out"], recipe, workers=1, memory=asked["memory"])
cpu = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
from contam.index.open import Index
seconds = []
for _ in range(asked["openings"]):
    began = time.perf_counter()
    Index.open(asked["out"])
    seconds.append(time.perf_counter() - began)
files = [one for segment in made.segments for one in segment.files]
print(json.dumps({
    "cpu": cpu, "base": base, "peak": peak, "open": sorted(seconds)[len(seconds) // 2],
    "bytes": sum(one.n_bytes for one in made.segments), "segments": len(made.segments),
    "grams": sum(one.n_bytes for one in files if not one.name.startswith("minhash")),
    "minhash_bytes": sum(one.n_bytes for one in files if one.name.startswith("minhash")),
}))
"""


def measure(corpus: list[str], out: Path) -> list[Record]:
    """One record for each of BUILDS."""
    warm = out / "warm.jsonl"
    warm.write_text('{"text": "one small document of a few words to compile and to load all"}\n')
    rows = []
    for number, (recipe, minhash, memory) in enumerate(BUILDS):
        asked = {
            "recipe": recipe, "minhash": minhash, "memory": memory, "corpus": corpus,
            "warm": str(warm), "openings": OPENINGS,
        }  # fmt: skip
        found = []
        for _ in range(REPEATS):
            folder = out / ("other" if number else "index")
            shutil.rmtree(folder, ignore_errors=True)
            call = [sys.executable, "-c", CHILD, json.dumps({**asked, "out": str(folder)})]
            done = subprocess.run(call, check=False, stdout=subprocess.PIPE, text=True)
            if done.returncode:
                raise SystemExit(f"bench: building {recipe} failed, see above")
            found.append(json.loads(done.stdout))
        rows.append({**asked, **min(found, key=lambda one: one["cpu"])})
    return rows


def table(rows: list[Record]) -> str:
    """The records as a Markdown table."""
    lines = [
        (
            "| recipe | memory MB | CPU-s | MB of text per CPU-s | grams, of text "
            "| MinHash, of text | segments | base MB | peak MB | open ms |"
        ),
        "| --- " + "| ---: " * 9 + "|",
    ]
    for row in rows:
        name = row["recipe"] + (", MinHash" if row["minhash"] else "")
        size = row["bytes"]
        lines.append(
            f"| {name} | {row['memory'] / 1e6:,.0f} | {row['cpu']:.1f} "
            f"| {size / 1e6 / row['cpu']:.0f} | {row['grams'] / size:.3f} "
            f"| {row['minhash_bytes'] / size:.3f} | {row['segments']} "
            f"| {row['base'] / 1e6:.0f} | {row['peak'] / 1e6:.0f} | {1e3 * row['open']:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", nargs="+", required=True)
    parser.add_argument("--items", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("build/bench-index"))
    asked, _ = parser.parse_known_args()
    shutil.rmtree(asked.out, ignore_errors=True)
    asked.out.mkdir(parents=True)
    rows = measure(asked.corpus, asked.out)
    print(f"{rows[0]['bytes'] / 1e6:,.0f} MB of text, one worker\n")
    print(table(rows), flush=True)
    if asked.items:
        name = f"{BUILDS[0][0]}, MinHash" if BUILDS[0][1] else BUILDS[0][0]
        print(f"\nasking the first of these indexes ({name})\n", flush=True)
        script = Path(__file__).with_name("bench_query.py")
        call = [str(script), "--index", str(asked.out / "index"), "--scan", "--items", *asked.items]
        if subprocess.run([sys.executable, *call], check=False).returncode:
            raise SystemExit("bench: asking the index failed, see above")


if __name__ == "__main__":
    main()
