"""Parts of a corpus, searched anywhere and merged in any order, give the bytes of one scan."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from contam.detect.chunk_scan import PartialResult, scan_chunks
from contam.detect.corpus import Corpus
from contam.detect.finish import finish_scan
from contam.detect.parts.part_store import Part
from contam.detect.plan import ScanParameters, make_plan
from contam.errors import InternalError
from tests.property.worlds import ALL_POLICIES, write_items, write_shard

if TYPE_CHECKING:
    from pathlib import Path


def opened(corpus: str, items: str, policies=ALL_POLICIES):
    plan = make_plan([items], ScanParameters(policies=policies, max_evidence=2))
    return plan, Corpus.open([corpus], None)


def part_of_chunks(plan, shards, chunks) -> Part:
    """What is found in some chunks."""
    found = scan_chunks(plan, shards, workers=1, chunks=chunks)
    return Part(
        name="",
        chunks=frozenset(found.chunks),
        collected=tuple(collection.collected() for collection in found.collections),
        read=found.read.read,
    )


def written(home: Path, world) -> tuple[str, str]:
    rows, texts = world
    for number in range(2):
        write_shard(home / "corpus" / f"part-{number}.parquet", [*texts, None, *texts[::-1]])
    return str(home / "corpus"), str(write_items(home / "bench.jsonl", rows))


@pytest.fixture
def world(tmp_path):
    rows = [
        {"id": f"q{k}", "question": f"the {k}th lantern of the old harbour burns copper green {k}"}
        for k in range(5)
    ]
    return written(tmp_path, (rows, [row["question"] for row in rows]))


def test_a_part_that_is_merged_twice_is_refused(world):
    plan, shards = opened(*world)
    part = part_of_chunks(plan, shards, shards.chunks[:1])
    whole = PartialResult.start(plan, shards)
    whole.take(part)
    with pytest.raises(InternalError, match="1 chunks were counted before"):
        whole.take(part)


def test_a_missing_part_leaves_nothing_clean(world):
    plan, shards = opened(*world)
    whole = PartialResult.start(plan, shards)
    whole.take(part_of_chunks(plan, shards, shards.chunks[1:]))
    result = finish_scan(plan, shards, whole, workers=1, started=time.time())
    assert not result.coverage["complete"]
    assert "clean" not in {verdict.label for verdict in result}
