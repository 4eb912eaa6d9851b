"""Write report.html: one self-contained file that opens offline and holds all evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.audit.facts import to_tree
from contam.audit.report import pictures
from contam.audit.report.chapters import before_and_after, chapters, largest_changes, study_chapters
from contam.audit.report.items_page import (
    COLUMNS,
    TEMPLATES,
    inert,
    items_section,
    script,
    script_digest,
    style,
)
from contam.audit.spec import TOGETHER
from contam.audit.studies import SCORES, STUDIES
from contam.rescore.export.summary import small

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contam.audit.facts import Facts

    Tree = dict[str, Any]

_TEMPLATE: Final = "report.html"
_SHADES: Final = 5
_NONE: Final = "\N{EN DASH}"


def write_html(
    path: Path, facts: Facts, rows: Sequence[Tree], pages: Sequence[Sequence[Tree]], pack: Path
) -> None:
    """Write the report.

    rows, pages  what `contam.audit.report.pages.make_pages` gives
    pack         its folder, with the re-scoring and the studies there are
    """
    from jinja2 import Environment, StrictUndefined, select_autoescape

    environment = Environment(
        autoescape=select_autoescape(default=True), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "percent": _percent,
        "figure": _figure,
        "shade": _shade,
        "small": _small,
        "css": lambda name: name.replace("+", "-"),
        "words": lambda name: name.replace("_", " "),
    }
    template = environment.from_string((TEMPLATES / _TEMPLATE).read_text("utf-8"))
    tree = to_tree(facts)
    own, others = chapters(tree, pack / SCORES)
    page = template.render(
        facts=tree,
        together=TOGETHER,
        policies=list(tree["policies"]),
        style=style(),
        script=script(),
        allowed=script_digest(),
        items_section=items_section(COLUMNS),
        rows=inert(rows),
        pages=[inert(page) for page in pages],
        n_flagged=len(rows),
        chapters=own,
        others=others,
        changes=largest_changes(tree),
        studies=study_chapters(tree, pack / STUDIES),
        cleaned=[
            {**to_tree(corpus), "flagged": before_and_after(facts, corpus)}
            for corpus in facts.cleaned
        ],
        rows_drawn=pictures.overview(tree),
        picture_key=pictures.key_of,
        picture_months=pictures.months,
    )
    path.write_text(page, "utf-8", errors="replace")


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{100 * share:.1f} %"


def _figure(value: float | None, digits: int = 3) -> str:
    return _NONE if value is None else f"{value:.{digits}f}"


def _small(p: float | None) -> str:
    return _NONE if p is None else small(p)


def _shade(share: float) -> int:
    """Which of the map's shades a share of flagged items gets; none only for none."""
    return 0 if share <= 0 else min(_SHADES, 1 + int(share * _SHADES))
