"""Lay out items with their evidence, in pages that open one at a time, and a file of them."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contam.corpus.dates import CLASSES, class_of
from contam.detect.show.choose import Choice, flagged_items
from contam.detect.show.side_by_side import shortened, view_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.audit.calibration import QValues
    from contam.benchmark.items import ItemName
    from contam.detect.report import Report
    from contam.detect.show.side_by_side import DocumentMatch, ItemView, Mark

    Tree = dict[str, Any]


PAGE_ITEMS: Final = 50
"""Items in one page of evidence; a page is read when one of its items is opened."""

_MANY: Final = 1_000


def make_pages(
    report: Report,
    released: Mapping[str, str] | None,
    chance: QValues | None,
    *,
    keys: Sequence[ItemName] | None = None,
    choice: Choice | None = None,
    max_documents: int | None = None,
) -> tuple[list[Tree], list[list[Tree]]]:
    """(rows of the list of items, pages of evidence in the order of the rows).

    released  day each benchmark came out, by name; None: dates of documents are not judged
    chance    what decoys say of every item and policy
    keys      the items to list; None: all that are flagged
    choice    as which they were chosen: whose verdicts and documents are shown
    max_documents  shown beside each item

    Documents are read again from the corpora; one that cannot be says so. Of many flagged items
    only the best document is shown: all of them are in evidence.parquet. Where the result keeps no
    texts no document is quoted either: what matches there is the text of the item.
    """
    keys = flagged_items(report) if keys is None else keys
    choice = choice or Choice()
    most = max_documents or (3 if len(keys) <= _MANY else 1)
    quoting = bool(report.run["parameters"]["keep_text"])
    rows: list[Tree] = []
    pages: list[list[Tree]] = []
    views = view_items(
        report, keys, policy=choice.policy, max_documents=most, sources=choice.sources
    )
    for number, view in enumerate(views):
        if number % PAGE_ITEMS == 0:
            pages.append([])
        day = released.get(view.key.benchmark) if released else None
        rows.append(_row(view, day, chance, choice))
        pages[-1].append(
            {
                "reasons": {
                    verdict.policy: f"{verdict.label}: {verdict.reason}"
                    for verdict in view.verdicts
                },
                "chance": {
                    verdict.policy: chance.describe(*view.key, verdict.policy)
                    for verdict in view.verdicts
                    if chance is not None and verdict.flagged
                },
                "documents": [
                    _document(document, day, quoting=quoting) for document in view.documents
                ],
                "more": view.n_more_documents,
            }
        )
    return rows, pages


def _row(view: ItemView, released: str | None, chance: QValues | None, choice: Choice) -> Tree:
    """What the list shows of one item: the facts of the first verdict that was chosen."""
    first = next(verdict for verdict in view.verdicts if choice.takes(verdict))
    kinds = [class_of(document.date, released) for document in view.documents]
    q = chance.of(*view.key, first.policy) if chance else None
    return {
        "benchmark": view.key.benchmark,
        "split": view.key.split,
        "item": view.key.item_id,
        "labels": {verdict.policy: verdict.label for verdict in view.verdicts},
        "score": None if first.score is None else round(first.score, 4),
        "q": None if q is None else round(q, 6),
        "exposure": first.exposure,
        "kind": first.kind or "",
        "documents": first.n_documents,
        "source": next((document.source or document.url or "" for document in view.documents), ""),
        "date": min(kinds, key=CLASSES.index) if kinds else CLASSES[-1],
    }


def _document(document_match: DocumentMatch, released: str | None, *, quoting: bool) -> Tree:
    return {
        "id": document_match.document_id,
        "shard": document_match.shard,
        "row": document_match.row,
        "url": document_match.url or "",
        "date": document_match.date or "",
        "dated": class_of(document_match.date, released),
        "source": document_match.source or "",
        "problem": document_match.problem or "",
        "parts": [
            {
                "part": part.part,
                "tokens": part.n_tokens,
                "mark": part.mark,
                "item": _marks(part.item),
                "document": _marks(part.document) if quoting else [],
            }
            for part in document_match.parts
        ],
    }


def _marks(marks: tuple[Mark, ...]) -> list[list[Any]]:
    """["match" | "text", text] or ["gap", characters]."""
    return [
        [mark.kind, mark.n_left_out if mark.kind == "gap" else mark.text]
        for mark in shortened(marks)
    ]


TEMPLATES: Final = files("contam.audit.report") / "templates"


class Column(NamedTuple):
    """A column of the list: the key of its values, its heading, and its filter, if it has one."""

    key: str
    heading: str
    filter: str = ""
    number: bool = False


COLUMNS: Final = (
    Column("item", "item"),
    Column("benchmark", "benchmark", filter="Benchmark"),
    Column("label", "verdict", filter="Verdict"),
    Column("score", "score", number=True),
    Column("q", "q", number=True),
    Column("exposure", "leaked", filter="Leaked"),
    Column("kind", "kind", filter="Kind"),
    Column("documents", "documents", number=True),
    Column("date", "dated", filter="Dated"),
    Column("source", "source"),
)
"""All columns; `q` needs decoys, `date` the days on which the benchmarks came out."""

_NUMBERS: Final = ' class="n"'
_Q: Final = (
    " q: of all items found at least as well, at most this share is expected to be there by chance."
)


def items_section(columns: Sequence[Column], things: str = "flagged items") -> str:
    """The filters, the pager and the table that the script fills, as HTML.

    things  what the list holds, in the plural
    """
    keys = {column.key for column in columns}
    filters = "\n".join(
        f'<label>{column.filter} <select name="{column.key}">'
        '<option value="">all</option></select></label>'
        for column in columns
        if column.filter
    )
    headings = "".join(
        f'<th scope="col" data-sort="{column.key}"{_NUMBERS if column.number else ""}>'
        f'<button type="button">{column.heading}</button></th>'
        for column in columns
    )
    return (
        _template("section.html")
        .substitute(
            filters=filters,
            headings=headings,
            page_items=PAGE_ITEMS,
            things=escape(things),
            note=_Q if "q" in keys else "",
        )
        .rstrip("\n")
    )


def _template(name: str) -> Template:
    return Template((TEMPLATES / name).read_text("utf-8"))


def items_page(
    rows: Sequence[Tree],
    pages: Sequence[Sequence[Tree]],
    *,
    title: str,
    lead: Sequence[str],
    about: str,
    columns: Sequence[Column],
) -> str:
    """One HTML page that opens offline, with the list and all its evidence.

    rows, pages  what `contam.audit.report.pages.make_pages` gives
    title, lead  plain text; lead has a paragraph each;  about  HTML that is shown below the list
    """
    listed = items_section(columns, "items") if rows else "<p>No item fits.</p>"
    data = [f'<script type="application/json" id="rows">{inert(rows)}</script>'] + [
        f'<script type="application/json" id="page-{number}">{inert(page)}</script>'
        for number, page in enumerate(pages)
    ]
    return _template("items.html").substitute(
        allowed=script_digest(),
        title=escape(title),
        lead="\n".join(f"<p><bdi>{escape(line)}</bdi></p>" for line in lead),
        style=style(),
        items=listed,
        about=about,
        data="\n".join(data),
        script=script(),
    )


def style() -> str:
    """The style sheet of the report."""
    return (TEMPLATES / "report.css").read_text("utf-8")


def script() -> str:
    """The script that fills the list."""
    return (TEMPLATES / "report.js").read_text("utf-8")


def script_digest() -> str:
    """For the content security policy: the browser runs a script of this digest and no other."""
    return base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()


def inert(value: object) -> str:
    """JSON for the inside of a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
