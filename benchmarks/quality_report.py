"""The numbers of quality.json as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from index_figures import HEADER, POLICY, index_rows
from quality_aims import (
    ABSENT_AIM,
    LEAST_WORDS,
    false_flag_aim,
    false_flag_rank,
    recall_aim,
    recall_rank,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = dict[str, Any]


def report(answer: Record) -> str:
    """All policies, one after the other."""
    seconds = answer["seconds"]
    lines = [f"scan {seconds['scan']} s, plan {seconds['plan']} s, tables {seconds['tables']} s"]
    for policy, measured in answer["policies"].items():
        lines += ["", f"=== {policy} ({measured['fingerprint']})", ""]
        lines += _recall(measured)
        lines += ["", *_false_flags(measured)]
        lines += ["", *_items(measured)]
    for names, measured in answer.get("either", {}).items():
        rows = [
            [row["class"], f"{row['found']}/{row['n']}", share(row["found"], row["n"])]
            for row in sorted(measured["recall"], key=lambda row: recall_rank(row["class"]))
        ]
        absent = measured["absent"]
        flagged = f"{absent['flagged']}/{absent['n']}"
        rows.append(["absent, flagged", flagged, share(absent["flagged"], absent["n"])])
        lines += ["", f"=== {names}", "", *table(["class", f"found >={LEAST_WORDS}w", "%"], rows)]
    if "index" in answer:
        lines += ["", f"=== {POLICY}: the scan beside an index, % found", ""]
        lines += table(HEADER, index_rows(answer["index"]))
        left, of = answer["index"]["open"], answer["index"]["n_items"]
        lines += ["", f"left open at the cap: {left:,} of {of:,} items"]
    return "\n".join(lines)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned columns; the first `left` to the left, the others to the right."""
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if c < left else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


def share(part: int, whole: int) -> str:
    """A percentage with one decimal, or `-` of nothing; never rounded up to 100."""
    if not whole:
        return "-"
    return f"{int(1000 * part / whole + 1e-9) / 10:.1f}"


def _recall(measured: Record) -> list[str]:
    rows = []
    for row in sorted(
        measured["recall"], key=lambda row: (*recall_rank(row["class"]), row["tier"])
    ):
        group, aim = recall_aim(row["class"])
        found, n = row["found"], row["n"]
        all_found = found + row["found_short"]
        rows.append(
            [
                row["class"],
                row["tier"],
                group,
                f"{found}/{n}",
                share(found, n),
                "-" if aim is None else f"{100 * aim:.1f}",
                _verdict(found, n, aim),
                share(row["contaminated"], n),
                f"{row['found_short']}/{row['n_short']}" if row["n_short"] else "-",
                share(row["kind_ok"], all_found),
                "/".join(str(row[f"kind_{kind}"]) for kind in ("exact", "near", "partial")),
                share(row["with_answer"], all_found),
                share(row["on_span"], row["spanned"]),
            ]
        )
    header = (
        f"class|tier|group|found >={LEAST_WORDS}w|%|aim|?|cont.%|shorter|kind ok%|ex/near/part"
        "|+answer%|span ok%"
    ).split("|")
    places = [
        [row["place"], f"{row['found']}/{row['n']}", share(row["found"], row["n"])]
        for row in measured["by_place"]
    ]
    where = [
        "",
        "verbatim classes by place in the document",
        *table(["place", "found", "%"], places),
    ]
    return table(header, rows, left=3) + where


def _verdict(found: int, n: int, aim: float | None) -> str:
    if aim is None or not n:
        return ""
    return "OK" if found / n >= aim else "below"


def _false_flags(measured: Record) -> list[str]:
    rows = []
    ranked = sorted(
        measured["false_flags"], key=lambda row: (*false_flag_rank(row["class"]), row["tier"])
    )
    for row in ranked:
        group, most = false_flag_aim(row["class"])
        n = row["n"]
        rows.append(
            [
                row["class"],
                row["tier"],
                group,
                str(n),
                str(row["contaminated"]),
                share(row["contaminated"], n),
                f"< {100 * most:.0f}",
                "OK" if row["contaminated"] / n <= most else "ABOVE",
                str(row["flagged"]),
                share(row["flagged"], n),
            ]
        )
    absent = measured["absent"]
    n = absent["n"]
    rows.append(
        [
            "absent (items)",
            "core",
            "nothing there",
            str(n),
            str(absent["contaminated"]),
            share(absent["contaminated"], n),
            f"< {100 * ABSENT_AIM:.1f}",
            "OK" if n and absent["flagged"] / n < ABSENT_AIM else "ABOVE",
            str(absent["flagged"]),
            f"{100 * absent['flagged'] / n:.2f}" if n else "-",
        ]
    )
    header = [
        "pairs that do not contaminate",
        *("tier", "group", "n", "cont.", "%", "aim", "?", "flagged", "%"),
    ]
    return table(header, rows, left=3)


def _items(measured: Record) -> list[str]:
    rows = [
        [
            row["status"],
            str(row["n"]),
            f"{row['contaminated']} ({row['contaminated_long']})",
            f"{row['suspect']} ({row['suspect_long']})",
            str(row["clean"]),
            str(row["not_checkable"]),
        ]
        for row in measured["by_status"]
    ]
    header = f"item status|n|contaminated (>={LEAST_WORDS}w)|suspect|clean|not checkable".split("|")
    unlisted = [
        f"pairs without any label called {row['label']}: {row['n']}"
        f" ({row['n_long']} of items with {LEAST_WORDS} words or more;"
        f" {row['items']} items, {row['items_long']} such)"
        for row in measured["unlisted"]
    ]
    worst = [
        [row["benchmark"], str(row["contaminated"]), str(row["suspect"]), str(row["items"])]
        for row in measured["unlisted_by_benchmark"][:8]
    ]
    columns = ("of benchmark", "contaminated", "suspect", "items")
    return [*table(header, rows), "", *unlisted, *table(columns, worst)]
