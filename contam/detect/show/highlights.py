"""Cut a text into matched, surrounding and omitted parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_LONGEST: Final = 4_000
"""Characters of a text that are shown without a gap."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A `match`, plain `text` around it, or a `gap` where `n_left_out` characters are not shown."""

    kind: Literal["match", "text", "gap"]
    text: str
    n_left_out: int = 0


def shortened(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """The same marks; a very long text is shown by its two ends."""
    found: list[Mark] = []
    for each in marks:
        if len(each.text) <= _LONGEST:
            found.append(each)
            continue
        half = _LONGEST // 2
        found += [
            Mark(each.kind, each.text[:half]),
            Mark("gap", "", len(each.text) - 2 * half),
            Mark(each.kind, each.text[-half:]),
        ]
    return tuple(found)


def mark(text: str, spans: Sequence[tuple[int, int]], context: int) -> tuple[Mark, ...]:
    """Cut a text into marks: the spans as matches, `context` characters around them, gaps.

    spans  (start, end) in code points, any order, may overlap; what lies outside the text is cut
    """
    length = len(text)
    matches = merged_spans((max(0, start), min(end, length)) for start, end in spans)
    windows = merged_spans((max(0, a - context), min(length, b + context)) for a, b in matches)
    marks: list[Mark] = []
    at = 0

    def add(kind: Literal["match", "text"], start: int, end: int) -> None:
        if end > start:
            marks.append(Mark(kind, text[start:end]))

    for window_start, window_end in windows or [(0, min(length, 2 * context))]:
        if window_start > at:
            marks.append(Mark("gap", "", window_start - at))
        at = window_start
        for start, end in matches:
            if window_start <= start and end <= window_end:
                add("text", at, start)
                add("match", start, end)
                at = end
        add("text", at, window_end)
        at = window_end
    if at < length:
        marks.append(Mark("gap", "", length - at))
    return tuple(marks)


def merged_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Non-empty spans in order; those that touch or overlap become one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
