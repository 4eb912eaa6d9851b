"""Twin of the kernels that make an index: entries, postings, caps and ranges, one by one."""

MASK = 2**64 - 1


def context(tokens: list[int], at: int, n: int) -> int:
    """Four high bits of each of three neighbours: left ones nearest first, then right ones."""
    value = 0
    for i in range(3):
        left, right = at - 1 - i, at + n + i
        if left >= 0:
            value |= (tokens[left] // 2**60) << (4 * i)
        if right < len(tokens):
            value |= (tokens[right] // 2**60) << (12 + 4 * i)
    return value


def entries(tokens: list[int], gram_hashes: list[int], n: int, stride: int) -> list[int]:
    """Key and context of every stride-th gram; `gram_hashes` are those of all grams."""
    return [
        (gram_hashes[at] // 2**24) * 2**24 + context(tokens, at, n)
        for at in range(0, len(gram_hashes), stride)
    ]


def postings(all_entries: list[int]) -> list[tuple[int, int, int]]:
    """(key, ordinal, context), sorted."""
    return sorted(
        (entry // 2**24, ordinal, entry % 2**24) for ordinal, entry in enumerate(all_entries)
    )


def words(key: int, ordinal: int, neighbours: int) -> list[int]:
    """The five words of a posting."""
    number = (key % 2**24) + (neighbours << 24) + (ordinal << 48)
    return [(number >> (16 * i)) % 2**16 for i in range(5)]


def starts(sorted_postings: list[tuple[int, int, int]]) -> list[int]:
    """First posting of each bucket, and how many there are."""
    counts = [0] * 2**16
    for key, _, _ in sorted_postings:
        counts[key // 2**24] += 1
    found = [0]
    for count in counts:
        found.append(found[-1] + count)
    return found


def capped(
    sorted_postings: list[tuple[int, int, int]],
    doc_of: list[int],
    doc_hash: list[int],
    cap: int,
) -> tuple[list[tuple[int, int, int]], dict[int, int]]:
    """(postings that stay, true count of each gram that lost documents)."""
    groups: dict[int, list[tuple[int, int, int]]] = {}
    for posting in sorted_postings:
        groups.setdefault(posting[0], []).append(posting)
    kept, counts = [], {}
    for key, group in sorted(groups.items()):
        if len(group) <= cap:
            kept += group
            continue
        seen: set[tuple[int, int]] = set()
        distinct = []
        for one in group:
            if (doc_of[one[1]], one[2]) not in seen:
                distinct.append(one)
            seen.add((doc_of[one[1]], one[2]))
        if len(distinct) > cap:
            counts[key] = len(group)
            best = sorted(distinct, key=lambda one: (doc_hash[doc_of[one[1]]], one[1]))
            distinct = sorted(best[:cap])
        kept += distinct
    return kept, counts


def mixed(state: int, chunk: int, multiplier: int) -> int:
    """One step of the frozen token hash."""
    value = (state ^ chunk) * multiplier & MASK
    return value ^ (value >> 32)


def document_hash(seed: int, row: int, start: int, step: int, last: int) -> int:
    """Hash of a document: that of a token of two chunks, its shard's seed and its row."""
    value = mixed(mixed(start, seed, step), row, step) * last & MASK
    value ^= value >> 29
    return value or 1
