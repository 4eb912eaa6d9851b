"""Benchmark files in, benchmarks out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from contam.benchmark.items import Benchmark, BenchItem, SourceFile
from contam.benchmark.keys import item_key
from contam.errors import BenchmarkError


def read_benchmarks(
    paths: Sequence[str | Path],
    *,
    mapping: Mapping[str, str] | None = None,
    name: str | None = None,
    split: str | None = None,
) -> tuple[Benchmark, ...]:
    """Read every file as items and group them by benchmark name."""
    items: dict[str, list[BenchItem]] = {}
    sources: dict[str, list[SourceFile]] = {}
    for file in sorted(f for p in map(Path, paths) for f in (p.glob("*.jsonl") if p.is_dir() else [p])):
        raw = file.read_bytes()
        n_rows = 0
        seen = set()
        for line, text in enumerate(raw.split(b"\n"), 1):
            if not text:
                continue
            n_rows += 1
            row = orjson.loads(text)
            item = BenchItem(
                benchmark=name or row["benchmark"],
                split=split or row["split"],
                item_id=row["id"],
                passage=row.get("passage"),
                question=row["question"],
                choices=tuple(row.get("choices", ())),
                answer=row.get("answer"),
                answer_index=row.get("answer_index"),
                source=str(file),
                line=line,
            )
            items.setdefault(item.benchmark, []).append(item)
            seen.add(item.benchmark)
        digest = hashlib.sha256(raw).hexdigest()
        for benchmark in seen:
            sources.setdefault(benchmark, []).append(
                SourceFile(str(file), digest, len(raw), n_rows, "jsonl")
            )
    if not items:
        raise BenchmarkError("no items found")
    return tuple(
        Benchmark(
            name=key, items=tuple(group), sources=tuple(sources[key]), duplicates=_duplicates(group)
        )
        for key, group in items.items()
    )


def _duplicates(items: Sequence[BenchItem]) -> tuple[tuple[int, ...], ...]:
    places: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        places.setdefault(item_key(item), []).append(index)
    return tuple(tuple(group) for group in places.values() if len(group) > 1)
