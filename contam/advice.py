"""A way out of an error with its facts, and who has a sentence of their own for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contam.facts import Statement

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import Enum


class Own(str):
    """A sentence for callers of the Python package, where other interfaces say another one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """A member of `contam.remedies.Remedy` and its facts."""

    remedy: Enum
    facts: Mapping[str, object] = field(default_factory=dict)

    def statement(self, sentences: Mapping[Any, str] | None = None) -> Statement:
        """What to say.

        sentences  those of the interface that asks, for every `Own` remedy
        """
        template = (sentences or {}).get(self.remedy, self.remedy.value)
        return Statement(template, named=self.facts)

    def without_quotes(self) -> Advice:
        """The same without what comes from the user's files."""
        return Advice(self.remedy, self.statement().without_quotes().named)
