"""Mark what an item and a document share: matched, surrounding and omitted parts, and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]


_LONGEST: Final = 4_000
"""Characters of a text that are shown without a gap."""

_BUILT_IN: Final = ("word", "char")


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


def units_of(run: Mapping[str, Any]) -> tuple[str, ...]:
    """The units in which a run compared texts; sizes are given in the first of them."""
    parameters = run["parameters"]
    lanes = parameters.get("lanes") or [{"unit": parameters.get("unit", "word")}]
    return tuple(str(lane["unit"]) for lane in lanes)


def tokens_in_common(
    rows: Sequence[Row], text: str | None, units: Sequence[str], most: int | None = None
) -> int:
    """Tokens of a part, in the first unit, that the evidence of one document covers.

    rows  of one part and document;  text  of the part, None where it is not known
    most  tokens of the part, where that is known

    A document may have a stretch of the part several times, and a run in two units has rows of
    each: then tokens of the text are counted. Without it, or in tokens of a tokenizer file, the
    answer is the least it can be.
    """
    own = [row for row in rows if not row["answer_mark"]] or rows
    stretches = sorted((row["item_start"], row["item_end"], row["n_tokens"]) for row in own)
    apart: list[int] = []
    end = 0
    for start, stop, n in stretches:
        if apart and start < end:
            apart[-1] = max(apart[-1], n)
        else:
            apart.append(n)
        end = max(end, stop)
    if len(units) == 1 and len(apart) == len(stretches):
        return sum(apart)
    if text is not None and units[0] in _BUILT_IN:
        return _tokens_within(text, [stretch[:2] for stretch in stretches], units[0])
    return sum(apart) if most is None else min(sum(apart), most)


def _tokens_within(text: str, spans: Sequence[tuple[int, int]], unit: str) -> int:
    # The compiled kernels take a second to load, and are hardly ever needed to show an item.
    from contam.kernels.tokens import CHARS, WORDS
    from contam.text.tokenizer import tokenize_bytes

    kind = WORDS if unit == "word" else CHARS
    tokens = tokenize_bytes(text.encode("utf-8", "replace"), unit=kind).spans
    n = 0
    for span in merged_spans(spans):
        low, high = (len(text[:at].encode("utf-8", "replace")) for at in span)
        n += int(((tokens[:, 0] >= low) & (tokens[:, 1] <= high)).sum())
    return n
