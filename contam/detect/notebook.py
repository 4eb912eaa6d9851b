"""Show a result in a notebook: counts, coverage and notes, and no text of an item."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from contam.detect.labels import SHOWN
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_MOST_LISTED: Final = 20
_MOST_BENCHMARKS: Final = 3
_HEAD: Final = ("benchmark", "policy", *SHOWN)


def result_html(
    counts: Mapping[str, Mapping[str, Mapping[str, int]]],
    coverage: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> str:
    """The HTML of a result.

    counts  benchmark -> policy -> label -> items;  coverage, notes  as run.json has them
    """
    rows = [
        (benchmark, policy, *(f"{labels.get(label, 0):,}" for label in SHOWN))
        for benchmark, policies in counts.items()
        for policy, labels in policies.items()
    ]
    failed = [
        f"{shard.get('shard')}: {shard.get('reason')}"
        for shard in coverage.get("shards_failed", ())
    ]
    return (
        f"{table_html(_HEAD, rows)}"
        f"<p>{escape(_read(coverage))}</p>{_listed('Not read', failed)}"
        f"{_listed('Excluded on purpose', coverage.get('shards_excluded', ()))}"
        f"{_listed('Not in the index', coverage.get('not_indexed', ()))}"
        f"{_listed('Folders not searched', coverage.get('passed_over', ()))}"
        f"{_listed('Notes', notes)}"
    )


def table_html(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table of texts, escaped."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def result_line(
    kind: str,
    counts: Mapping[str, Mapping[str, Mapping[str, int]]],
    coverage: Mapping[str, Any],
) -> str:
    """A result in one line, as an interpreter and a log show it: no text of an item, no path."""
    parts = [
        f"{benchmark} by {policy} "
        + ", ".join(f"{labels[label]} {label}" for label in SHOWN if labels.get(label))
        for benchmark, policies in list(counts.items())[:_MOST_BENCHMARKS]
        for policy, labels in policies.items()
    ]
    if len(counts) > _MOST_BENCHMARKS:
        parts.append(f"and {counted(len(counts) - _MOST_BENCHMARKS, 'more benchmark')}")
    parts.append("complete" if coverage.get("complete") is True else "incomplete")
    return f"<{kind}: {'; '.join(parts)}>"


def _read(coverage: Mapping[str, Any]) -> str:
    complete = coverage.get("complete") is True
    found = "Coverage: complete" if complete else "Coverage: incomplete"
    if "shards_read" in coverage:
        found += f", {coverage['shards_read']:,} of {counted(coverage['shards_expected'], 'shard')}"
    if "rows" in coverage:
        found += f", {counted(coverage['rows'], 'document')}"
    return found


def _cells(row: Iterable[str]) -> str:
    return "".join(f"<td>{escape(cell)}</td>" for cell in row)


def _listed(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    shown = [*lines[:_MOST_LISTED]]
    if len(lines) > _MOST_LISTED:
        shown.append(f"and {len(lines) - _MOST_LISTED:,} more")
    return f"<p>{title}:</p><ul>{''.join(f'<li>{escape(line)}</li>' for line in shown)}</ul>"
