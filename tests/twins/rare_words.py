"""Twin of the search for windows with enough rare words: every window of every document is tried."""


def windows(doc: list[int], weight: dict[int, int], window: int, least: int, least_words: int):
    """(weight, -tokens, -first) of every window of up to `window` tokens that holds enough."""
    found = []
    for first in range(len(doc)):
        for end in range(first + 1, min(len(doc), first + window) + 1):
            here = {word for word in doc[first:end] if word in weight}
            total = sum(weight[word] for word in here)
            if total >= least and len(here) >= least_words:
                found.append((total, first - end, -first))
    return found


def n_in_order(ours: list[int], theirs: list[int]) -> int:
    """The most tokens that both have in one order."""
    if not ours or not theirs:
        return 0
    without = max(n_in_order(ours[:-1], theirs), n_in_order(ours, theirs[:-1]))
    return (
        max(without, 1 + n_in_order(ours[:-1], theirs[:-1])) if ours[-1] == theirs[-1] else without
    )
