"""How Sphinx makes the documentation site: the pages of this checkout, and the API from docstrings.

`make docs` builds it from the root of the checkout, so that pages may link to any file; a warning
is an error.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

from tests.contracts.printed import printed

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "contam"
author = "The contam authors"
project_copyright = author
release = version = version_of("contam")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**",
    "bench_fixtures/README.md",
    "indexes/*.md",
    "service/README.md",
]
exclude_patterns = ["docs/conf.py", "**/.ipynb_checkpoints"]

# Headings are linked by the anchors that a forge makes of them.
myst_heading_anchors = 4
# A committed notebook has its outputs; a test runs it anew.
nb_execution_mode = "off"
# Prose has code in single quotation marks of Markdown, and so do docstrings.
default_role = "code"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# Two hyphens are those of an option.
smartquotes = False

html_theme = "furo"
html_title = f"contam {release}"
html_show_copyright = False
html_show_sphinx = False
# Nothing is fetched from elsewhere: the site opens offline.
html_theme_options = {"navigation_with_keys": True}

_ROW = re.compile(r"^(\S(?:.*?\S)?) {2,}(\S.*)$")


def _tables_as_fields(
    _app: Sphinx, _what: str, _name: str, _of: object, _options: object, lines: list[str]
) -> None:
    """Make parameters of a docstring's table: a name or several, two spaces, and what it is."""
    fields: list[str] = []
    column = 0
    for line in lines:
        row = _ROW.match(line)
        if column and line.startswith(" " * column):
            fields.append(f"    {line.strip()}")
        elif row:
            column = row.start(2)
            *others, last = row[1].split(", ")
            fields += [f":param {name}: see `{last}`" for name in others]
            fields.append(f":param {last}: {row[2]}")
        else:
            column = 0
            fields.append(line)
    lines[:] = fields


def _print_reference(_app: Sphinx, page: str, source: list[str]) -> None:
    """Put what the code says of itself beside the notes of the reference; keep percents whole."""
    if page in {"docs/reference", "docs/policies"}:
        source[0] = printed(source[0])
    if page == "docs/measured":
        source[0] = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", source[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _print_reference)
    app.connect("autodoc-process-docstring", _tables_as_fields)
