"""What a scan writes of some documents, and the same as the twins of the evidence say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contam.kernels import match_rows as columns
from contam.kernels._jit import INTERPRETED
from contam.kernels.align import new_scratch
from contam.kernels.document import new_buffers, scan_batch
from contam.text.tokenizer import char_tables, tokenize_bytes
from tests.kernels.support import UNITS, batch, frozen
from tests.twins import evidence as twin
from tests.twins.surroundings import evidence
from tests.twins.tokens import token_hash

if TYPE_CHECKING:
    from contam.detect.match.token_view import SearchView

#: The row and the pieces of one item in one document: columns by name, reals, pieces with spans.
Told = tuple[dict[str, object], list[float], list[tuple[int, ...]]]


def with_weights(view: SearchView, weights: list[float]) -> SearchView:
    """The view with these token weights, over and over."""
    gram_table = view.gram_table
    weight = np.resize(np.array(weights, np.float32), len(gram_table.token))
    ends = zip(gram_table.part_start[:-1], gram_table.part_start[1:], strict=True)
    whole = [float(weight[lo:hi].sum(dtype=np.float64)) for lo, hi in ends]
    return replace(
        view,
        gram_table=gram_table._replace(
            weight=frozen(weight, np.float32), part_weight=frozen(whole, np.float64)
        ),
    )


def twin_item(view: SearchView, number: int) -> twin.Item:
    """An item of a view as the twin takes it."""
    gram_table, facts = view.gram_table, view.facts
    parts = []
    for part in range(4 * number, 4 * number + 4):
        own = slice(gram_table.part_start[part], gram_table.part_start[part + 1])
        parts.append(
            twin.Part(
                gram_table.token[own].tolist(),
                gram_table.weight[own].tolist(),
                float(gram_table.part_weight[part]),
                np.unpackbits(gram_table.common_at, bitorder="little")[own].tolist(),
                gram_table.letters[own].tolist(),
            )
        )
    words = frozenset(facts.answer_words.tolist())
    return twin.Item(parts, int(facts.letter[number]), int(facts.number[number]), words)


def row_of(rows: columns.MatchRows, number: int) -> tuple[dict[str, object], list[float]]:
    """The columns of a pair row by name, and its coverages."""
    row = rows.matches[number].tolist()
    by_part = {
        "longest": columns.MATCH_LONGEST,
        "covered": columns.MATCH_COVERED,
        "n_runs": columns.MATCH_RUNS,
        "aligned": columns.MATCH_ALIGNED,
        "exact": columns.MATCH_EXACT,
    }
    shown: dict[str, object] = {name: row[at : at + 4] for name, at in by_part.items()}
    shown |= {
        "places": row[columns.MATCH_PLACES],
        "answer": row[columns.MATCH_ANSWER],
        "split": row[columns.MATCH_SPLIT],
    }
    return shown, rows.reals[number].tolist()


NO_TOKENS = np.empty(0, np.uint64), np.empty((0, 2), np.int32), np.empty(0, np.int64)


def search_of(view: SearchView, longest_at: np.ndarray) -> columns.Search:
    """What the kernels search by a view with."""
    last_run = np.zeros(len(view.gram_table.part_start) - 1, np.int32)
    scratch = new_scratch(view.longest)
    return columns.Search(view.spec, view.gram_table, view.facts, scratch, last_run, longest_at)


def told_by_kernels(view: SearchView, documents: list[str]) -> dict[tuple[int, int], Told]:
    """(document, item) -> what a scan writes of it."""
    here = batch(documents)
    gram_table = view.gram_table
    rows, where, _ = scan_batch(
        here.data,
        here.offsets,
        NO_TOKENS,
        search_of(view, np.zeros((len(gram_table.token), 1), np.uint16)),
        new_buffers(int(np.diff(here.offsets).max(initial=0)), view.spec.unit, char_tables()),
    )
    n_matches, n_pieces, lacking, _ = rows.used.tolist()
    assert lacking == 0
    pieces: list[list[tuple[int, ...]]] = [[] for _ in range(n_matches)]
    whole = zip(rows.pieces[:n_pieces].tolist(), where[:n_pieces].tolist(), strict=True)
    for (pair, *piece), span in whole:
        pieces[pair].append((*piece, *span))
    found = {}
    for number, row in enumerate(rows.matches[:n_matches].tolist()):
        key = row[columns.MATCH_DOC], row[columns.MATCH_ITEM]
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
    def of(cls, text: str, view: SearchView) -> Read:
        data = text.encode()
        tokens = tokenize_bytes(data, unit=UNITS[view.unit])
        points = [0] * (len(data) + 1)
        for at, byte in enumerate(data):
            points[at + 1] = points[at] + (byte & 0xC0 != 0x80)
        words = [data[a:b].decode() for a, b in tokens.spans.tolist()]
        document = twin.Document.of(tokens.hashes.tolist(), view.spec.seed, words)
        return cls(document, [(points[a], points[b]) for a, b in tokens.spans.tolist()])

    def points(self, item: twin.Item, piece: twin.Piece) -> tuple[int, int]:
        """The code points of a piece; of a word that is run together with others, its letters."""
        part, doc = item.parts[piece.part], self.document
        (begin, first_end), (last_begin, end) = self.spans[piece.doc], self.spans[piece.end - 1]
        if piece.alignment < 0:
            return begin, end
        first, last = piece.item, piece.item + piece.length - 1
        starts_within = part.tokens[first] != doc.tokens[piece.doc]
        ends_within = part.tokens[last] != doc.tokens[piece.end - 1]
        if starts_within and piece.length == 1:
            word, n = doc.words[piece.doc].lower(), part.letters[first]
            spelled = (
                at for at in range(len(word)) if token_hash(word[at : at + n]) == part.tokens[first]
            )
            at = next(spelled)
            return begin + at, begin + at + n
        if starts_within:
            begin = first_end - part.letters[first]
        if ends_within:
            end = last_begin + part.letters[last]
        return begin, end


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
            *read.points(item, piece),
        )
        for piece in row.pieces
    ]
    return {name: getattr(row, name) for name in names}, row.coverage, pieces


def candidates(view: SearchView, documents: list[Read]) -> list[tuple[int, int]]:
    """(document, item) of all that share a seed."""
    seed, token = view.spec.seed, view.gram_table.token.tolist()
    holders: dict[tuple[int, ...], set[int]] = {}
    for part, (lo, hi) in enumerate(pairwise(view.gram_table.part_start.tolist())):
        for at in range(lo, hi - seed + 1):
            holders.setdefault(tuple(token[at : at + seed]), set()).add(part >> 2)
    found = []
    for number, read in enumerate(documents):
        here = set().union(*(holders[start] for start in read.document.starts if start in holders))
        found += [(number, item) for item in sorted(here)]
    return found


def check(view: SearchView, documents: list[str]) -> dict[tuple[int, int], Told]:
    """Compare every row and piece that a scan writes of the documents, and give them back."""
    told = told_by_kernels(view, documents)
    lengths = twin.Lengths(view.spec.seed, view.spec.min_run, view.spec.stride)
    read = [Read.of(text, view) for text in documents]
    wanted = candidates(view, read)
    items = {item: twin_item(view, item) for _, item in wanted}
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
