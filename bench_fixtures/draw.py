"""A tiny seeded generator whose numbers are the same in every Python version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")
_MASK = (1 << 64) - 1


class Draw:
    """Repeatable choices: equal seeds and equal calls give equal answers, on any machine."""

    def __init__(self, *seed: int | str) -> None:
        self._state = 0x243F6A8885A308D3
        for part in seed:
            for byte in str(part).encode():
                self._state = (self._state ^ byte) * 0x100000001B3 & _MASK
            self._next()

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = (self._state ^ (self._state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        return self._next() % n

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high, both included."""
        return low + self.below(high - low + 1)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], n: int) -> list[T]:
        """Return n different options (all of them when there are fewer) in random order."""
        pool = list(options)
        n = min(n, len(pool))
        for i in range(n):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:n]
