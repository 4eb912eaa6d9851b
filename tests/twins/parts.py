"""Twin of what a lane knows of texts beside their tokens, and of grams put together."""

from itertools import pairwise


def longest_piece(text: bytes, spans: list[tuple[int, int]], cut: bool) -> int:
    """Tokens of the longest piece of a text, which line feeds between tokens cut."""
    if not spans:
        return 0
    pieces = [[spans[0]]]
    for before, after in pairwise(spans):
        if cut and b"\n" in text[before[1] : after[0]]:
            pieces.append([])
        pieces[-1].append(after)
    return max(map(len, pieces))


def begins_word(text: bytes, spans: list[tuple[int, int]], at: int) -> bool:
    """Whether a token is the first, or white space stands behind the beginning of the last one."""
    return at == 0 or any(byte in b" \t\n\r\f\v" for byte in text[spans[at - 1][0] : spans[at][0]])


def grouped(grams: list[int]) -> dict[int, list[int]]:
    """Places of each gram, grams in the order in which they first come."""
    places: dict[int, list[int]] = {}
    for place, gram in enumerate(grams):
        places.setdefault(gram, []).append(place)
    return places
