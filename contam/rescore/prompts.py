"""The question at the end of a prompt, for logs that hold nothing but whole prompts."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from contam.benchmark.keys import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD: Final = 4
"""Words a question is looked up by."""

_MOST_BEHIND: Final = 12
"""Words a template may put behind the question and its choices."""

_FEW: Final = 3
"""Prompts that must share what stands behind their questions, where it is no `Answer:`."""

_LABEL: Final = re.compile(r"\(?[a-z0-9][).:]")


class PromptEnds:
    """Questions of a benchmark, looked for at the ends of prompts.

    A prompt with examples holds other questions too. The last question counts, and only when
    nothing follows it but its choices and a few words that are the same for the whole log.
    """

    def __init__(self, questions: Sequence[str], choices: Sequence[Sequence[str] | None]) -> None:
        self._questions = [normalise(question).split() for question in questions]
        self._choices = [
            sorted((normalise(choice) for choice in own or ()), key=len, reverse=True)
            for own in choices
        ]
        self._by_head: dict[tuple[str, ...], list[int]] = {}
        for row, words in enumerate(self._questions):
            if words:
                self._by_head.setdefault(tuple(words[:_HEAD]), []).append(row)
        self._head_sizes = sorted({len(head) for head in self._by_head})
        sizes = [
            len(words) + sum(len(choice.split()) + 1 for choice in own)
            for words, own in zip(self._questions, self._choices, strict=True)
        ]
        self._window = max(sizes, default=0) + _MOST_BEHIND

    def find(self, prompts: Sequence[str]) -> list[list[int]]:
        """Rows whose question ends each prompt, under the template most prompts share."""
        found = [self._last(normalise(prompt).split()) for prompt in prompts]
        templates = Counter(tail for _, tail in found if tail is not None)
        if not templates:
            return [[] for _ in prompts]
        usual, shared = templates.most_common(1)[0]
        # Words behind a lone question may as well be the rest of another question.
        if usual and not usual.endswith(":") and shared < _FEW:
            return [[] for _ in prompts]
        return [rows if tail == usual else [] for rows, tail in found]

    def _last(self, words: list[str]) -> tuple[list[int], str | None]:
        """Rows of the question that ends last, the longest of those, and what stands behind it."""
        words = words[-self._window :]
        best: tuple[int, int] = (0, 0)
        rows: list[int] = []
        for start in range(len(words)):
            for length in self._head_sizes:
                for row in self._by_head.get(tuple(words[start : start + length]), ()):
                    size = len(self._questions[row])
                    end = start + size
                    if (end, size) < best or words[start:end] != self._questions[row]:
                        continue
                    rows = [*rows, row] if (end, size) == best else [row]
                    best = (end, size)
        fitting = [
            (row, tail) for row in rows if (tail := self._tail(row, words[best[0] :])) is not None
        ]
        if not fitting:
            return [], None
        # Of two items with one question the right one has its choices there, and leaves less.
        shortest = min((tail for _, tail in fitting), key=len)
        return [row for row, tail in fitting if tail == shortest], shortest

    def _tail(self, row: int, behind: list[str]) -> str | None:
        """What is left behind a question without its choices and their letters; None when long."""
        text = f" {' '.join(behind)} "
        for choice in self._choices[row]:
            text = text.replace(f" {choice} ", " ", 1)
        left = [word for word in text.split() if not _LABEL.fullmatch(word)]
        return " ".join(left) if len(left) <= _MOST_BEHIND else None
