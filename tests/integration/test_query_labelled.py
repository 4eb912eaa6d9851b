"""On the labelled pack an index tells what a scan tells: the same evidence, the same verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import contam
from contam.detect.query import MAY_BE_MISSED
from tests.detect.indexed.indexes import make

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.labelled, pytest.mark.slow]

SHARDS = ("shard-00000.parquet", "shard-00003.parquet")
POLICIES = ("contam", "gpt3-test", "lmeval-13", "openr1-8", "llama3-8gram", "palm-70")
EVERY_DOCUMENT = 1_000_000

Item = tuple[str, str, str]
Place = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Told:
    """What a scan or an index told.

    pairs     item -> (shard, row) -> evidence rows
    verdicts  (item, policy) -> the verdict
    """

    matches: dict[Item, dict[Place, list[tuple]]]
    verdicts: dict[tuple[Item, str], contam.Verdict]

    @classmethod
    def of(cls, result: contam.ScanResult) -> Told:
        matches: dict[Item, dict[Place, list[tuple]]] = defaultdict(lambda: defaultdict(list))
        for row in result.evidence.to_pylist():
            item = (row["benchmark"], row["split"], row["item_id"])
            place = (row["shard"], row["row"])
            matches[item][place].append(tuple(row.values()))
        verdicts = {((one.benchmark, one.split, one.item_id), one.policy): one for one in result}
        return cls(matches, verdicts)


@pytest.fixture(scope="module")
def answers(labelled_data: Path, tmp_path_factory) -> tuple[Told, Told]:
    """What a scan and an index tell of the same shards."""
    shards = [labelled_data / "corpus" / name for name in SHARDS]
    index = make(shards, tmp_path_factory.mktemp("labelled") / "index")
    items = labelled_data / "items"
    options = {"policies": POLICIES, "max_evidence": EVERY_DOCUMENT, "workers": 1}
    asked = contam.query(index, items, **options)
    scanned = contam.scan(shards, items, **options)
    # Nothing here may be excused by a shard that was not read.
    assert asked.complete
    assert scanned.complete
    for one in ("rows", "n_bytes", "shards_read"):
        assert asked.coverage[one] == scanned.coverage[one]
    return Told.of(scanned), Told.of(asked)


def test_an_index_has_all_evidence_of_the_scan_and_no_other(answers):
    scan, index = answers
    assert sum(map(len, scan.matches.values())) > 5_000
    assert index.matches == scan.matches


@pytest.mark.parametrize("policy", POLICIES)
def test_verdicts_are_the_scans_but_for_what_is_open_at_the_cap(answers, policy):
    scan, index = answers
    mine = {item: verdict for (item, name), verdict in index.verdicts.items() if name == policy}
    theirs = {item: verdict for (item, name), verdict in scan.verdicts.items() if name == policy}
    assert mine.keys() == theirs.keys()
    labels = Counter(their.label for their in theirs.values())
    assert labels["contaminated"] > 0
    assert labels["clean"] > 0
    left_open = 0
    for item, their in theirs.items():
        own = mine[item]
        if (own.label, their.label) == ("not_checkable", "clean"):
            assert own.reason.startswith(MAY_BE_MISSED), item
            left_open += 1
            continue
        assert own.label == their.label, item
        if their.flagged:
            assert own == their, item
    assert left_open <= 0.001 * len(theirs)
