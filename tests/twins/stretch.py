"""Twin of the stretch alignment: what the best choice of equal tokens is worth, by recursion."""

from functools import cache

Pairs = list[tuple[int, int]]


def equal_pairs(a: list[int], b: list[int]) -> Pairs:
    return [(i, j) for i in range(len(a)) for j in range(len(b)) if a[i] == b[j]]


def worth(
    pairs: Pairs, weights: list[float], ends: tuple[int, int], costs: tuple[float, float]
) -> float:
    """Weight of the matched tokens less the skipped ones of both sides before `ends`."""
    gained = sum(weights[i] for i, _ in pairs)
    return gained - costs[0] * (ends[0] - len(pairs)) - costs[1] * (ends[1] - len(pairs))


def best_worth(
    a: list[int], weights: list[float], b: list[int], costs: tuple[float, float], anchored: bool
) -> float:
    """The most that any choice is worth: of all of a and b, or of the best prefixes of the two."""

    @cache
    def whole(x: int, y: int) -> float:
        if x == 0 or y == 0:
            return -costs[0] * x - costs[1] * y
        value = max(whole(x - 1, y) - costs[0], whole(x, y - 1) - costs[1])
        if a[x - 1] == b[y - 1]:
            value = max(value, whole(x - 1, y - 1) + weights[x - 1])
        return value

    if anchored:
        return whole(len(a), len(b))
    return max(whole(x, y) for x in range(len(a) + 1) for y in range(len(b) + 1))
