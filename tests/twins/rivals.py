"""Twin of the search for another item's text, on sets of document tokens."""

from typing import NamedTuple


class Piece(NamedTuple):
    """A matched stretch of the document: the kind of part, its alignment, and where it is."""

    part: int
    alignment: int
    start: int
    length: int


class Pair(NamedTuple):
    """What one document holds of one item."""

    document: int
    item: int
    coverage: float
    exact: bool
    pieces: tuple[Piece, ...]


QUESTION, ANSWER = 1, 3


def matched(pair: Pair) -> set[int]:
    """Document tokens in the pair's pieces, apart from those of its answer."""
    return {
        token
        for piece in pair.pieces
        if piece.part != ANSWER
        for token in range(piece.start, piece.start + piece.length)
    }


def competing_item(
    pair: Pair, pairs: list[Pair], benchmark: list[int], whole: float, most: float, clearly: float
) -> int:
    """The other item whose whole question, with its other parts, has most of the pair's text; -1."""
    coverage = 1.0 if pair.exact else pair.coverage
    text = matched(pair)
    best = []
    for other in pairs:
        there = 1.0 if other.exact else other.coverage
        if other.document != pair.document or benchmark[other.item] != benchmark[pair.item]:
            continue
        common = len(text & matched(other))
        better = coverage and there >= whole and there - coverage >= clearly
        if better and common and common >= most * len(text):
            best.append((-common, other.item))
    return min(best)[1] if best else -1


def scattered(pair: Pair) -> float:
    """Share of other text between the first and last token of the question's main alignment."""
    by_alignment: dict[int, list[Piece]] = {}
    for piece in pair.pieces:
        if piece.part == QUESTION:
            by_alignment.setdefault(piece.alignment, []).append(piece)
    if not by_alignment:
        return 0.0
    main = max(by_alignment.values(), key=lambda found: sum(one.length for one in found))
    tokens = [t for one in main for t in range(one.start, one.start + one.length)]
    return 1.0 - min(len(tokens) / (max(tokens) + 1 - min(tokens)), 1.0)
