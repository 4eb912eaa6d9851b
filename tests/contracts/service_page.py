"""What docs/reference.md says of the service's settings and metrics, made from the code.

`python -m tests.contracts.service_page` writes these parts of the page afresh.
"""

from __future__ import annotations

import re
from pathlib import Path

from contam.config import described_settings
from contam.server.metrics import TABLE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"


def settings() -> str:
    """A row for every setting."""
    rows = "".join(
        f"| {'none' if setting.secret else f'`{setting.flag}`'} | `{setting.variable}` | {_default(setting)} "
        f"| {setting.help} |\n"
        for setting in described_settings()
    )
    return f"| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n{rows}"


def metrics() -> str:
    """A row for every metric."""
    rows = "".join(
        f"| `{one.name}` | {one.kind.__name__.lower()} "
        f"| {', '.join(f'`{label}`' for label in one.labels) or 'none'} | {one.help} |\n"
        for one in TABLE
    )
    return f"| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n{rows}"


def committed(part: str) -> str:
    """A part as the page has it."""
    found = re.search(_pattern(part), PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return found[2] if found else ""


def _pattern(part: str) -> str:
    return f"(<!-- {part}: begin -->\n)(.*)(<!-- {part}: end -->\n)"


def _default(one) -> str:
    if one.kind is bool:
        return "on" if one.default else "off"
    if one.default is None or one.default == ():
        return "none"
    return f"`{one.default:g}`" if isinstance(one.default, float) else f"`{one.default}`"


def write() -> None:
    """Write the parts afresh."""
    page = PAGE.read_text(encoding="utf-8")
    for part, text in (("settings", settings()), ("metrics", metrics())):
        page = re.sub(
            _pattern(part),
            lambda found, text=text: found[1] + text + found[3],
            page,
            flags=re.DOTALL,
        )
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write()
