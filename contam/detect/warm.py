"""Scan and query one small text, which compiles or loads whatever real ones need."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import orjson

from contam.benchmark.items import BenchItem
from contam.corpus.batches import DocBatch
from contam.detect.match.collect import Collection
from contam.detect.match.matching import Matcher
from contam.detect.match.token_view import build_view
from contam.detect.policies.policy import DEFAULT, get_policy, list_policies
from contam.index.warm import TEXT, small_corpus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def match_a_little() -> None:
    """Match the text against itself in memory: loads into this process what checks need."""
    item = BenchItem(benchmark="warm", split="", item_id="1", question=TEXT)
    view = build_view([item], unit="word", seed=5, min_run=8)
    data = np.frombuffer(TEXT.encode(), np.uint8)
    batch = DocBatch(0, 0, data, np.array([0, len(data)], np.int64), 0, 0, 0, 0)
    policy = get_policy(DEFAULT)
    Matcher(view).match(batch, Collection.start(view, [policy], policy, 1))


def warmup_scan() -> None:
    """Scan a corpus of one text."""
    from contam.detect.scan import scan  # which runs this before its first scan

    with _small_files() as (corpus, items):
        scan(corpus, items, policies=[spec.id for spec in list_policies()], workers=1)


def query_a_little() -> None:
    """Index a corpus of one text, and query it."""
    from contam.detect.query import query  # which runs this before its first query
    from contam.index.build import build  # of which a scan needs nothing

    with _small_files() as (corpus, items):
        index = corpus.with_name("index")
        build(corpus, index, workers=1)
        query(index, items, workers=1)
    match_a_little()


def run_a_little() -> None:
    """Index, query and scan a corpus of one text: all that has kernels."""
    from contam.detect.meaning.warm import look_for_rephrasings_a_little  # rarely loaded

    query_a_little()
    warmup_scan()
    look_for_rephrasings_a_little()


@contextmanager
def _small_files() -> Iterator[tuple[Path, Path]]:
    """A corpus of one document, and a benchmark of one item that it holds."""
    with small_corpus() as corpus:
        items = corpus.with_name("items.jsonl")
        items.write_bytes(orjson.dumps({"id": "1", "question": TEXT, "answer": "on Monday"}))
        yield corpus, items
