"""What a scan writes of some documents, and the same as the twins of the evidence say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contam.kernels import pairs as columns
from contam.kernels._jit import INTERPRETED
from contam.kernels.align import new_scratch
from contam.kernels.document import new_buffers, scan_batch
from contam.text.tokenizer import char_tables, tokenize_bytes
from tests.kernels.support import UNITS, batch, frozen
from tests.twins import evidence as twin
from tests.twins.surroundings import evidence

if TYPE_CHECKING:
    from contam.detect.match.lane import Lane

#: The row and the pieces of one item in one document: columns by name, reals, pieces with spans.
Told = tuple[dict[str, object], list[float], list[tuple[int, ...]]]


def with_weights(lane: Lane, weights: list[float]) -> Lane:
    """The lane with these token weights, over and over."""
    plan = lane.plan
    weight = np.resize(np.array(weights, np.float32), len(plan.token))
    ends = zip(plan.part_start[:-1], plan.part_start[1:], strict=True)
    whole = [float(weight[lo:hi].sum(dtype=np.float64)) for lo, hi in ends]
    return replace(
        lane,
        plan=plan._replace(
            weight=frozen(weight, np.float32), part_weight=frozen(whole, np.float64)
        ),
    )


def twin_item(lane: Lane, number: int) -> twin.Item:
    """An item of a lane as the twin takes it."""
    plan, facts = lane.plan, lane.facts
    parts = []
    for part in range(4 * number, 4 * number + 4):
        own = slice(plan.part_start[part], plan.part_start[part + 1])
        parts.append(
            twin.Part(
                plan.token[own].tolist(),
                plan.weight[own].tolist(),
                float(plan.part_weight[part]),
                plan.gram_idf[own].tolist(),
                plan.common_at[own].tolist(),
            )
        )
    words = frozenset(facts.answer_words.tolist())
    return twin.Item(parts, int(facts.letter[number]), int(facts.number[number]), words)


def row_of(rows: columns.Rows, number: int) -> tuple[dict[str, object], list[float]]:
    """The columns of a pair row by name, and its reals: shares of grams, then coverages."""
    row = rows.pairs[number].tolist()
    by_part = {
        "longest": columns.PAIR_LONGEST,
        "covered": columns.PAIR_COVERED,
        "n_runs": columns.PAIR_RUNS,
        "aligned": columns.PAIR_ALIGNED,
        "exact": columns.PAIR_EXACT,
    }
    shown: dict[str, object] = {name: row[at : at + 4] for name, at in by_part.items()}
    shown |= {
        "places": row[columns.PAIR_PLACES],
        "answer": row[columns.PAIR_ANSWER],
        "split": row[columns.PAIR_SPLIT],
    }
    return shown, rows.reals[number].tolist()


def told_by_kernels(lane: Lane, documents: list[str]) -> dict[tuple[int, int], Told]:
    """(document, item) -> what a scan writes of it."""
    here = batch(documents)
    plan = lane.plan
    rows, where, _ = scan_batch(
        here.data,
        here.offsets,
        lane.spec,
        plan,
        lane.facts,
        char_tables(),
        new_buffers(int(np.diff(here.offsets).max(initial=0)), lane.spec.unit),
        new_scratch(lane.longest),
        (np.zeros(len(plan.part_start) - 1, np.int32), np.zeros(len(plan.token), np.int32)),
    )
    n_pairs, n_pieces, lacking, _ = rows.used.tolist()
    assert lacking == 0
    pieces: list[list[tuple[int, ...]]] = [[] for _ in range(n_pairs)]
    whole = zip(rows.pieces[:n_pieces].tolist(), where[:n_pieces].tolist(), strict=True)
    for (pair, *piece), span in whole:
        pieces[pair].append((*piece, *span))
    found = {}
    for number, row in enumerate(rows.pairs[:n_pairs].tolist()):
        key = row[columns.PAIR_DOC], row[columns.PAIR_ITEM]
        assert key not in found
        found[key] = *row_of(rows, number), pieces[number]
    assert list(found) == sorted(found)
    return found


@dataclass(frozen=True)
class Read:
    """A document as the twin takes it, and the code points of each token."""

    document: twin.Document
    spans: list[tuple[int, int]]

    @classmethod
    def of(cls, text: str, lane: Lane) -> Read:
        data = text.encode()
        tokens = tokenize_bytes(data, unit=UNITS[lane.unit])
        points = [0] * (len(data) + 1)
        for at, byte in enumerate(data):
            points[at + 1] = points[at] + (byte & 0xC0 != 0x80)
        document = twin.Document.of(tokens.hashes.tolist(), lane.spec.seed)
        return cls(document, [(points[a], points[b]) for a, b in tokens.spans.tolist()])


def told_by_twin(item: twin.Item, lengths: twin.Lengths, read: Read) -> Told | None:
    """The same of one item in one document, or None."""
    row = evidence(item, read.document, lengths)
    if row is None:
        return None
    names = ("longest", "covered", "n_runs", "aligned", "exact", "places", "answer", "split")
    pieces = [
        (
            piece.part,
            piece.alignment,
            piece.item,
            piece.doc,
            piece.length,
            read.spans[piece.doc][0],
            read.spans[piece.end - 1][1],
        )
        for piece in row.pieces
    ]
    return {name: getattr(row, name) for name in names}, [*row.grams, *row.coverage], pieces


def candidates(lane: Lane, documents: list[Read]) -> list[tuple[int, int]]:
    """(document, item) of all that share a seed."""
    seed, token = lane.spec.seed, lane.plan.token.tolist()
    holders: dict[tuple[int, ...], set[int]] = {}
    for part, (lo, hi) in enumerate(pairwise(lane.plan.part_start.tolist())):
        for at in range(lo, hi - seed + 1):
            holders.setdefault(tuple(token[at : at + seed]), set()).add(part >> 2)
    found = []
    for number, read in enumerate(documents):
        here = set().union(*(holders[one] for one in read.document.starts if one in holders))
        found += [(number, item) for item in sorted(here)]
    return found


def check(lane: Lane, documents: list[str]) -> dict[tuple[int, int], Told]:
    """Compare every row and piece that a scan writes of the documents, and give them back."""
    told = told_by_kernels(lane, documents)
    lengths = twin.Lengths(lane.spec.seed, lane.spec.min_run, lane.spec.stride)
    read = [Read.of(text, lane) for text in documents]
    wanted = candidates(lane, read)
    items = {item: twin_item(lane, item) for _, item in wanted}
    seen = set()
    for document, item in wanted:
        want = told_by_twin(items[item], lengths, read[document])
        found = told.get((document, item))
        assert (found is None) == (want is None), (document, item, found, want)
        if found is None or want is None:
            continue
        seen.add((document, item))
        assert found[0] == want[0]
        assert found[2] == want[2]
        # Compiled code adds 32-bit weights to 64-bit sums; interpreted, NumPy makes the sums
        # 32-bit numbers.
        assert found[1] == (pytest.approx(want[1], abs=2e-6) if INTERPRETED else want[1])
    assert told.keys() == seen
    return told
