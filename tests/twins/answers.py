"""Twin of the look at an answer's own stretches, on lists of words."""

from collections.abc import Callable, Sequence


def told(
    words: Sequence[str],
    pieces: Sequence[tuple[int, int, int]],
    others: Sequence[tuple[int, int]],
    weigh: Callable[[str], float],
    limits: tuple[int, int, float, int],
) -> int:
    """Words of the longest stretch of an answer that says enough, and is of it alone; 0 for none.

    pieces  (first word of the answer, first of the document, words);  others  (first of the
            document, words) of the item's other parts
    limits  (fewest words of a stretch, fewest of another part's, weight, how long a pair is known)
    """
    least, quoted, weight, known = limits
    taken = {d + k for d, n in others if n >= quoted for k in range(n)}
    best = 0
    for i, d, n in pieces:
        for lo in range(n):
            for hi in range(lo + least, n + 1):
                inside = not any(d + k in taken for k in range(lo, hi))
                # Only the longest stretches that are the answer's own.
                before = lo == 0 or d + lo - 1 in taken
                behind = hi == n or d + hi in taken
                if inside and before and behind and hi - lo > best:
                    said = 0.0
                    for t in range(i + lo, i + hi):
                        earlier = range(max(i + lo + 1, t - known), t)
                        pair = list(words[t - 1 : t + 1])
                        if not any(list(words[s - 1 : s + 1]) == pair for s in earlier):
                            said += weigh(words[t])
                    if said >= weight:
                        best = hi - lo
    return best
