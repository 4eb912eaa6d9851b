"""Count the tokens of an item's part that a document has, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.detect.show.highlights import merged_spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

_BUILT_IN: Final = ("word", "char")


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
