"""Twin of what is looked for around the runs of an item: its question, its choices, its answer."""

from __future__ import annotations

from tests.twins.chains import MOST_DOC, MOST_ITEM, Run, fill, joined, single
from tests.twins.evidence import (
    ANSWER,
    CHOICES,
    PASSAGE,
    QUESTION,
    Document,
    Evidence,
    Item,
    Lengths,
    Piece,
    from_runs,
)
from tests.twins.nearby import places

STEM_REACH, MOST_STEM, STEM_SLACK, STEM_SHARE = 60, 40, 24, 0.6
LEAST_QUESTION = 0.2
CHOICES_SLACK, CHOICES_SHARE, LISTED_SHARE = 40, 0.5, 0.4
ANSWER_SHARE, ANSWER_DISTANCE, ANSWER_REACH = 0.6, 300, 60
SURE_ANSWER, CLOSE = 3, 3
AS_LETTER, AS_NUMBER = -1, -2

Span = tuple[int, int]
NOWHERE: Span = (-1, -1)


def evidence(item: Item, doc: Document, lengths: Lengths) -> Evidence | None:
    """All that a document holds of an item; None where that is not worth a row."""
    row = from_runs(item, doc, lengths)
    if row is not None:
        add_surroundings(row, item, doc.tokens)
    return row


def claimed(pieces: list[Piece], lo: int, hi: int, besides: int) -> int:
    """Document tokens in lo..hi that pieces of other parts hold, counted once a piece."""
    return sum(
        len(range(max(lo, piece.doc), min(hi, piece.end)))
        for piece in pieces
        if piece.part != besides
    )


def end_of_more(pieces: list[Piece], lo: int, hi: int) -> int:
    """End of the first piece of another part than the question that holds doc[lo:hi] and more."""
    ends = [
        piece.end
        for piece in pieces
        if piece.part != QUESTION and piece.doc <= lo and hi <= piece.end and piece.length > hi - lo
    ]
    return ends[0] if ends else -1


def disown_question(row: Evidence) -> None:
    """Take from the question's coverage the share of its pieces that other parts hold, too."""
    mine = [piece for piece in row.pieces if piece.part == QUESTION]
    own = sum(piece.length for piece in mine)
    if row.aligned[PASSAGE] == 0 or own == 0:
        return
    shared = sum(
        min(piece.length, claimed(row.pieces, piece.doc, piece.end, QUESTION)) for piece in mine
    )
    row.coverage[QUESTION] = single(row.coverage[QUESTION] * ((own - shared) / own))


def add_filled(
    row: Evidence, item: Item, kind: int, doc: list[int], stretch: Span, least: float
) -> Span:
    """Align a part with the tokens lo..hi of the document, from lo on, every token weighing 1.

    It counts where a share of its tokens is matched, and more than was known: it then becomes the
    part's coverage, and evidence.
    """
    lo, hi = stretch
    tokens = item.parts[kind].tokens
    equal = [1.0] * len(tokens)
    found = fill(tokens[:MOST_ITEM], equal, doc[lo:hi][:MOST_DOC], "right")
    share = len(found) / len(tokens)
    if share < least or share <= row.coverage[kind]:
        return NOWHERE
    row.coverage[kind] = single(share)
    row.aligned[kind] = len(found)
    blocks: list[Run] = joined([(i, lo + j, 1) for i, j in found])
    row.pieces += [Piece(kind, 0, *block) for block in blocks]
    return lo + found[0][1], lo + found[-1][1] + 1


def find_stem(question: list[int], doc: list[int], pieces: list[Piece], near: Piece) -> int:
    """The first place near a piece where the question stands by itself, or -1.

    Where its words are part of a longer piece of another part, the search goes on behind that.
    """
    m = len(question)
    lo, hi = max(0, near.doc - STEM_REACH), min(len(doc), near.end + STEM_REACH)
    least = lo
    for at in places(doc, question, lo, hi):
        if at < least:
            continue
        after = end_of_more(pieces, at, at + m)
        if after < 0:
            return at
        least = after - m + 1
    return -1


