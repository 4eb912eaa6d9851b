"""Write report.html, which opens offline and holds all evidence, and report.md, from one tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from contam.audit.facts import to_tree
from contam.audit.report.chapters import (
    before_and_after,
    chapters,
    clean_missing,
    key_of,
    largest_changes,
    months,
    overview,
    scores_shown,
    study_chapters,
)
from contam.audit.report.pages import (
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
from contam.rescore.export.summary import cell, figure, gain_of, small

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jinja2 import Environment

    from contam.audit.facts import Facts

    Tree = dict[str, Any]

_SHADES: Final = 5
_NONE: Final = "\N{EN DASH}"


def write_html(
    path: Path, facts: Facts, rows: Sequence[Tree], pages: Sequence[Sequence[Tree]], pack: Path
) -> None:
    """Write the report.

    rows, pages  what `contam.audit.report.pages.make_pages` gives
    pack         its folder, with the re-scoring and the studies there are
    """
    own, others = chapters(to_tree(facts), pack / SCORES)
    page = _rendered(
        "report.html",
        facts,
        _environment(autoescape=True),
        policies=list(facts.policies),
        style=style(),
        script=script(),
        allowed=script_digest(),
        items_section=items_section(COLUMNS),
        rows=inert(rows),
        pages=[inert(page) for page in pages],
        n_flagged=len(rows),
        chapters=own,
        others=others,
        changes=largest_changes(to_tree(facts)),
        studies=study_chapters(to_tree(facts), pack / STUDIES),
        rows_drawn=overview(to_tree(facts)),
        picture_key=key_of,
        picture_months=months,
    )
    path.write_text(page, "utf-8", errors="replace")


def write_markdown(path: Path, facts: Facts) -> None:
    """Write the tables as text. Text of items and documents is not in it."""
    text = markdown("report.md", facts, scores=scores_shown(facts.scores, facts.least))
    path.write_text(text, "utf-8", errors="replace")


def markdown(name: str, facts: Facts, **more: object) -> str:
    """The text that a template makes of the facts."""
    text = _rendered(name, facts, _environment(autoescape=False), **more)
    # A chapter without a table or a list leaves its empty lines.
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


def _rendered(name: str, facts: Facts, environment: Environment, **more: object) -> str:
    template = environment.from_string((TEMPLATES / name).read_text("utf-8"))
    cleaned = [
        {**to_tree(corpus), "flagged": before_and_after(facts, corpus)} for corpus in facts.cleaned
    ]
    return template.render(facts=to_tree(facts), cleaned=cleaned, together=TOGETHER, **more)


def _environment(*, autoescape: bool) -> Environment:
    """HTML escapes what it is given; in Markdown nothing can break out of its cell."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=autoescape,  # noqa: S701 - Markdown escapes each value by `finalize`
        finalize=None if autoescape else lambda value: cell(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": _percent,
        "figure": _figure,
        "count": _count,
        "gain": gain_of,
        "clean_missing": clean_missing,
        "shade": _shade,
        "small": _small,
        "css": lambda name: name.replace("+", "-"),
        "words": lambda name: name.replace("_", " "),
    }
    return environment


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{100 * share:.1f} %"


def _figure(value: float | None, digits: int = 3) -> str:
    return _NONE if value is None else figure(value, digits)


def _small(p: float | None) -> str:
    return _NONE if p is None else small(p)


def _count(number: float | None) -> str:
    """A number of things, which may be half a one."""
    if number is None:
        return _NONE
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def _shade(share: float) -> int:
    """Which of the map's shades a share of flagged items gets; none only for none."""
    return 0 if share <= 0 else min(_SHADES, 1 + int(share * _SHADES))
