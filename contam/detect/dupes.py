"""Find near-duplicate items in benchmarks: a MinHash self-join, verified on the texts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from contam.benchmark.items import PARTS
from contam.benchmark.read_files import read_benchmarks
from contam.detect.model import CHOICES, PASSAGE, QUESTION
from contam.errors import UsageError
from contam.index.minhash.bands import best_bands, permutations
from contam.kernels.minhash import AFFINE32, hash_shingles, sign
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.detect.model import Bools, Int64s

    Shingles = NDArray[np.uint32]

SHINGLE: Final = 2
N_PERM: Final = 128

#: Bands are made for this share of the threshold: at the threshold itself next to none is missed,
#: and what is let through below it is verified anyway.
_EASE: Final = 0.6
#: How far below the threshold an estimate may lie for the pair to be verified: three standard
#: deviations of the estimate of 128 permutations.
_SLACK: Final = 0.14
_CHUNK: Final = 1 << 16
#: Items between two reports of progress.
_STEP: Final = 256


class DupesProgress(Protocol):
    """Receives the progress: first the items that are read, then the pairs that are compared."""

    def count(self, total: int, thing: str) -> None:
        """Begin: so many things (`item`, `pair`) are to be worked through."""

    def advance(self, n: int, /) -> None:
        """Add things that are done."""


@dataclass(frozen=True, slots=True)
class DupePair:
    """Two items that are nearly the same; `one` stands before `other` in the list of items.

    similarity  share of the distinct word pairs of both questions and choices that both have
    parts       the same for each part that both have
    """

    one: int
    other: int
    similarity: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Dupes:
    """All near-duplicates.

    items   by benchmark, split and id;  pairs  most similar first
    groups  items that such pairs join, largest group first
    """

    items: tuple[BenchItem, ...]
    threshold: float
    bands: int
    rows: int
    pairs: tuple[DupePair, ...]
    groups: tuple[tuple[int, ...], ...]


def find_dupes(
    benchmark: Sequence[str | Path],
    *,
    threshold: float = 0.5,
    within: bool = False,
    mapping: Mapping[str, str] | None = None,
    progress: DupesProgress | None = None,
) -> Dupes:
    """Find pairs of items whose questions and choices share `threshold` of their word pairs.

    Where both have a passage, the passages have to be as similar. Compared are items of different
    benchmarks or splits; with `within` those of one split as well.
    Raises BenchmarkError and UsageError.
    """
    if not 0.0 < threshold <= 1.0:
        raise UsageError("threshold must be above 0 and at most 1, not {}", threshold)
    items = tuple(
        sorted(
            (
                item
                for read_benchmark in read_benchmarks(benchmark, mapping=mapping)
                for item in read_benchmark.items
            ),
            key=lambda item: (item.benchmark, item.split or "", item.item_id),
        )
    )
    parts, wording, signatures = _signed(items, progress)
    bands, rows = best_bands(_EASE * threshold, N_PERM)
    labels = [(item.benchmark, item.split) for item in items]
    number = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    side = np.array([number[label] for label in labels], np.int64)
    has_words = np.array([len(some) > 0 for some in wording], np.bool_)
    pairs = []
    for one, other in _candidates(signatures, bands, rows, progress):
        keep = has_words[one] & (within | (side[one] != side[other]))
        equal = (signatures[one[keep]] == signatures[other[keep]]).mean(axis=1)
        near = equal >= threshold - _SLACK
        for i, j in zip(one[keep][near].tolist(), other[keep][near].tolist(), strict=True):
            pair = _verified(i, j, parts, wording, threshold)
            if pair is not None:
                pairs.append(pair)
    pairs.sort(key=lambda pair: (-pair.similarity, pair.one, pair.other))
    return Dupes(items, threshold, bands, rows, tuple(pairs), _groups(pairs, len(items)))


def _signed(
    items: Sequence[BenchItem], progress: DupesProgress | None
) -> tuple[list[list[Shingles]], list[Shingles], NDArray[np.uint32]]:
    """For each item the shingles of its parts, those of its wording, and the signature of these."""
    if progress is not None:
        progress.count(len(items), "item")
    factor, shift = permutations(N_PERM, "affine32")
    signatures = np.empty((len(items), N_PERM), np.uint32)
    parts, wording = [], []
    for at, item in enumerate(items):
        parts.append([_shingles(item.part_text(part)) for part in PARTS])
        wording.append(np.union1d(parts[at][QUESTION], parts[at][CHOICES]))
        sign(wording[at], len(wording[at]), AFFINE32, factor, shift, signatures[at])
        if progress is not None and (at + 1) % _STEP == 0:
            progress.advance(_STEP)
    if progress is not None:
        progress.advance(len(items) % _STEP)
    return parts, wording, signatures


def _shingles(text: str) -> Shingles:
    """Distinct shingles of a text, ascending."""
    tokens = tokenize_bytes(text.encode()).hashes
    out = np.empty(len(tokens), np.uint32)
    return np.unique(out[: hash_shingles(tokens, 0, len(tokens), SHINGLE, out)])


def _candidates(
    signatures: NDArray[np.uint32], bands: int, rows: int, progress: DupesProgress | None
) -> Iterator[tuple[Int64s, Int64s]]:
    """Pairs of items (one < other) that agree in a band, each once, in portions."""
    keys = np.empty((bands, len(signatures)), np.int64)
    for band in range(bands):
        block = np.ascontiguousarray(signatures[:, band * rows : (band + 1) * rows])
        _, keys[band] = np.unique(block, axis=0, return_inverse=True)
    if progress is not None:
        sizes = [np.bincount(key) for key in keys]
        progress.count(int(sum((size * (size - 1) // 2).sum() for size in sizes)), "pair")
    for band in range(bands):
        order = np.argsort(keys[band], kind="stable")
        edges = np.flatnonzero(np.diff(keys[band][order], prepend=-1, append=-1))
        for lo, hi in pairwise(edges.tolist()):
            group = order[lo:hi]
            for one, other in _all_pairs(group):
                # A pair that an earlier band has joined was a candidate there.
                fresh = ~(keys[:band, one] == keys[:band, other]).any(axis=0)
                yield one[fresh], other[fresh]
                if progress is not None:
                    progress.advance(len(one))


def _all_pairs(group: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    step = max(1, _CHUNK // max(len(group), 1))
    for lo in range(0, len(group) - 1, step):
        first = np.arange(lo, min(lo + step, len(group)))
        i, j = np.meshgrid(first, np.arange(len(group)), indexing="ij")
        above: Bools = j > i
        yield group[i[above]], group[j[above]]


def _verified(
    one: int,
    other: int,
    parts: Sequence[Sequence[Shingles]],
    wording: Sequence[Shingles],
    threshold: float,
) -> DupePair | None:
    similarity = _jaccard(wording[one], wording[other])
    if similarity < threshold:
        return None
    each = {
        part: _jaccard(mine, yours)
        for part, mine, yours in zip(PARTS, parts[one], parts[other], strict=True)
        if len(mine) and len(yours)
    }
    if each.get(PARTS[PASSAGE], 1.0) < threshold:
        return None
    return DupePair(one, other, similarity, each)


def _jaccard(one: Shingles, other: Shingles) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return round(shared / (len(one) + len(other) - shared), 4)


def _groups(pairs: Sequence[DupePair], n_items: int) -> tuple[tuple[int, ...], ...]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one = [pair.one for pair in pairs]
    other = [pair.other for pair in pairs]
    edges = coo_array((np.ones(len(pairs), np.int8), (one, other)), shape=(n_items, n_items))
    _, group = connected_components(edges, directed=False)
    groups: dict[int, list[int]] = {}
    for item in sorted({*one, *other}):
        groups.setdefault(int(group[item]), []).append(item)
    return tuple(sorted(map(tuple, groups.values()), key=lambda group: (-len(group), group)))
