"""One measurement in a process of its own; bench.py starts it. Takes and prints JSON.

    {"task": "read",     "corpus": [...]}
    {"task": "tokenise", "corpus": [...]}
    {"task": "scan",     "corpus": [...], "items": [...], "policies": [...], "workers": 2,
                         "warm": [corpus, items]}
    {"task": "command",  "corpus": [...], "items": [...], "policies": [...], "out": "folder"}
    {"task": "stages",   "corpus": [...], "items": [...], "policies": [...]}
    {"task": "shards",   "corpus": [...]}
    {"task": "sample",   "items": [...], "n": 1000, "out": "folder"}

Seconds of CPU are user and system time of the whole process, all threads, in the named phase.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from contam.memory import tune_command

Record = dict[str, Any]


class Clock:
    """CPU and wall seconds since it was made or last read."""

    def __init__(self) -> None:
        self._cpu, self._wall = self._now()
        self.started_cpu = self._cpu

    @staticmethod
    def _now() -> tuple[float, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime, time.perf_counter()

    def lap(self) -> tuple[float, float]:
        """(CPU seconds, wall seconds) since the last lap."""
        cpu, wall = self._now()
        spent = (cpu - self._cpu, wall - self._wall)
        self._cpu, self._wall = cpu, wall
        return spent


def peak_mb() -> float:
    """Most memory this process has held, in MB of 10^6 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def read(corpus: list[str]) -> Record:
    """The text column of every shard through pyarrow's batch reader, nothing else."""
    import pyarrow.parquet as pq

    from contam.corpus.opening import open_shards
    from contam.corpus.shards import survey

    shards = [one for one in survey(corpus)[0] if one.format == "parquet"]
    selections = open_shards(shards).selections
    clock = Clock()
    rows = 0
    for shard, selection in zip(shards, selections, strict=True):
        if selection is None or selection.text is None:
            continue
        with pq.ParquetFile(shard.uri, pre_buffer=False) as file:
            column = ".".join(selection.text.column)
            for batch in file.iter_batches(columns=[column], use_threads=False):
                rows += batch.num_rows
    cpu, wall = clock.lap()
    return {"cpu": cpu, "wall": wall, "rows": rows, "peak_mb": peak_mb()}


def tokenise(corpus: list[str]) -> Record:
    """Our tokeniser over the batches of its own reader; the clock runs in the kernel only."""
    import numpy as np
    from bench_kernel import tokenise_batch

    from contam.corpus.batches import read_chunk
    from contam.detect.corpus import Corpus
    from contam.kernels.document import new_buffers
    from contam.kernels.tokens import WORDS
    from contam.text.tokenizer import char_tables

    opened = Corpus.open(corpus, None)
    tables = char_tables()
    capacity = 1 << 20
    buffers = new_buffers(capacity, WORDS, char_tables())
    cpu = wall = 0.0
    n_bytes = n_tokens = 0
    warm = (np.frombuffer(b"warm", np.uint8), np.array([0, 4], np.int64))
    tokenise_batch(*warm, buffers, tables)
    for unit in opened.chunks:
        for batch in read_chunk(unit, opened.shards, opened.selections):
            longest = int(np.diff(batch.offsets).max(initial=0))
            if longest > capacity:
                capacity = longest
                buffers = new_buffers(capacity, WORDS, char_tables())
            clock = Clock()
            n_tokens += tokenise_batch(batch.data, batch.offsets, buffers, tables)
            spent = clock.lap()
            cpu, wall = cpu + spent[0], wall + spent[1]
            n_bytes += batch.n_bytes
    return {"cpu": cpu, "wall": wall, "bytes": n_bytes, "tokens": n_tokens, "peak_mb": peak_mb()}


def scan(
    corpus: list[str], items: list[str], policies: list[str], workers: int, warm: list[str]
) -> Record:
    """A whole scan in its phases: what runs once (plan), the scan itself, the verdicts."""
    tune_command()
    import contam
    from contam.detect.chunk_scan import scan_chunks
    from contam.detect.corpus import Corpus
    from contam.detect.finish import finish
    from contam.detect.plan import ScanParameters, make_plan

    contam.scan(warm[0], warm[1], policies=policies, workers=1)  # kernels from their cache
    started = time.time()
    clock = Clock()
    opened = Corpus.open(corpus, None)
    plan = make_plan(items, ScanParameters(policies=tuple(policies)))
    planned = clock.lap()
    partial = scan_chunks(plan, opened, workers=workers)
    scanned = clock.lap()
    scan_peak = peak_mb()
    sources = replace(opened, coverage=partial.coverage)
    result = finish(plan, sources, partial.collections, started=started, workers=workers)
    n_verdicts = result.verdicts.num_rows
    n_evidence = result.evidence.num_rows
    finished = clock.lap()
    if not result.complete:
        raise SystemExit("the corpus could not be read whole: its figures would mean nothing")
    return {
        "cpu": scanned[0],
        "wall": scanned[1],
        "bytes": partial.coverage.total.n_bytes,
        "rows": partial.coverage.total.rows,
        "items": len(plan.items),
        "plan_cpu": planned[0],
        "verdict_cpu": finished[0],
        "total_wall": planned[1] + scanned[1] + finished[1],
        "scan_peak_mb": scan_peak,
        "peak_mb": peak_mb(),
        "verdicts": n_verdicts,
        "evidence": n_evidence,
    }


