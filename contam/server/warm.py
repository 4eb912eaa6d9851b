"""Compile all the service runs before it starts: `python -m contam.server.warm`.

For images: a service that finds all of it compiled is ready in a second instead of a minute.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import orjson

from contam.benchmark.items import BenchItem
from contam.config import Settings
from contam.corpus.batches import DocBatch
from contam.detect.match.collect import Collection
from contam.detect.match.matching import Matcher
from contam.detect.match.token_view import build_view
from contam.detect.policies.policy import DEFAULT, get_policy
from contam.detect.query import query
from contam.index.build import build
from contam.index.recipe import load_recipe
from contam.kernels.candidates import fill_tokens
from contam.kernels.warm_up import is_warm
from contam.server.indexes.registry import IndexRegistry

_TEXT = "seven small kites flew over the old harbour wall before the rain came in from the west"


def warm_kernels() -> None:
    """Match one small text against itself, which compiles whatever a scan needs."""
    item = BenchItem(benchmark="warm", split="", item_id="1", question=_TEXT)
    view = build_view([item], unit="word", seed=5, min_run=8)
    data = np.frombuffer(_TEXT.encode(), np.uint8)
    batch = DocBatch(0, 0, data, np.array([0, len(data)], np.int64), 0, 0, 0, 0)
    policy = get_policy(DEFAULT)
    Matcher(view).match(batch, Collection.start(view, [policy], policy, 1))


def checks_are_warm() -> bool:
    """Whether an earlier run left on disk what a service runs: builds and scans compile less."""
    # Of all kernels, a service calls this one last when it opens an index.
    stats = getattr(fill_tokens, "stats", None)
    return stats is None or any(Path(stats.cache_path).glob("candidates.fill_tokens-*.nbi"))


def main() -> None:
    """Make a small index, and ask it as checks and as jobs do."""
    if not is_warm():
        sys.stderr.write("compiling kernels, once (about a minute)\n")
    warm_kernels()
    with tempfile.TemporaryDirectory(prefix="contam-warm-") as folder:
        corpus, items = Path(folder, "corpus.jsonl"), Path(folder, "items.jsonl")
        corpus.write_bytes(orjson.dumps({"id": "1", "text": _TEXT}))
        items.write_bytes(orjson.dumps({"id": "1", "question": _TEXT}))
        index = Path(folder, "index")
        build(corpus, index, load_recipe("standard"), workers=1)
        registry = IndexRegistry.open(Settings(index=(str(index),)))
        with registry.snapshot() as snapshot:
            snapshot.reader.check(_TEXT)
        query(index, items, workers=1)


if __name__ == "__main__":
    main()
