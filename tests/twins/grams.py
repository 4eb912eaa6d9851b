"""Twin of the gram table: grams by their definition, owners and order by counting."""

import math

MASK = 2**64 - 1


def gram_hash(tokens: list[int], base: int, spread: int) -> int:
    """Polynomial hash of a gram, first token highest, then spread over the word."""
    n = len(tokens)
    value = sum(token * pow(base, n - 1 - i, 2**64) for i, token in enumerate(tokens)) & MASK
    mixed = value * spread & MASK
    return mixed ^ (mixed >> 32)


def gram_hashes(tokens: list[int], n: int, base: int, spread: int) -> list[int]:
    return [gram_hash(tokens[i : i + n], base, spread) for i in range(len(tokens) - n + 1)]


def part_grams(
    parts: list[list[int]], n: int, base: int, spread: int, stride: int = 1
) -> list[tuple]:
    """(hash, index of the first token in all tokens, part) of every stride-th gram of every part."""
    found = []
    before = 0
    for number, part in enumerate(parts):
        for i, value in enumerate(gram_hashes(part, n, base, spread)):
            if i % stride == 0:
                found.append((value, before + i, number))
        before += len(part)
    return found


def owners(parts_of_grams: list[list[int]], benchmark: list[int]) -> list[int]:
    """For every place the number of items of its benchmark that hold the gram."""
    per_place = []
    for parts in parts_of_grams:
        items = {part // 4 for part in parts}
        for part in parts:
            mine = benchmark[part // 4]
            per_place.append(sum(benchmark[item] == mine for item in items))
    return per_place


def common(
    parts_of_grams: list[list[int]], benchmark: list[int], n_items: int, limits: tuple[int, int]
) -> list[bool]:
    """Whether each gram stands in more places, or in more items of a benchmark, than the limits.

    Variants are numbered from n_items on, and count only where no item holds the gram.
    """
    per_place = iter(owners(parts_of_grams, benchmark))
    found = []
    for parts in parts_of_grams:
        every = [(part // 4, next(per_place)) for part in parts]
        counted = [n for item, n in every if item < n_items] or [n for _, n in every]
        found.append(len(counted) > limits[0] or max(counted) > limits[1])
    return found


def short_first(places: list[tuple[int, int]], lengths: list[int], min_run: int) -> tuple:
    """The (place, part) pairs of one gram with those in short parts in front; how many those are."""
    short = [place for place in places if lengths[place[1]] < min_run]
    return short + [place for place in places if lengths[place[1]] >= min_run], len(short)


def skips(before: list[int | None], most: int) -> list[int]:
    """For each place of one gram how many from it on have the same token before them, `most` at most.

    before  the token before each place, None where its part begins there
    """
    found = []
    for j, token in enumerate(before):
        same = 1
        while j + same < len(before) and token is not None and before[j + same] == token:
            same += 1
        found.append(min(same, most))
    return found


def template_weights(
    base: list[float], places: list[tuple[int, int]], n: int, most: float, floor: float
) -> list[float]:
    """Token weights; places are (first token, owners) of every gram of n tokens."""
    weights = []
    for t, own in enumerate(base):
        counts = [count for first, count in places if first <= t < first + n]
        shared = max(counts, default=1)
        factor = max(floor, 1 - math.log(shared) / math.log(most)) if shared > 1 else 1.0
        weights.append(own * factor)
    return weights