def command(corpus: list[str], items: list[str], policies: list[str], out: str) -> Record:
    """All that `contam scan` does with one worker, from the start of the process, part by part.

    Kernels are loaded with the imports; the command itself loads each at its first call.
    """
    spent: dict[str, float] = {}
    clock = Clock()
    began = clock.started_cpu

    def lap(part: str) -> None:
        spent[part] = clock.lap()[0]

    from contam.extras import claim_process

    claim_process()
    tune_command()
    from contam.benchmark.read_files import read_benchmarks
    from contam.cli.options import VerdictOptions
    from contam.cli.results import print_result
    from contam.detect.chunk_scan import scan_chunks
    from contam.detect.corpus import Corpus
    from contam.detect.finish import finish_scan
    from contam.detect.plan import ScanParameters, plan_for
    from contam.detect.report import write_report
    from contam.detect.warm import match_a_little

    match_a_little()
    lap("imports")
    started = time.time()
    benchmarks = list(read_benchmarks(items))
    lap("benchmark")
    opened = Corpus.open(corpus, None)
    plan = plan_for(benchmarks, ScanParameters(policies=tuple(policies)))
    lap("plan")
    partial = scan_chunks(plan, opened, workers=1)
    lap("scan")
    result = finish_scan(plan, opened, partial, workers=1, started=started)
    write_report(result, out, overwrite=True)
    with Path(os.devnull).open("w", encoding="utf-8") as shown, redirect_stdout(shown):
        print_result(result, Path(out), VerdictOptions())
    lap("tables")
    spent["imports"] += began
    return {"stages": spent, "cpu": sum(spent.values()), "items": len(plan.items)}


def stages(corpus: list[str], items: list[str], policies: list[str]) -> Record:
    """CPU seconds of every stage of a scan with one worker; see bench_stages.py."""
    tune_command()
    import bench_stages

    return bench_stages.stages(corpus, items, policies)


def shards(corpus: list[str]) -> Record:
    """The Parquet shards that hold rows, biggest first."""
    import pyarrow.parquet as pq

    from contam.corpus.shards import survey

    found = survey(corpus)[0]
    kept = [one for one in found if one.format == "parquet" and pq.read_metadata(one.uri).num_rows]
    kept.sort(key=lambda one: (-one.size_bytes, one.name))
    return {"shards": [one.uri for one in kept], "others": len(found) - len(kept)}


def sample(items: list[str], n: int, out: str) -> Record:
    """Write every k-th item, so that n are left, as JSONL that reads back to the same items."""
    from contam.benchmark.read_files import read_benchmarks

    every = [item for benchmark in read_benchmarks(items) for item in benchmark.items]
    chosen = [every[i * len(every) // n] for i in range(min(n, len(every)))]
    names = {item.benchmark for item in chosen}
    folder = Path(out)
    folder.mkdir(parents=True)
    for number, name in enumerate(sorted(names)):
        lines = [
            json.dumps(
                {
                    "benchmark": item.benchmark,
                    "split": item.split,
                    "id": item.item_id,
                    "question": item.question,
                    **({"passage": item.passage} if item.passage else {}),
                    **({"choices": list(item.choices)} if item.choices else {}),
                    **({"answer": item.answer} if item.answer else {}),
                },
                ensure_ascii=False,
            )
            for item in chosen
            if item.benchmark == name
        ]
        path = folder / f"{number:03d}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"items": len(chosen), "of": len(every)}


TASKS = {
    "read": read,
    "tokenise": tokenise,
    "scan": scan,
    "command": command,
    "stages": stages,
    "shards": shards,
    "sample": sample,
}


def main() -> int:
    """Run the task described by the first argument."""
    asked = json.loads(sys.argv[1])
    answer = TASKS[asked.pop("task")](**asked)  # type: ignore[operator]
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
