"""Show item and document side by side, with the matches marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from contam.benchmark.items import PARTS, ItemName
from contam.detect.policies.verdict import Verdict
from contam.detect.show.choose import source_of
from contam.detect.show.reread import Library, Place
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.corpus.formats.base import Document
    from contam.detect.report import Report
    from contam.tables.schemas import Table

    Row = Mapping[str, Any]


# Code points shown around a match; the item's side shows more, it is what was asked about.
_DOCUMENT_CONTEXT: Final = 160
_ITEM_CONTEXT: Final = 600
# Documents are read again in this many items at a time, so that memory stays bounded.
_CHUNK_ITEMS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class PartMatch:
    """One part of the item beside one document. An empty side means that its text is not there.

    n_tokens  tokens of the part that match;  turn  of a conversation, in which they begin
    token     of a shard of token ids, at which they begin
    mark      "letter" or "number" where the document names the right choice by it; else ""
    """

    part: str
    n_tokens: int
    mark: str
    turn: str | None
    token: int | None
    item: tuple[Mark, ...]
    document: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMatch:
    """All that one document shares with an item.

    column   the column its text stands in, where that is not the one its shard is read from
    problem  why its text cannot be shown
    """

    document_id: str
    shard: str
    row: int
    url: str | None
    date: str | None
    source: str | None
    column: str | None
    problem: str | None
    parts: tuple[PartMatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """One item, what the policies say of it, and its best documents.

    texts                part -> text; empty when the texts were kept out of the result
    n_more_documents     documents with evidence that are not in `documents`
    """

    key: ItemName
    verdicts: tuple[Verdict, ...]
    texts: dict[str, str]
    documents: tuple[DocumentMatch, ...]
    n_more_documents: int


def view_items(
    report: Report,
    keys: Sequence[ItemName],
    *,
    policy: str | None = None,
    max_documents: int = 3,
    sources: Sequence[str] = (),
) -> Iterator[ItemView]:
    """The items in the order given, each beside its best `max_documents` documents.

    sources  of the documents (`contam.detect.show.choose.source_of`); none means all
    max_documents 0 reads nothing again.

    Document texts are read again from the shards of the run. A shard that is gone, unreadable or
    no longer the one scanned is not an error: its documents say so in `problem`.
    """
    library = Library(report.run, report.folder)
    units = units_of(report.run)
    tables = {
        name: _RowsByItem(getattr(report, name), keys) for name in ("verdicts", "items", "evidence")
    }
    for start in range(0, len(keys), _CHUNK_ITEMS):
        some = keys[start : start + _CHUNK_ITEMS]
        verdicts, items = tables["verdicts"].of(some), tables["items"].of(some)
        evidence = {
            key: _by_document(
                row
                for row in rows
                if not sources or source_of(row["source"], row["url"]) in sources
            )
            for key, rows in tables["evidence"].of(some).items()
        }
        shown = {key: list(documents)[:max_documents] for key, documents in evidence.items()}
        library.fetch(place for places in shown.values() for place in places)
        for key in some:
            own = _Own.of(items[key], units)
            yield ItemView(
                key=key,
                verdicts=tuple(
                    verdict
                    for verdict in (Verdict(**row) for row in verdicts[key])
                    if policy in {None, verdict.policy}
                ),
                texts=own.texts,
                documents=tuple(
                    _document(evidence[key][place], own, library, place) for place in shown[key]
                ),
                n_more_documents=len(evidence[key]) - len(shown[key]),
            )


class _RowsByItem:
    """Where in a table the rows of each item stand."""

    def __init__(self, table: Table, keys: Sequence[ItemName]) -> None:
        self._table = table
        self._places: dict[ItemName, list[int]] = {key: [] for key in keys}
        columns = (schemas.column(table, name) for name in ItemName._fields)
        for at, key in enumerate(zip(*columns, strict=True)):
            # A plain tuple is equal to the key it spells.
            places = self._places.get(key)  # type: ignore[call-overload] # see above
            if places is not None:
                places.append(at)

    def of(self, keys: Sequence[ItemName]) -> dict[ItemName, list[dict[str, Any]]]:
        """The rows of these items, in table order."""
        places = [self._places[key] for key in keys]
        rows = iter(schemas.rows(schemas.take(self._table, [at for own in places for at in own])))
        return {key: [next(rows) for _ in own] for key, own in zip(keys, places, strict=True)}


@dataclass(frozen=True, slots=True)
class _Own:
    """An item's texts, as far as they are known, and their sizes in the first of the units."""

    texts: dict[str, str]
    sizes: Mapping[str, int | None]
    units: Sequence[str]

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]], units: Sequence[str]) -> _Own:
        if not rows:
            return cls({}, {}, units)
        sizes = {part: rows[0].get(f"{part}_tokens") for part in PARTS}
        return cls(_part_texts(rows[0]), sizes, units)


def _document(
    rows: list[dict[str, Any]], own: _Own, library: Library, place: Place
) -> DocumentMatch:
    first = rows[0]
    document = library.document(place)
    return DocumentMatch(
        document_id=first["document_id"],
        shard=first["shard"],
        row=first["row"],
        url=first["url"],
        date=first["date"],
        source=first["source"],
        column=document.column or None if document is not None else None,
        problem=library.problem(place),
        parts=tuple(
            _part_match(part, [row for row in rows if row["part"] == part], own, document)
            for part in PARTS
            if any(row["part"] == part for row in rows)
        ),
    )


def _part_match(
    part: str,
    rows: list[dict[str, Any]],
    own: _Own,
    document: Document | None,
) -> PartMatch:
    text = own.texts.get(part)
    # A choice that is named by its letter has no text to mark.
    in_item = [(row["item_start"], row["item_end"]) for row in rows if not row["answer_mark"]]
    in_document = [(row["document_start"], row["document_end"]) for row in rows]
    tokens = [row["document_token"] for row in rows if row["document_token"] is not None]
    return PartMatch(
        part=part,
        n_tokens=tokens_in_common(rows, text, own.units, own.sizes.get(part)),
        mark=mark_of(rows),
        turn=document.turn_at(min(in_document)[0]) if document is not None else None,
        token=min(tokens, default=None),
        item=mark(text, in_item, _ITEM_CONTEXT) if text is not None else (),
        document=mark(document.text, in_document, _DOCUMENT_CONTEXT)
        if document is not None
        else (),
    )


def mark_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """The mark, "letter" or "number", by which a document names the right choice; else ""."""
    return next((str(row["answer_mark"]) for row in rows if row["answer_mark"]), "")


def _by_document(rows: Iterable[dict[str, Any]]) -> dict[Place, list[dict[str, Any]]]:
    grouped: dict[Place, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["shard"], row["row"]), []).append(row)
    return grouped


def _part_texts(item: dict[str, Any]) -> dict[str, str]:
    """Part -> text as the scan saw it: choices are joined by line breaks."""
    texts = {part: item[part] for part in PARTS if item[part]}
    if "choices" in texts:
        texts["choices"] = "\n".join(texts["choices"])
    return texts


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
