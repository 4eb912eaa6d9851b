"""Benchmarks in: files of any usual format become items with parts, ids and content keys."""

from __future__ import annotations

from contam.benchmark.items import (
    PARTS,
    BenchItem,
    Benchmark,
    SkippedRow,
    SourceFile,
)
from contam.benchmark.keys import ContentKeys, content_keys
from contam.benchmark.mapping import parse_mapping
from contam.benchmark.readers import read_benchmarks

__all__ = [
    "PARTS",
    "BenchItem",
    "Benchmark",
    "ContentKeys",
    "SkippedRow",
    "SourceFile",
    "content_keys",
    "parse_mapping",
    "read_benchmarks",
]
