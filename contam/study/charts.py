"""Define the pictures of a study, apart from how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contam.rescore.arrays import Row

    Tone = Literal["plain", "alarm", "other", "faint"]

#: Of dots that stand out, or do not.
TONES: Final[Mapping[bool, Tone]] = {False: "plain", True: "alarm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Dots of a chart, with names beside those that have one and bars where limits are given."""

    x: Sequence[float]
    y: Sequence[float]
    names: Sequence[str] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    tone: Tone = "plain"
    label: str = ""

    @classmethod
    def of(
        cls,
        placed: Iterable[tuple[float, Row]],
        y: str,
        *,
        limits: str = "",
        names: str = "",
        factor: float = 1,
        tone: Tone = "plain",
        label: str = "",
    ) -> Points:
        """Rows as dots, each with its x; empty cells are no dots.

        y, names  columns;  limits  how the columns of the limits begin;  factor  of all values
        """
        known = [(x, row) for x, row in placed if row[y] is not None and row[y] == row[y]]
        low, high = (
            [factor * row[f"{limits}_{end}"] for _, row in known] if limits else ()
            for end in ("low", "high")
        )
        values = [factor * row[y] for _, row in known]
        at = [x for x, _ in known]
        named = [row[names] for _, row in known] if names else ()
        return cls(x=at, y=values, names=named, low=low, high=high, tone=tone, label=label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points in order, and the band around it where limits are given."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    tone: Tone = "plain"
    dashed: bool = False
    label: str = ""

    @classmethod
    def level(cls, n: int, y: float = 0.0) -> Line:
        """A faint line behind n places of the x axis."""
        return cls(x=[-0.5, max(n, 1) - 0.5], y=[y, y], tone="faint", dashed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes.

    x_names  what stands at 0, 1, ... of the x axis, where that is no number
    """

    title: str
    x: str
    y: str
    marks: Sequence[Points | Line]
    x_names: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture of panels side by side; `name` is that of its files."""

    name: str
    caption: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bump:
    """A picture of how models change their ranks from one ranking to the next.

    rankings  their names, in order;  ranks  model -> its rank in each of them
    """

    name: str
    caption: str
    rankings: Sequence[str]
    ranks: Mapping[str, Sequence[float]]
