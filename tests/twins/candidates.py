"""Twin of the candidate kernels: contexts as lists of neighbours, decisions by trying all runs."""

MASK = 2**64 - 1


def context(tokens: list[int], at: int, gram: int) -> int:
    """Four highest bits of three tokens before (nearest first) and three behind the gram."""
    value = 0
    for i in range(3):
        if at - 1 - i >= 0:
            value |= (tokens[at - 1 - i] >> 60) << (4 * i)
        if at + gram + i < len(tokens):
            value |= (tokens[at + gram + i] >> 60) << (12 + 4 * i)
    return value


def sides(value: int) -> tuple[list[int], list[int]]:
    nibbles = [(value >> (4 * i)) & 15 for i in range(6)]
    return nibbles[:3], nibbles[3:]


def reaches(mine: int, theirs: int) -> tuple[int, int]:
    """How many neighbours agree on the left and on the right, nearest first."""
    counts = []
    for side, other in zip(sides(mine), sides(theirs), strict=True):
        count = 0
        while count < 3 and side[count] == other[count]:
            count += 1
        counts.append(count)
    return counts[0], counts[1]


def ways(left: int, right: int, more: int) -> set[tuple[int, int]]:
    """Least (left, right) agreement for each way to lay `more` tokens around the gram."""
    return {
        (min(before, 3), min(more - before, 3))
        for before in range(more + 1)
        if before <= left and more - before <= right
    }


def is_strong(posting: int, place: dict) -> bool:
    """Whether a posting's context may be that of a run long enough for this place."""
    left, right = reaches(posting, place["context"])
    return any(a <= left and b <= right for a, b in place["ways"])


def opened(
    postings: list[tuple[int, int, int]], places: dict[int, list[dict]], shut: set[int]
) -> tuple[set[int], list[tuple[int, int]]]:
    """(documents opened by reach, (document, item token) of the hits that are weighed).

    postings  (gram, document, context); places  of each gram
    Hits in a document that some hit opens are left out: they no longer matter.
    """
    strong = {
        document
        for gram, document, mine in postings
        if document not in shut and any(is_strong(mine, place) for place in places[gram])
    }
    weak = [
        (document, place["at"])
        for gram, document, mine in postings
        if document not in shut | strong
        for place in places[gram]
        if place["weak"]
    ]
    return strong, sorted(weak)


def opened_by_weight(
    hits: list[tuple[int, int]],
    gram: int,
    parts: list[range],
    weights: list[float],
    least: float,
    shut: set[int],
) -> set[int]:
    """Documents in which the distinct tokens seen of one part weigh `least` of it."""
    found = set()
    for document in {document for document, _ in hits} - shut:
        for part in parts:
            seen = {
                token
                for doc, at in hits
                if doc == document and at in part
                for token in range(at, at + gram)
            }
            whole = sum(weights[token] for token in part)
            if seen and sum(weights[token] for token in seen) >= least * whole:
                found.add(document)
    return found


def mix(state: int, chunk: int, multiplier: int) -> int:
    mixed = (state ^ chunk) * multiplier & MASK
    return mixed ^ (mixed >> 32)


def place_hash(seed: int, row: int, start: int, chunk: int, end: int) -> int:
    mixed = mix(mix(start, seed, chunk), row, chunk) * end & MASK
    return (mixed ^ (mixed >> 29)) or 1
