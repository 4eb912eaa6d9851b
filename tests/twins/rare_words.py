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


def best_windows(doc: list[int], weight: dict[int, int], window: int, least: int, least_words: int):
    """(first, end) of the best window in each stretch and the one before it, if they hold enough.

    A stretch begins `window` tokens behind the one before it, or at a word behind both.
    """

    def held(a: int, b: int) -> int:
        return sum(weight[word] for word in set(doc[max(a, 0) : b]) if word in weight)

    begins: list[int] = []
    for at, word in enumerate(doc):
        if word in weight and (not begins or at >= begins[-1] + window):
            follows = begins and at < begins[-1] + 2 * window
            begins.append(begins[-1] + window if follows else at)
    found = []
    for begin in begins:
        lo = max(begin - window, 0)
        if held(begin - window, begin) + held(begin, begin + window) >= least and (
            enough := windows(doc[lo : begin + window], weight, window, least, least_words)
        ):
            _, minus_tokens, minus_first = max(enough)
            found.append((lo - minus_first, lo - minus_first - minus_tokens))
    return found


def n_in_order(ours: list[int], theirs: list[int]) -> int:
    """The most tokens that both have in one order."""
    above = [0] * (len(theirs) + 1)
    for mine in ours:
        row = [0]
        for at, other in enumerate(theirs):
            row.append(above[at] + 1 if mine == other else max(above[at + 1], row[-1]))
        above = row
    return above[-1]
