"""Twin of the look at a question's numbers, on lists of words."""

from collections.abc import Sequence


def renumbered(words: Sequence[str], held: set[int], least: int) -> float:
    """Share of a question's other words that are held, where all its numbers are others; else 0.

    held  places of the words that stand in the document
    """
    if not held:
        return 0.0
    between = range(min(held), max(held) + 1)
    numbers = {at for at, word in enumerate(words) if word[0].isdigit()}
    others = set(range(len(words))) - numbers
    if len(numbers & set(between)) < least or numbers & held or not others:
        return 0.0
    return len(others & held) / len(others)
