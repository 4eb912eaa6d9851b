"""What docs/reference.md says of the service's metrics, made from the code.

`python -m tests.contracts.service_page` writes these parts of the page afresh.
"""

from __future__ import annotations

import re
from pathlib import Path

from contam.server.metrics import Metrics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"


def described() -> list[tuple[str, str, tuple[str, ...], str]]:
    """Name, kind, labels and meaning of every metric of ours, in their order."""
    found = []
    for metric in vars(Metrics()).values():
        kind = type(metric).__name__.lower()
        if kind in {"counter", "gauge", "histogram"}:
            (family,) = metric.describe()
            name = f"{family.name}_total" if kind == "counter" else family.name
            found.append((name, kind, tuple(metric._labelnames), family.documentation))
    return found


def metrics() -> str:
    """A row for every metric."""
    rows = "".join(
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels) or 'none'} | {meaning} |\n"
        for name, kind, labels, meaning in described()
    )
    return f"| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n{rows}"


def committed(part: str) -> str:
    """A part as the page has it."""
    found = re.search(_pattern(part), PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return found[2] if found else ""


def _pattern(part: str) -> str:
    return f"(<!-- {part}: begin -->\n)(.*)(<!-- {part}: end -->\n)"


def write() -> None:
    """Write the parts afresh."""
    page = PAGE.read_text(encoding="utf-8")
    for part, text in (("metrics", metrics()),):
        page = re.sub(
            _pattern(part),
            lambda found, text=text: found[1] + text + found[3],
            page,
            flags=re.DOTALL,
        )
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write()
