"""A matcher that compares everything with everything, for texts of a page or less.

Plain Python on plain lists; knows nothing of the package it judges. A run is found by extending
every pair of equal tokens, so its cost is the product of both lengths.
"""

import hashlib
import re
from dataclasses import dataclass, field

N_PARTS = 4
QUESTION, ANSWER = 1, 3
_NEAR = 50


@dataclass
class Part:
    """One text of an item: its tokens, and which of them begin a white-space separated word."""

    text: str
    tokens: list[str]
    word_start: list[bool]


@dataclass
class Pair:
    """What one document holds of one item; the lists have an entry per part."""

    item: int
    document: int
    longest: list[int] = field(default_factory=lambda: [0] * N_PARTS)
    covered: list[int] = field(default_factory=lambda: [0] * N_PARTS)
    n_runs: list[int] = field(default_factory=lambda: [0] * N_PARTS)
    aligned: list[int] = field(default_factory=lambda: [0] * N_PARTS)
    exact: list[bool] = field(default_factory=lambda: [False] * N_PARTS)
    n_places: int = 0
    answer_near: bool = False


@dataclass
class Matches:
    """Items by part, the longest run that starts at every token of them, and the pairs found."""

    parts: list[list[Part]]
    longest_at: list[list[list[int]]]
    pairs: list[Pair]


def tokenise(text: str, unit: str) -> Part:
    """Letters and digits, in words or one by one; a word begins with the first after a blank."""
    tokens, starts = [], []
    for chunk in text.split():
        pattern = r"[^\W_]+" if unit == "word" else r"[^\W_]"
        for place, token in enumerate(re.findall(pattern, chunk.casefold())):
            tokens.append(token)
            starts.append(place == 0)
    return Part(text, tokens, starts)


def token_hash(token: str) -> int:
    return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")


def extensions(a: list[str], b: list[str]) -> list[list[int]]:
    """How many tokens agree from a[i] and b[j] on, for every i and j."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            if a[i] == b[j]:
                table[i][j] = 1 + table[i + 1][j + 1]
    return table


def maximal_runs(table: list[list[int]]) -> list[tuple[int, int, int]]:
    """(place in a, place in b, length) of every run that cannot be extended to the left."""
    runs = []
    for i, row in enumerate(table):
        for j, length in enumerate(row):
            if length and not (i and j and table[i - 1][j - 1]):
                runs.append((i, j, length))
    return runs


def match(items: list[list[str]], corpus: list[str], unit: str, seed: int, min_run: int) -> Matches:
    """Every run of `seed` tokens or more between the parts of the items and the documents."""
    parts = [[tokenise(text, unit) for text in texts] for texts in items]
    documents = [tokenise(text, unit).tokens for text in corpus]
    longest_at = [[[0] * len(part.tokens) for part in item] for item in parts]
    pairs = []
    for k, item in enumerate(parts):
        for d, document in enumerate(documents):
            pair = Pair(k, d)
            runs_of = []
            for p, part in enumerate(item):
                tokens = part.tokens
                runs = maximal_runs(extensions(tokens, document))
                runs_of.append(runs)
                inside, near = set(), set()
                for i, _, length in runs:
                    pair.longest[p] = max(pair.longest[p], length)
                    if length >= min(seed, len(tokens)):
                        near.update(range(i, i + length))
                        for step in range(length):
                            left = length - step
                            if left >= min(seed, len(tokens)):
                                longest_at[k][p][i + step] = max(longest_at[k][p][i + step], left)
                    if length >= min(min_run, len(tokens)):
                        pair.n_runs[p] += 1
                    if length >= min_run:
                        inside.update(range(i, i + length))
                pair.covered[p], pair.aligned[p] = len(inside), len(near)
                pair.exact[p] = bool(tokens) and pair.longest[p] == len(tokens)
            _place(pair, item, runs_of, min(seed, max(len(item[QUESTION].tokens), 1)))
            if any(pair.n_runs) or max(pair.longest) >= seed:
                pairs.append(pair)
    return Matches(parts, longest_at, pairs)


def _place(pair: Pair, item: list[Part], runs_of: list, least: int) -> None:
    spans = [(j, j + length) for _, j, length in runs_of[QUESTION] if length >= least]
    pair.n_places = len(spans)
    n_answer = len(item[ANSWER].tokens)
    answers = [(j, j + n) for _, j, n in runs_of[ANSWER] if n_answer and n == n_answer]
    pair.answer_near = any(
        start <= after + _NEAR and before <= end + _NEAR
        for before, after in spans
        for start, end in answers
    )
