"""What a scan costs, beside a bare read of the same text, on one machine in one run.

Usage: python benchmarks/bench.py --corpus PATH... --items PATH... [--out build/bench] [--json]

Prints one table: CPU-seconds and MB of raw text per CPU-second of a bare pyarrow read of the text
column, of contam's tokeniser alone and of whole scans: with 1 and 2 workers, with 1,000, 10,000,
30,000 and all items, with 1, 4, 12 and 48 shards; below it, of each stage of a scan, and of each
part of the command as a whole: imports, benchmark, plan, scan, tables. Every line is
measured in a process of its own, with kernels compiled and the files in the page cache. Of several
repeats the one with the least CPU counts: whatever else a machine does only adds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

# Nothing heavy here: what a child reports as its peak memory starts from its parent's.
HERE: Final = Path(__file__).resolve().parent
POLICIES: Final = ("contam", "lmeval-13", "openr1-8", "llama3-8gram")
SHARD_COUNTS: Final = (1, 4, 12, 48)
ITEM_COUNTS: Final = (1_000, 10_000, 30_000)
CHEAP_REPEATS: Final = 8
AIM: Final = 2.5

Record = dict[str, Any]


def run(task: str, **arguments: Any) -> Record:  # noqa: ANN401
    """The answer of bench_task.py, run in a fresh process."""
    asked = json.dumps({"task": task, **arguments})
    done = subprocess.run(
        [sys.executable, str(HERE / "bench_task.py"), asked],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"bench: the measurement {task!r} failed, see above")
    answer: Record = json.loads(done.stdout)
    return answer


def cheapest(repeats: int, task: str, **arguments: Any) -> Record:  # noqa: ANN401
    """The repeat that took the least CPU."""
    return min((run(task, **arguments) for _ in range(repeats)), key=lambda one: one["cpu"])


class Bench:
    """The measurements over one corpus and one set of items."""

    def __init__(self, corpus: list[str], items: list[str], repeats: int, folder: Path) -> None:
        """Spread `corpus` and samples of `items` under `folder`, which is ours."""
        self._repeats = repeats
        self._items = items
        self._folder = folder
        self._shards: list[str] = run("shards", corpus=corpus)["shards"]
        if not self._shards:
            raise SystemExit(f"bench: no Parquet shard with rows in {', '.join(corpus)}")
        self._warm = self._write_warm_up()
        self._reads: dict[int, Record] = {}
        self.rows: list[Record] = []

    def measure(self) -> list[Record]:
        """All lines of the table, in order."""
        everything = len(self._shards)
        read = self._read(everything)
        first = self._scan("whole scan", everything, self._items, 1)
        tokens = cheapest(CHEAP_REPEATS, "tokenise", corpus=self._files(everything))
        n_bytes = tokens["bytes"]
        self.rows += [
            {"what": "bare pyarrow read", **read, "bytes": n_bytes, "shards": everything},
            {"what": "contam's tokeniser alone", **tokens, "shards": everything},
            first,
            self._scan("whole scan", everything, self._items, 2),
        ]
        for n in ITEM_COUNTS:
            if n < first["items"]:
                sample = self._folder / f"items-{n}"
                run("sample", items=self._items, n=n, out=str(sample))
                self.rows.append(self._scan("growth with items", everything, [str(sample)], 1))
        self.rows.append({**first, "what": "growth with items"})
        for count in SHARD_COUNTS:
            self.rows.append(self._scan("growth with shards", count, self._items, 1))
        for row in self.rows:
            row["mb_per_cpu"] = row["bytes"] / 1e6 / row["cpu"]
            row["times_read"] = row["cpu"] / self._read(row["shards"])["cpu"]
        return self.rows

    def _read(self, count: int) -> Record:
        if count not in self._reads:
            self._reads[count] = cheapest(CHEAP_REPEATS, "read", corpus=self._files(count))
        return self._reads[count]

    def _scan(self, what: str, count: int, items: list[str], workers: int) -> Record:
        found = cheapest(
            self._repeats,
            "scan",
            corpus=self._files(count),
            items=items,
            policies=list(POLICIES),
            workers=workers,
            warm=self._warm,
        )
        return {"what": what, **found, "shards": count, "workers": workers}

    def _files(self, count: int) -> list[str]:
        """That many shards, copies under new names where the corpus has fewer."""
        have = len(self._shards)
        files = self._shards[:count]
        for number in range(have, count):
            copy = self._folder / "copies" / f"copy-{number:04d}.parquet"
            if not copy.exists():
                copy.parent.mkdir(exist_ok=True)
                shutil.copyfile(self._shards[number % have], copy)
            files.append(str(copy))
        return files

    def _write_warm_up(self) -> list[str]:
        corpus, items = self._folder / "warm-corpus.jsonl", self._folder / "warm-items.jsonl"
        question = "How many lanterns did the keeper of the old harbour light before the storm?"
        item = {"id": "1", "question": question, "choices": ["three", "eleven"], "answer": "three"}
        items.write_text(json.dumps(item) + "\n", encoding="utf-8")
        text = f"A quiz. {question} A. three B. eleven Answer: three"
        corpus.write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
        return [str(corpus), str(items)]

    def stages(self) -> Record:
        """CPU seconds of every stage of the whole scan, and how many bytes of text it read."""
        return cheapest(
            self._repeats,
            "stages",
            corpus=self._files(len(self._shards)),
            items=self._items,
            policies=list(POLICIES),
        )

    def command(self) -> Record:
        """CPU seconds of each part of the whole command, from imports to tables."""
        return cheapest(
            self._repeats,
            "command",
            corpus=self._files(len(self._shards)),
            items=self._items,
            policies=list(POLICIES),
            out=str(self._folder / "result"),
        )


def stage_table(measured: Record) -> str:
    """CPU seconds of each stage and its share of all, as aligned text."""
    rows = ((name, cpu, cpu / measured["cpu"]) for name, cpu in measured["stages"].items())
    return "\n".join(f"{name:<12}{cpu:>8.2f} s{share:>8.0%}" for name, cpu, share in rows)


def table(rows: list[Record]) -> str:
    """The lines as aligned text."""
    header = (
        "",
        *("items", "shards", "workers", "MB text", "CPU s", "MB/CPU-s", "x read", "wall s"),
        *("peak MB", "then", "plan CPU s", "verdicts CPU s"),
    )
    lines = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(row: Record) -> tuple[str, ...]:
    return (
        row["what"],
        _whole(row.get("items")),
        _whole(row["shards"]),
        _whole(row.get("workers")),
        f"{row['bytes'] / 1e6:,.1f}",
        f"{row['cpu']:.2f}",
        f"{row['mb_per_cpu']:,.0f}",
        f"{row['times_read']:.2f}",
        f"{row['wall']:.2f}",
        f"{row.get('scan_peak_mb', row['peak_mb']):,.0f}",
        f"{row['peak_mb']:,.0f}",
        f"{row['plan_cpu']:.2f}" if "plan_cpu" in row else "",
        f"{row['verdict_cpu']:.2f}" if "verdict_cpu" in row else "",
    )


def _whole(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def machine() -> Record:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    described = Path("/proc/cpuinfo")
    if described.exists():
        names = [
            line.partition(":")[2].strip()
            for line in described.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version()}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--corpus", nargs="+", required=True, help="Parquet shards or folders")
    parser.add_argument("--items", nargs="+", required=True, help="benchmark files or folders")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--repeat", type=int, default=1, help="scans of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="contam-bench-") as folder:
        bench = Bench(given.corpus, given.items, given.repeat, Path(folder))
        rows, stages, command = bench.measure(), bench.stages(), bench.command()
    measured_on = machine()
    answer = {
        "machine": measured_on,
        "policies": POLICIES,
        "rows": rows,
        "stages": stages,
        "command": command,
    }
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer, indent=1)
    (given.out / "bench.json").write_text(text + "\n", encoding="utf-8")
    if given.json:
        print(text)
        return 0
    whole = [row for row in rows if row["what"] == "whole scan"]
    print(f"{measured_on['cpu']}, {measured_on['cores']} cores; {', '.join(POLICIES)}\n")
    print(table(rows))
    print(f"\nCPU of each stage, 1 worker\n{stage_table(stages)}")
    print(f"\nCPU of the command as a whole, 1 worker\n{stage_table(command)}")
    print("\npeak MB: up to the end of the scan, then with the verdict and evidence tables")
    print(
        f"whole scan / bare read: {whole[0]['times_read']:.2f} with 1 worker,"
        f" {whole[1]['times_read']:.2f} with 2 (aim: {AIM})"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
