"""Twin of the search for an answer beside its question, on lists of tokens."""


def places(doc: list[int], wanted: list[int], lo: int, hi: int) -> list[int]:
    """Every place in doc[lo:hi] where all wanted tokens stand, in order."""
    n = len(wanted)
    return [at for at in range(lo, hi - n + 1) if doc[at : at + n] == wanted]


def answer_places(
    doc: list[int], answer: list[int], marks: tuple, announcing: set[int], limits: tuple, close: int
) -> list[tuple[int, int]]:
    """(place, length) of the answer, or of the right choice's mark, near enough to count.

    marks: letter and number of the right choice; the number counts only where it comes next.
    limits: (first token, token behind the last, tokens an answer needs to count anywhere there).
    """
    lo, hi, sure = limits
    letter, number = marks
    n = len(answer)
    found = []
    if n:
        found += [(at, n) for at in places(doc, answer, lo, min(hi, lo + close + n))]
        if n >= sure:
            found += [(at, n) for at in places(doc, answer, lo, hi)]
    for i in range(lo, hi):
        if doc[i] not in announcing:
            continue
        if n:
            reach = min(hi, i + 1 + close + n)
            found += [(at, n) for at in places(doc, answer, i + 1, reach)]
        if letter:
            found += [(j, 1) for j in range(i + 1, min(hi, i + 2)) if doc[j] == number]
            found += [(j, 1) for j in range(i + 1, min(hi, i + 1 + close)) if doc[j] == letter]
    return found
