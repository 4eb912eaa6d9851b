"""Indexes over small corpora for the tests of querying."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contam.index.build import build
from contam.index.manifest import publish_manifest, read_manifest
from contam.index.recipe import load_recipe
from contam.index.states import write_retired

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import contam

WORDS = load_recipe("complete")


def make(corpus: Sequence[Path] | Path, home: Path, **changes: object) -> Path:
    """An index of words with the guarantee of 8, or with other figures."""
    build(corpus, home, replace(WORDS, **changes), workers=1)
    return home


def retire(home: Path, places: Iterable[tuple[str, int]]) -> None:
    """Mark documents, by shard name and row, as documents that no answer counts."""
    manifest = read_manifest(home)
    number = {shard.name: place for place, shard in enumerate(manifest.shards)}
    matches = np.array([[number[name], row] for name, row in places], np.int64)
    publish_manifest(home, replace(manifest, retired=write_retired(home, matches)))


def evidence(result: contam.ScanResult) -> dict[tuple, list[tuple]]:
    """(item, shard, row) -> its evidence rows without the columns that name the place."""
    found: dict[tuple, list[tuple]] = {}
    for row in result.evidence.to_pylist():
        place = (row["benchmark"], row["item_id"], row["shard"], row["row"])
        found.setdefault(place, []).append(tuple(row.values()))
    return found


def long_pairs(result: contam.ScanResult, run: int) -> dict[tuple, list[tuple]]:
    """Of those the pairs that share a run of at least so many tokens."""
    longest: dict[tuple, int] = {}
    for row in result.evidence.to_pylist():
        place = (row["benchmark"], row["item_id"], row["shard"], row["row"])
        longest[place] = max(longest.get(place, 0), row["n_tokens"])
    return {place: rows for place, rows in evidence(result).items() if longest[place] >= run}


def verdicts(result: contam.ScanResult) -> list[dict]:
    return [verdict.to_dict() for verdict in result]
