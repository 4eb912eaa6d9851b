"""What a scan writes of some documents, and the same as the twins of the evidence say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contam.kernels import pairs as columns
from contam.kernels._jit import INTERPRETED
from contam.kernels.align import new_scratch
from contam.kernels.document import new_buffers, scan_batch
from contam.text.tokenizer import char_tables, tokenize_bytes
from tests.kernels.support import UNITS, batch
from tests.twins import evidence as twin
from tests.twins.surroundings import evidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contam.detect.lane import Lane

#: The row and the pieces of one item in one document: columns by name, reals, pieces with spans.
Told = tuple[dict[str, object], list[float], list[tuple[int, ...]]]


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
        shown = {
            "longest": row[columns.PAIR_LONGEST : columns.PAIR_LONGEST + 4],
            "covered": row[columns.PAIR_COVERED : columns.PAIR_COVERED + 4],
            "n_runs": row[columns.PAIR_RUNS : columns.PAIR_RUNS + 4],
            "aligned": row[columns.PAIR_ALIGNED : columns.PAIR_ALIGNED + 4],
            "exact": row[columns.PAIR_EXACT : columns.PAIR_EXACT + 4],
            "places": row[columns.PAIR_PLACES],
            "answer": row[columns.PAIR_ANSWER],
            "split": row[columns.PAIR_SPLIT],
        }
        found[key] = shown, rows.reals[number].tolist(), pieces[number]
    assert list(found) == sorted(found)
    return found


def told_by_twin(item: twin.Item, lengths: twin.Lengths, document: str, unit: str) -> Told | None:
    """The same of one item in one document, or None."""
    data = document.encode()
    tokens = tokenize_bytes(data, unit=UNITS[unit])
    row = evidence(item, tokens.hashes.tolist(), lengths)
    if row is None:
        return None
    names = ("longest", "covered", "n_runs", "aligned", "exact", "places", "answer", "split")
    pieces = []
    for piece in row.pieces:
        ends = tokens.spans[piece.doc, 0], tokens.spans[piece.end - 1, 1]
        span = (len(data[:end].decode()) for end in ends)
        pieces.append((piece.part, piece.alignment, piece.item, piece.doc, piece.length, *span))
    return {name: getattr(row, name) for name in names}, [*row.grams, *row.coverage], pieces


def check(
    lane: Lane, documents: list[str], wanted: Iterable[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Compare every row and piece; `wanted` are the (document, item) that can have one at all."""
    told = told_by_kernels(lane, documents)
    lengths = twin.Lengths(lane.spec.seed, lane.spec.min_run, lane.spec.stride)
    items: dict[int, twin.Item] = {}
    seen = set()
    for document, number in wanted:
        item = items.setdefault(number, twin_item(lane, number))
        want = told_by_twin(item, lengths, documents[document], lane.unit)
        found = told.get((document, number))
        assert (found is None) == (want is None), (document, number, found, want)
        if found is None or want is None:
            continue
        seen.add((document, number))
        assert found[0] == want[0]
        assert found[2] == want[2]
        # Compiled code adds 32-bit weights to 64-bit sums; interpreted, NumPy makes the sums
        # 32-bit numbers.
        assert found[1] == (pytest.approx(want[1], abs=2e-6) if INTERPRETED else want[1])
    assert told.keys() == seen
    return seen
