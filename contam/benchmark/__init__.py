"""Read benchmark files of any usual format into items with parts, ids and content keys.

Names are loaded when first used: whoever only names an item need not load what reads files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contam.benchmark.items import PARTS, BenchItem, Benchmark, SkippedRow, SourceFile
    from contam.benchmark.keys import ContentKeys, content_keys
    from contam.benchmark.mapping import parse_mapping
    from contam.benchmark.read_files import read_benchmarks

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

_HOME = {
    "ContentKeys": "keys",
    "content_keys": "keys",
    "parse_mapping": "mapping",
    "read_benchmarks": "read_files",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute may be anything
    if name not in __all__:
        raise AttributeError(f"module 'contam.benchmark' has no attribute {name!r}")
    return getattr(import_module(f"contam.benchmark.{_HOME.get(name, 'items')}"), name)
