"""On the labelled pack an index tells what a scan tells: the same evidence, the same verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import contam
from contam.detect.labels import FLAGGED
from tests.detect.indexed.indexes import make

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.labelled, pytest.mark.slow]

SHARDS = ("shard-00000.parquet", "shard-00003.parquet")
#: Runs of eight words and more decide these: their answers are the scan's.
GUARANTEED = ("gpt3-test", "lmeval-13", "openr1-8", "llama3-8gram", "palm-70")
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
    longest: dict[tuple[Item, Place], int]
    verdicts: dict[tuple[Item, str], contam.Verdict]

    @classmethod
    def of(cls, result: contam.ScanResult) -> Told:
        matches: dict[Item, dict[Place, list[tuple]]] = defaultdict(lambda: defaultdict(list))
        longest: dict[tuple[Item, Place], int] = defaultdict(int)
        for row in result.evidence.to_pylist():
            item = (row["benchmark"], row["split"], row["item_id"])
            place = (row["shard"], row["row"])
            matches[item][place].append(tuple(row.values()))
            longest[item, place] = max(longest[item, place], row["n_tokens"])
        verdicts = {((one.benchmark, one.split, one.item_id), one.policy): one for one in result}
        return cls(matches, longest, verdicts)

    def sure(self, run: int) -> set[tuple[Item, Place]]:
        """Pairs that share a run of so many tokens."""
        return {pair for pair, longest in self.longest.items() if longest >= run}


@pytest.fixture(scope="module")
def answers(labelled_data: Path, tmp_path_factory) -> tuple[Told, Told, int]:
    """What a scan and an index tell of the same shards, and the index's guarantee."""
    shards = [labelled_data / "corpus" / name for name in SHARDS]
    index = make(shards, tmp_path_factory.mktemp("labelled") / "index")
    items = labelled_data / "items"
    options = {
        "policies": ("contam", *GUARANTEED), "max_evidence": EVERY_DOCUMENT, "workers": 1,
    }  # fmt: skip
    asked = contam.query(index, items, **options)
    scanned = contam.scan(shards, items, **options)
    # Nothing here may be excused by a cap or by a shard that was not read.
    assert asked.run["index"]["capped"]["items"] == 0
    assert asked.complete
    assert scanned.complete
    for one in ("rows", "n_bytes", "shards_read"):
        assert asked.coverage[one] == scanned.coverage[one]
    return Told.of(scanned), Told.of(asked), asked.run["index"]["guarantee_tokens"]


def test_every_pair_with_a_guaranteed_run_has_the_scans_evidence(answers):
    scan, index, guarantee = answers
    sure = scan.sure(guarantee)
    assert len(sure) > 5_000
    wrong = [
        (item, place)
        for item, place in sure
        if index.matches.get(item, {}).get(place) != scan.matches[item][place]
    ]
    assert wrong == []


def test_an_index_tells_of_nothing_that_the_scan_does_not_find(answers):
    scan, index, _ = answers
    extra = [
        (item, place)
        for item, places in index.matches.items()
        for place, rows in places.items()
        if scan.matches.get(item, {}).get(place) != rows
    ]
    assert extra == []


@pytest.mark.parametrize("policy", GUARANTEED)
def test_policies_that_count_guaranteed_runs_give_the_scans_verdicts(answers, policy):
    scan, index, _ = answers
    mine = {item: verdict for (item, name), verdict in index.verdicts.items() if name == policy}
    theirs = {item: verdict for (item, name), verdict in scan.verdicts.items() if name == policy}
    assert mine.keys() == theirs.keys()
    labels = Counter(their.label for their in theirs.values())
    assert labels["contaminated"] > 0
    assert labels["clean"] > 0
    wrong = [
        (mine[item].label, their.label, item)
        for item, their in theirs.items()
        if (mine[item].label, mine[item].n_documents, mine[item].n_occurrences)
        != (their.label, their.n_documents, their.n_occurrences)
        or (their.flagged and mine[item] != their)
    ]
    assert wrong == []


def test_contam_differs_only_where_no_guaranteed_run_was_decisive(answers):
    scan, index, guarantee = answers
    sure = {item for item, _ in scan.sure(guarantee)}
    cleared: list[Item] = []
    for (item, policy), theirs in scan.verdicts.items():
        mine = index.verdicts[item, policy]
        if policy != "contam" or mine.label == theirs.label:
            continue
        if theirs.label == "clean":
            # Only for want of a guarantee: a question too short to be found for sure.
            assert mine.label == "not_checkable", item
            assert "this index finds every run from" in mine.reason, item
            continue
        assert theirs.label in FLAGGED, item
        missed = scan.matches[item].keys() - index.matches.get(item, {}).keys()
        assert missed, item
        if mine.label == "clean":
            assert item not in sure, item
            cleared.append(item)
    # Copies in which no eight words in a row were left standing.
    flagged = sum(
        verdict.flagged for (_, policy), verdict in scan.verdicts.items() if policy == "contam"
    )
    assert len(cleared) <= flagged // 100
