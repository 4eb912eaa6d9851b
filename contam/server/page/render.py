"""Render templates to HTML; every value is escaped and no value can run."""

from __future__ import annotations

import base64
import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from contam.server.auth import CALLER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response


_HERE: Final = Path(__file__).with_name("templates")
_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect "
    "width='16' height='16' rx='3' fill='%23175e54'/%3E%3Cpath d='M3 5h10M3 8h6M3 11h8' "
    "stroke='%23fff' stroke-width='1.6'/%3E%3C/svg%3E"
)
# Characters that change how other text looks, or that nobody sees: their number is shown.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029"
    "\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1000


def seen(text: str) -> Markup:
    """A text of unknown origin, escaped; characters that nobody sees are shown by their number."""
    parts, at = [], 0
    for found in _UNSEEN.finditer(text):
        parts += [
            escape(text[at : found.start()]),
            Markup('<span class="unseen">U+{:04X}</span>').format(ord(found[0])),
        ]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def size(n_bytes: float) -> str:
    """Bytes as people read them."""
    for unit in _UNITS[:-1]:
        if n_bytes < _THOUSAND:
            return f"{n_bytes:.3g} {unit}" if unit != _UNITS[0] else f"{n_bytes:,.0f} {unit}"
        n_bytes /= _THOUSAND
    return f"{n_bytes:,.1f} {_UNITS[-1]}"


def counted(n: int, singular: str, many: str = "") -> str:
    """A number with its noun: `1 document`, `2 documents`."""
    return f"{n:,} {singular if n == 1 else many or singular + 's'}"


def link_of(url: str | None) -> str | None:
    """An address, if following it does no more than that."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


@cache
def _style() -> str:
    return (_HERE / "page.css").read_text("utf-8").strip()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"seen": seen, "size": size, "link": link_of}
    # Ours, and the same for everybody.
    made.globals |= {"style": Markup(_style()), "icon": _ICON, "counted": counted}  # noqa: S704
    return made


@cache
def _policy() -> str:
    digest = base64.b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def show(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **given: Any,  # noqa: ANN401 - whatever the template shows
) -> Response:
    """A page."""
    caller = request.scope.get(CALLER)
    text = (
        _environment()
        .get_template(template)
        .render(
            may=caller.may if caller else lambda _: False,
            **given,
        )
    )
    always = {
        "Content-Security-Policy": _policy(),
        "Cache-Control": "no-store",
        # Forms have to say where they come from.
        "Referrer-Policy": "same-origin",
    }
    return HTMLResponse(text, status, {**(headers or {}), **always})


def problem_page(
    request: Request,
    status: int,
    *,
    detail: str,
    hint: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A failure as a page."""
    return show(
        request, "problem.html", status=status, headers=headers, detail=detail, hint=hint,
        code=status, request_id=getattr(request.state, "request_id", ""),
    )  # fmt: skip
