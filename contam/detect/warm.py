"""Scan and query one small text, which compiles or loads whatever real ones need."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import orjson

from contam.benchmark.items import BenchItem
from contam.corpus.batches import DocBatch
from contam.detect.chunk_scan import scan_chunks
from contam.detect.corpus import Corpus
from contam.detect.finish import finish_scan
from contam.detect.match.collect import Collection
from contam.detect.match.matching import Matcher
from contam.detect.match.token_view import build_view
from contam.detect.plan import ScanParameters, make_plan
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
    batch = DocBatch(0, 0, data, np.array([0, len(data)], np.int64))
    policy = get_policy(DEFAULT)
    Matcher(view).match(batch, Collection.start(view, [policy], policy, 1))


def warmup_scan() -> None:
    """Scan a corpus of one text under every policy: compiles or loads all that a scan needs."""
    with small_files() as (corpus, items):
        parameters = ScanParameters(policies=tuple(spec.id for spec in list_policies()))
        plan, opened = make_plan([items], parameters), Corpus.open([corpus], None)
        found = scan_chunks(plan, opened, workers=1)
        finish_scan(plan, opened, found, workers=1, started=time.time())


@contextmanager
def small_files() -> Iterator[tuple[Path, Path]]:
    """A corpus of one document, and a benchmark of an item that it holds and one that it does not.

    With one item alone no word of the benchmark is rarer than another.
    """
    with small_corpus() as corpus:
        items = corpus.with_name("items.jsonl")
        rows = [
            {"id": str(number), "question": question, "answer": "on the last Monday of May"}
            for number, question in enumerate((TEXT, " ".join(reversed(TEXT.split()))))
        ]
        items.write_bytes(b"\n".join(map(orjson.dumps, rows)))
        yield corpus, items
