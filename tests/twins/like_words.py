"""Twin of the alignment of like words: every choice of pairs in order is tried."""

from itertools import combinations


def most_gained(gain: list[list[int]], skip: int) -> int:
    """What the best pairs gain, less `skip` for every word of the text between them without one."""
    n_texts = len(gain[0]) if gain else 0
    best = 0
    for size in range(1, min(len(gain), n_texts) + 1):
        for ours in combinations(range(len(gain)), size):
            for theirs in combinations(range(n_texts), size):
                each = [gain[i][j] for i, j in zip(ours, theirs, strict=True)]
                if min(each) > 0:
                    between = theirs[-1] - theirs[0] + 1 - size
                    best = max(best, sum(each) - skip * between)
    return best
