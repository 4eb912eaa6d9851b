"""Twin of the MinHash kernels: sets of shingles, permuted one by one; windows by their definition."""


def mix(value: int) -> int:
    """MurmurHash3's finalizer of 32 bits."""
    value ^= value >> 16
    value = value * 0x85EBCA6B % 2**32
    value ^= value >> 13
    value = value * 0xC2B2AE35 % 2**32
    return value ^ value >> 16


def shingles(tokens: list[int], n: int, base: int, spread: int) -> list[int]:
    if not tokens:
        return []
    n = min(n, len(tokens))
    found = []
    for i in range(len(tokens) - n + 1):
        value = sum(token * base ** (n - 1 - j) for j, token in enumerate(tokens[i : i + n]))
        found.append(value * spread % 2**64 >> 32)
    return found


def permuted(value: int, a: int, b: int) -> int:
    return (a * mix(value) + b) % 2**32


def windows(values: list[int], window: int) -> list[list[int]]:
    return [values[at : at + window] for at in range(0, len(values), window)]


def chosen(values: list[int], perms: list[tuple[int, int]]) -> list[int]:
    """The distinct shingles that some permutation makes smallest, in the permutations' order."""
    every = [min(values, key=lambda v: (permuted(v, a, b), v)) for a, b in perms]
    return list(dict.fromkeys(every))


def entries(
    documents: list[list[int]], window: int, perms: list[tuple[int, int]]
) -> tuple[list[tuple[int, int]], int]:
    """(shingle, window) pairs, and the number of windows; documents are lists of shingles."""
    found = []
    number = 0
    for values in documents:
        before: list[int] = []
        for block in windows(values, window):
            here = chosen(block, perms)
            found += [(shingle, number) for shingle in here if shingle not in before]
            before = here
            number += 1
    return found, number


def proposals(
    items: list[list[int]],
    spans: list[int],
    weight: dict[int, int],
    least: int,
    where: dict[int, list[int]],
    window_start: list[int],
) -> list[tuple[int, int, int]]:
    """(item, document, weight) of all documents in which some `span` windows share enough."""
    found = []
    for item, keys in enumerate(items):
        for document in range(len(window_start) - 1):
            best = 0
            for last in range(window_start[document], window_start[document + 1]):
                first = max(window_start[document], last - spans[item] + 1)
                near = set(range(first, last + 1))
                shared = [key for key in keys if near & set(where.get(key, []))]
                best = max(best, sum(weight.get(key, 0) for key in shared))
            if best >= least:
                found.append((item, document, best))
    return found