def add_stem(row: Evidence, item: Item, doc: list[int]) -> Span:
    """Look for a question without runs around what was found of the other parts.

    First for all its words near any piece, then for an edited one right behind any piece where no
    other piece begins.
    """
    question = item.parts[QUESTION].tokens
    m = len(question)
    if not 0 < m <= MOST_STEM:
        return NOWHERE
    others = [piece for piece in row.pieces if piece.part != QUESTION]
    for piece in others:
        at = find_stem(question, doc, row.pieces, piece)
        if at >= 0:
            row.aligned[QUESTION] = row.longest[QUESTION] = m
            row.exact[QUESTION] = row.places = 1
            row.coverage[QUESTION] = 1.0
            row.pieces.append(Piece(QUESTION, 0, 0, at, m))
            return at, at + m
    for piece in others:
        lo, hi = piece.end, min(len(doc), piece.end + 2 * m + STEM_SLACK)
        if lo >= hi or claimed(row.pieces, lo, lo + m, QUESTION):
            continue
        span = add_filled(row, item, QUESTION, doc, (lo, hi), STEM_SHARE)
        if span != NOWHERE:
            row.places = 1
            return span
    return NOWHERE


def answer_at(item: Item, doc: list[int], lo: int, hi: int, listed: bool) -> tuple[int, int]:
    """First place of the answer in doc[lo:hi], or of what names it, and its tokens; (-1, 0).

    A long answer counts anywhere there, unless it is one of the listed choices; a short one close
    to the question, then close behind each word that announces an answer in turn: first its own
    text, then its number right behind, then its letter.
    """
    answer = item.parts[ANSWER].tokens
    n = len(answer)
    ends = [hi] if n >= SURE_ANSWER and not listed else []
    searches = [(lo, end) for end in (*ends, min(hi, lo + CLOSE + n))]
    found = [(at, n) for a, b in searches if n for at in places(doc, answer, a, b)[:1]]
    for i in range(lo, hi):
        if doc[i] not in item.answer_words:
            continue
        if n:
            near = min(hi, i + 1 + CLOSE + n)
            found += [(at, n) for at in places(doc, answer, i + 1, near)]
        if item.letter:
            found += [(j, 1) for j in range(i + 1, min(hi, i + 2)) if doc[j] == item.number]
            near = min(hi, i + 1 + CLOSE)
            found += [(j, 1) for j in range(i + 1, near) if doc[j] == item.letter]
    return found[0] if found else (-1, 0)


def add_answer(row: Evidence, item: Item, doc: list[int], lo: int, hi: int, listed: bool) -> None:
    """Say whether the answer stands by the question; a short one, or its mark, becomes evidence.

    An answer with runs of its own is there when it is near, unless it is among the listed choices.
    """
    answer = item.parts[ANSWER].tokens
    first, end = row.spans[ANSWER]
    apart = first >= 0 and not (listed and first < lo)
    if apart and row.coverage[ANSWER] >= ANSWER_SHARE:
        near = first <= hi + ANSWER_DISTANCE and lo <= end + ANSWER_DISTANCE
        row.answer = int(near)
        return
    at, n = answer_at(item, doc, lo, hi, listed)
    if at < 0:
        return
    row.answer = 1
    if n != len(answer) or row.coverage[ANSWER] >= 1:
        return
    if doc[at] == answer[0]:
        row.coverage[ANSWER] = 1.0
        row.aligned[ANSWER] = n
        row.pieces.append(Piece(ANSWER, 0, 0, at, n))
    else:
        mark = AS_LETTER if doc[at] == item.letter else AS_NUMBER
        row.pieces.append(Piece(ANSWER, mark, 0, at, n))


def add_surroundings(row: Evidence, item: Item, doc: list[int]) -> None:
    """Complete a row: a question without runs, the choices behind the question, the answer."""
    question = row.spans[QUESTION]
    if question != NOWHERE:
        disown_question(row)
        if row.coverage[QUESTION] < LEAST_QUESTION:
            question = NOWHERE
    if question == NOWHERE:
        question = add_stem(row, item, doc)
    if question == NOWHERE:
        return
    m = len(item.parts[CHOICES].tokens)
    n = len(item.parts[ANSWER].tokens)
    lo, hi = question[1], min(len(doc), question[1] + m + m // 2 + CHOICES_SLACK)
    choices_end = -1
    if m and lo < hi:
        choices_end = add_filled(row, item, CHOICES, doc, (lo, hi), CHOICES_SHARE)[1]
    if choices_end < 0 and row.spans[CHOICES][1] >= question[1]:
        choices_end = row.spans[CHOICES][1]
    # The right choice alone behind the question is an answer; with the others it is a list.
    listed = choices_end >= 0 and row.aligned[CHOICES] - n >= LISTED_SHARE * (m - n)
    lo = max(question[1], choices_end) if listed else question[1]
    add_answer(row, item, doc, lo, min(len(doc), lo + ANSWER_REACH), listed)
