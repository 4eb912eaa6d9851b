"""Twin of the candidate kernels: documents as sets of grams, every window and every hit tried."""


def opened_by_grams(
    windows: list[list[int]], documents: list[set[int]], shut: set[int]
) -> set[int]:
    """Documents that hold all grams of a window; a negative one counts as held."""
    return {
        number
        for number, held in enumerate(documents)
        if number not in shut
        and any(all(gram < 0 or gram in held for gram in window) for window in windows)
    }


def hits(
    places: list[list[int]], counted: set[int], documents: list[set[int]], shut: set[int]
) -> list[tuple[int, int]]:
    """(document, item token) of every gram that a document holds, at the places that count."""
    return sorted(
        (number, token)
        for number, held in enumerate(documents)
        if number not in shut
        for gram in held
        for token in places[gram]
        if token in counted
    )


def worth_reading(
    found: list[tuple[int, int]],
    sizes: tuple[int, int],
    parts: list[range],
    weights: list[float],
    at: list[int],
    capped: set[int],
    documents: list[set[int]],
    least: float,
) -> set[tuple[int, int]]:
    """(document, part) where runs from a hit on, over grams beside it, weigh `least` of the part.

    sizes  (tokens of a gram, hits in a row that are enough, as are all of the part)
    """
    gram, enough = sizes
    result = set()
    for number, held in enumerate(documents):
        for place, part in enumerate(parts):
            mine = {token for document, token in found if document == number and token in part}
            beside = {token for token in part if at[token] in held | capped and at[token] >= 0}
            begins = set(mine)
            while more := {
                token for token in beside - begins if token + 1 in begins or token - 1 in begins
            }:
                begins |= more
            seen = {token for begin in begins for token in range(begin, begin + gram)}
            everywhere = {
                token
                for begin in part
                if at[begin] in capped
                for token in range(begin, begin + gram)
            }
            weight = sum(weights[token] for token in seen)
            weight += sum(weights[token] for token in everywhere)
            n = min(enough, len(part) - gram + 1)
            in_a_row = any({*range(token, token + n)} <= mine for token in mine)
            if mine and (in_a_row or weight >= least * sum(weights[token] for token in part)):
                result.add((number, place))
    return result
