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
