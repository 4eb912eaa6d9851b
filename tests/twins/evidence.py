"""Twin of what one document holds of one item: the row and the pieces of evidence, all of them.

Tokens are plain ints.  Numbers that decide are repeated here by value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.twins.chains import Run, Spelling, align_place, in_order, single

PASSAGE, QUESTION, CHOICES, ANSWER = range(4)

WORTH_ALIGNING, WORTH_ALIGNING_TOKENS, LEAST_REPORTED = 0.10, 0.75, 0.3
LEAST_WEIGHT = 1e-9
MOST_GAP, MORE_GAP = 400, 32
PLACE_SHARE, SPLIT_SHARE, UNSPLIT_SHARE = 0.5, 0.2, 0.75
SURE_BLOCK, PAIR_WORTH, LONE_WORTH = 3, 0.85, 0.6


@dataclass(frozen=True)
class Part:
    """One text of an item.

    tokens, weights   one a token; the weights are 32-bit numbers
    whole             what the weights are together
    common            whether many items share the seed that begins at each token
    letters           of each token, 0 where they are not known
    """

    tokens: list[int]
    weights: list[float]
    whole: float
    common: list[bool]
    letters: list[int]


@dataclass(frozen=True)
class Item:
    """The four parts, and what names the right choice: its letter and its number, 0 for none."""

    parts: list[Part]
    letter: int = 0
    number: int = 0
    answer_words: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Lengths:
    """Tokens of a seed and of a run that is always reported; every how many grams are entered."""

    seed: int
    min_run: int
    stride: int = 1


@dataclass(frozen=True)
class Document:
    """Its tokens, and where each seed stands: asked for by every item; and its words as text."""

    tokens: list[int]
    starts: dict[tuple[int, ...], list[int]]
    words: list[str]

    @classmethod
    def of(cls, tokens: list[int], seed: int, words: list[str]) -> Document:
        starts: dict[tuple[int, ...], list[int]] = {}
        for at in range(len(tokens) - seed + 1):
            starts.setdefault(tuple(tokens[at : at + seed]), []).append(at)
        return cls(tokens, starts, words)


@dataclass(frozen=True)
class Piece:
    """Tokens of a part that stand in the document."""

    part: int
    alignment: int
    item: int
    doc: int
    length: int

    @property
    def end(self) -> int:
        return self.doc + self.length


@dataclass
class Evidence:
    """The row of one item in one document; lists have an entry a part.

    spans  first token of the part's best place in the document, and the one behind its last
    """

    longest: list[int] = field(default_factory=lambda: [0] * 4)
    covered: list[int] = field(default_factory=lambda: [0] * 4)
    n_runs: list[int] = field(default_factory=lambda: [0] * 4)
    aligned: list[int] = field(default_factory=lambda: [0] * 4)
    exact: list[int] = field(default_factory=lambda: [0] * 4)
    places: int = 0
    answer: int = 0
    split: int = 0
    coverage: list[float] = field(default_factory=lambda: [0.0] * 4)
    pieces: list[Piece] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=lambda: [(-1, -1)] * 4)


# --------------------------------------------------------------------------------- runs


def maximal_runs(item: list[int], document: Document, seed: int) -> list[Run]:
    """Every run of `seed` tokens or more that cannot be made longer on either side."""
    doc = document.tokens
    found = []
    for i in range(len(item) - seed + 1):
        for j in document.starts.get(tuple(item[i : i + seed]), ()):
            if i and j and item[i - 1] == doc[j - 1]:
                continue
            n = seed
            while i + n < len(item) and j + n < len(doc) and item[i + n] == doc[j + n]:
                n += 1
            found.append((i, j, n))
    return found


def part_runs(part: Part, doc: Document, lengths: Lengths) -> list[Run]:
    """The runs that count, by document and then by item.

    A run of common seeds alone counts only with min_run tokens, or in a part that is shorter.  A
    run that overlaps the one found before it and begins with the same item token, no longer, is
    the same occurrence.  A run is found at its first seed that is not common (at its first where
    it counts anyway), and with a stride at its first gram whose number the stride divides.
    """
    seed, min_run, stride = lengths.seed, lengths.min_run, lengths.stride
    found = []
    for i, j, n in maximal_runs(part.tokens, doc, seed):
        rare = [k for k in range(n - seed + 1) if not part.common[i + k]]
        counts_anyway = n >= min_run or len(part.tokens) < min_run
        if not rare and not counts_anyway:
            continue
        at = 0 if counts_anyway else rare[0]
        if stride > 1:
            at = -i % stride
        found.append((j + at, i + at, (i, j, n)))
    kept: list[Run] = []
    for _, _, (i, j, n) in sorted(found):
        if kept and kept[-1][0] == i and j < kept[-1][1] + kept[-1][2] and n <= kept[-1][2]:
            continue
        kept.append((i, j, n))
    return sorted(kept, key=lambda run: (run[1], run[0]))


# --------------------------------------------------------------------- weights and places


def weigh(row: Evidence, kind: int, part: Part, runs: list[Run], lengths: Lengths) -> float:
    """Write what the runs alone say of a part; the weight share of its tokens in any of them."""
    m = len(part.tokens)
    long = [run for run in runs if run[2] >= lengths.min_run]
    inside = {t for i, _, n in runs for t in range(i, i + n)}
    row.longest[kind] = max(n for _, _, n in runs)
    row.n_runs[kind] = sum(n >= lengths.min_run or n == m for _, _, n in runs)
    row.exact[kind] = int(row.longest[kind] == m)
    row.covered[kind] = len({t for i, _, n in long for t in range(i, i + n)})
    weight = in_order([part.weights[t] for t in sorted(inside)])
    return weight / part.whole if part.whole > 0 else 0.0


def split_places(runs: list[Run], m: int) -> list[list[Run]]:
    """Runs by document, parted where more stands between them than the part has, and some."""
    places: list[list[Run]] = []
    end = 0
    for run in runs:
        if not places or run[1] > end + min(m, MOST_GAP) + MORE_GAP:
            places.append([])
            end = 0
        places[-1].append(run)
        end = max(end, run[1] + run[2])
    return places


def block_worth(length: int) -> float:
    """How far a matched stretch is believed, a 32-bit number."""
    if length >= SURE_BLOCK:
        return 1.0
    return single(PAIR_WORTH if length == 2 else LONE_WORTH)


def believed(blocks: list[Run], m: int) -> list[float]:
    """How far each item token is believed: as far as the best block that has it."""
    return [
        max([block_worth(n) for i, _, n in blocks if i <= t < i + n], default=0.0) for t in range(m)
    ]


def align(row: Evidence, kind: int, part: Part, runs: list[Run], doc: Document) -> None:
    """Write what the best place of the document holds of a part, or the best two.

    In a place with the whole part nothing else is looked for.  A place with less than SPLIT_SHARE
    leaves no evidence, unless it was the best so far.  The second place counts from that share on:
    a copy may be split over two.  Of places that hold the same the first is the better one.  In an
    answer words that are run together are others.
    """
    spelling = Spelling(part.letters, doc.words) if kind != ANSWER else None
    m = len(part.tokens)
    total = max(part.whole, LEAST_WEIGHT)
    best: tuple[float, list[Run]] = (0.0, [])
    second: tuple[float, list[Run]] = (0.0, [])
    n_places = n_chains = 0
    for place in split_places(runs, m):
        copies = [run for run in place if run[2] == m]
        if copies:
            chains, share = [[copies[0]]], 1.0
        else:
            chains, weight = align_place(place, part.tokens, part.weights, doc.tokens, spelling)
            share = weight / total
        blocks = [block for chain in chains for block in chain]
        n_places += share >= PLACE_SHARE
        if share > best[0]:
            best, second = (share, blocks), best
        elif share > second[0]:
            second = (share, blocks)
        if share >= SPLIT_SHARE or best[1] is blocks:
            for number, chain in enumerate(chains, n_chains):
                row.pieces += [Piece(kind, number, *block) for block in chain]
        n_chains += len(chains)
    if best[1]:
        row.spans[kind] = (min(j for _, j, _ in best[1]), max(j + n for _, j, n in best[1]))
    counted = best[1]
    if second[0] >= SPLIT_SHARE:
        counted = counted + second[1]
        row.split |= kind == QUESTION and best[0] < UNSPLIT_SHARE
    worth = believed(counted, m)
    row.aligned[kind] = sum(value > 0 for value in worth)
    weights = [single(value * weight) for value, weight in zip(worth, part.weights, strict=True)]
    row.coverage[kind] = single(
        in_order([one for one, value in zip(weights, worth, strict=True) if value > 0]) / total
    )
    if kind == QUESTION:
        row.places = max(n_places, sum(n == m for _, _, n in runs))


def is_inside(run: Run, piece: Piece) -> bool:
    """Whether a run is a stretch of a piece, the same tokens of both sides."""
    lead = run[0] - piece.item
    return lead == run[1] - piece.doc and lead >= 0 and lead + run[2] <= piece.length


def add_loose_runs(row: Evidence, kind: int, runs: list[Run], m: int, lengths: Lengths) -> None:
    """Report every long run, or whole part, that is not inside what was aligned of the part."""
    mine = [piece for piece in row.pieces if piece.part == kind]
    number = max([piece.alignment + 1 for piece in mine], default=0)
    loose = [run for run in runs if run[2] >= min(lengths.min_run, m)]
    loose = [run for run in loose if not any(is_inside(run, piece) for piece in mine)]
    row.pieces += [Piece(kind, n, *run) for n, run in enumerate(loose, number)]


def from_runs(item: Item, doc: Document, lengths: Lengths) -> Evidence | None:
    """What the runs of an item say, part by part; None where no part has enough to be reported.

    A part is aligned where its runs weigh a share of it, or its long runs hold most of its tokens.
    It is reported with a long run or a whole part, or when enough of it is aligned.
    """
    row = Evidence()
    wanted = False
    for kind, part in enumerate(item.parts):
        runs = part_runs(part, doc, lengths)
        if not runs:
            continue
        m = len(part.tokens)
        share = weigh(row, kind, part, runs, lengths)
        reported = row.longest[kind] >= min(lengths.min_run, m)
        if share >= WORTH_ALIGNING or row.covered[kind] >= WORTH_ALIGNING_TOKENS * m:
            align(row, kind, part, runs, doc)
            reported = reported or row.coverage[kind] >= LEAST_REPORTED
        if reported:
            add_loose_runs(row, kind, runs, m, lengths)
        wanted = wanted or reported
    return row if wanted else None
