"""Write the list of items that opens each beside its documents, and a page of it alone."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contam.audit.report.pages import PAGE_ITEMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    Tree = dict[str, Any]

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
    return f"""<form id="filters" class="filters" aria-label="Filters">
<label>Text in name or source <input name="text" type="search" autocomplete="off"></label>
{filters}
<button type="reset">Clear filters</button>
</form>
<div class="pager"><button type="button" id="before">Earlier</button>\
<button type="button" id="after">Later</button>\
<span id="count" role="status" aria-live="polite"></span></div>
<div class="wide" data-scrolls tabindex="0"><table id="items" data-page-items="{PAGE_ITEMS}"\
 data-things="{escape(things)}">
<caption>Choose an item to see it beside the documents that contain it; what matches is marked.\
{_Q if "q" in keys else ""}</caption>
<thead><tr>
{headings}
</tr></thead><tbody></tbody></table></div>"""


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
    return Template((TEMPLATES / "items.html").read_text("utf-8")).substitute(
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
