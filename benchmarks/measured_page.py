"""Write docs/measured.md, and the few figures the README quotes, from what was measured.

Usage: python benchmarks/measured_page.py --quality build/quality/quality.json
       --bench build/bench/bench.json --date 2026-01-31

Both files are what quality.py and bench.py write. The page holds no figure from anywhere else.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any, Final

from index_figures import MOST_BEHIND, behind, index_rows
from quality_aims import ABSENT_AIM, QUESTION_GONE, RECALL_AIMS, false_flag_aim, false_flag_rank

ROOT: Final = Path(__file__).resolve().parent.parent
GROUPS: Final = {
    "verbatim": "verbatim, with answer, quiz layout, data set dump, case, punctuation, width, ...",
    "markup": "markup, escapes, broken white space, line-break hyphens, look-alike letters",
    "in part": "truncated, split over two places, sentences reordered (half the question left)",
    "edited": "one word in ten changed; numbers or names changed",
    "edited more": "one word in six changed",
    "reworded": "synonyms, renamed or re-commented code, natural rephrasings and translations",
}
NEGATIVES: Final = {
    "not the question": "only the passage, the answer, the choices or a generic stem is there",
    "another question": "another question from the same template, passage or topic",
}
_MARKS: Final = ("<!-- measured: begin -->\n", "<!-- measured: end -->\n")

Record = dict[str, Any]


def _share(part: int, whole: int) -> str:
    if not whole:
        return "-"
    digits = 1 if 0 < part < whole else 0
    return f"{100 * part / whole:.{digits}f} %"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _recall_of(row: Record) -> tuple[str, float | None]:
    name = row["class"]
    return RECALL_AIMS[name.removesuffix(QUESTION_GONE).rpartition(":")[2]]


def groups_table(policies: Record) -> str:
    """Share found per group of transformations; share called contaminated per group of others."""
    rows = []
    for group, words in GROUPS.items():
        cells = []
        for policy in policies.values():
            mine = [
                row
                for row in policy["recall"]
                if _recall_of(row)[0] == group and not row["class"].endswith(QUESTION_GONE)
            ]
            cells.append(_share(sum(r["found"] for r in mine), sum(r["n"] for r in mine)))
        rows.append([f"found: {words}", *cells])
    for group, words in NEGATIVES.items():
        cells = []
        for policy in policies.values():
            mine = [r for r in policy["false_flags"] if false_flag_aim(r["class"])[0] == group]
            cells.append(_share(sum(r["contaminated"] for r in mine), sum(r["n"] for r in mine)))
        rows.append([f"wrongly contaminated: {words}", *cells])
    cells = [
        _share(policy["absent"]["flagged"], policy["absent"]["n"]) for policy in policies.values()
    ]
    rows.append(["wrongly flagged: items found in no document", *cells])
    return _table(["", *(f"`{policy}`" for policy in policies)], rows)


def recall_table(policies: Record) -> str:
    """Share found per transformation."""
    found: dict[tuple[str, str], dict[str, Record]] = {}
    for policy, one in policies.items():
        for row in one["recall"]:
            found.setdefault((row["class"], row["tier"]), {})[policy] = row
    order = list(GROUPS)
    rows = []
    for (name, tier), by_policy in sorted(
        found.items(),
        key=lambda match: (order.index(_recall_of({"class": match[0][0]})[0]), match[0]),
    ):
        first = next(iter(by_policy.values()))
        if not first["n"]:
            continue
        aim = _recall_of(first)[1]
        wanted = "-" if aim is None or name.endswith(QUESTION_GONE) else f"{100 * aim:g} %"
        cells = [_share(by_policy[p]["found"], by_policy[p]["n"]) for p in policies]
        rows.append([f"`{name}`", tier, f"{first['n']:,}", wanted, *cells])
    return _table(["class", "tier", "items", "aim", *(f"`{p}`" for p in policies)], rows)


def false_table(policies: Record) -> str:
    """Share called contaminated (and flagged at all) per class of pairs that do not contaminate."""
    found: dict[tuple[str, str], dict[str, Record]] = {}
    for policy, one in policies.items():
        for row in one["false_flags"]:
            found.setdefault((row["class"], row["tier"]), {})[policy] = row
    rows = []
    for (name, tier), by_policy in sorted(
        found.items(), key=lambda match: (false_flag_rank(match[0][0]), match[0][1])
    ):
        cells = [
            f"{_share(row['contaminated'], row['n'])} ({_share(row['flagged'], row['n'])})"
            for row in (by_policy[policy] for policy in policies)
        ]
        aim = f"< {100 * false_flag_aim(name)[1]:g} %"
        rows.append([f"`{name}`", tier, f"{next(iter(by_policy.values()))['n']:,}", aim, *cells])
    absent = [
        f"{_share(policy['absent']['contaminated'], policy['absent']['n'])}"
        f" ({_share(policy['absent']['flagged'], policy['absent']['n'])})"
        for policy in policies.values()
    ]
    n_absent = next(iter(policies.values()))["absent"]["n"]
    rows.append(["absent items", "core", f"{n_absent:,}", f"(< {100 * ABSENT_AIM:g} %)", *absent])
    return _table(["class", "tier", "pairs", "aim", *(f"`{p}`" for p in policies)], rows)


def index_section(index: Record) -> str:
    """What an index finds beside the scan, where they differ, and what it costs."""
    differing = {row["class"] for row in index["recall"] if len(set(row["found"])) > 1}
    classes = {row["class"] for row in index["recall"]}
    rows = [
        [f"`{row[0]}`" if row[0] in classes else row[0], *row[1:]]
        for row in index_rows(index)
        if row[0] in differing or row[0] not in classes
    ]
    by_part = index["bytes"]
    text = index["n_text_bytes"]
    parts = ", ".join(f"{name} {n_bytes / text:.3f}" for name, n_bytes in by_part.items())
    late = ", ".join(f"`{name}`" for name in behind(index)) or "none"
    head = ["class", "items", "scan", "n-grams alone", "n-grams and MinHash"]
    return f"""Share of items found by `contam`, %, in the {len(differing)} classes where the three differ; in the other {len(classes) - len(differing)} an index finds what the scan finds.
Bytes per byte of text: {parts}.
Classes more than {100 * MOST_BEHIND:g} points below the scan with MinHash: {late}. Questions of fewer than 8 words are `not_checkable` from an index and not counted here.

{_table(head, rows)}"""


def unlisted_lines(policies: Record) -> str:
    """What is called contaminated without any label that says so."""
    lines = []
    for policy, one in policies.items():
        counts = {row["label"]: row for row in one["unlisted"]}
        parts = [
            f"{row['n']:,} pairs of {row['items']:,} items {label}" for label, row in counts.items()
        ]
        lines.append(f"- `{policy}`: {', '.join(parts) or 'none'}\n")
    return "".join(lines)


def speed_table(bench: Record) -> str:
    """CPU, speed and memory of every measured line."""
    rows = [
        [
            row["what"],
            f"{row['items']:,}" if "items" in row else "",
            str(row["shards"]),
            str(row.get("workers", "")),
            f"{row['bytes'] / 1e6:,.0f}",
            f"{row['cpu']:.2f}",
            f"{row['mb_per_cpu']:,.0f}",
            f"{row['times_read']:.1f}",
            f"{row['peak_mb']:,.0f}",
        ]
        for row in bench["rows"]
    ]
    head = ["what", "items", "shards", "workers", "MB of text", "CPU s", "MB per CPU s"]
    return _table([*head, "times the read", "peak MB"], rows)


def page(quality: Record, bench: Record, date: str) -> str:
    """docs/measured.md in full."""
    policies = quality["policies"]
    marks = ", ".join(f"`{p}` {policy['fingerprint']}" for p, policy in policies.items())
    machine = bench["machine"]
    versions = quality["versions"]
    return f"""# Measured

Measured on {date}. `benchmarks/measured_page.py` writes this page from the output of the two commands below.
Policies (fingerprints): {marks}.
Python {versions["python"]}, numpy {versions["numpy"]}, numba {versions["numba"]}, pyarrow {versions["pyarrow"]}.

## Accuracy

    make quality        # benchmarks/quality.py --data DIR --out build/quality

The labelled pack holds 36,941 real benchmark items, 42,346 real documents and 24,997 labelled pairs of the two: copies planted in known ways, copies
found in the wild, and pairs that only look alike. It is not part of this repository, because it holds benchmark text. *Found* means that the verdict is `contaminated`
or `suspect`, and evidence of the question names the labelled document. Only items of 8 words or more count. A policy tuned on these labels does better here than elsewhere.

### In short

{groups_table(policies)}
### Found, by what was done to the copy

Names are those of the pack. `{QUESTION_GONE.removeprefix(":")}`: less than half of the question survived the cut, so there is no aim. Tier `hard`: the label is certain, but the case is difficult.

{recall_table(policies)}
### Flagged, where the question is not there

Share labelled `contaminated`, and in brackets `contaminated` or `suspect`. A pair is judged as if its document were the whole corpus.

{false_table(policies)}
Flagged pairs without a label. The pack lists every pair that shares much wording, so these are false flags, most of them in benchmarks made from templates:

{unlisted_lines(policies)}
### From a `standard` index

{index_section(quality["index"])}
## Speed and memory

    make bench          # benchmarks/bench.py --corpus PATH --items PATH

{machine["cpu"]}, {machine["cores"]} cores, Python {machine["python"]}; policies {", ".join(f"`{p}`" for p in bench["policies"])} in one pass.
Every line is a process of its own, with compiled kernels and files in the page cache.
CPU seconds cover reading, tokenising and matching. Building the table of items and writing the result take extra time, which does not grow with the corpus.
Other work on the machine can only make the figures worse.

{speed_table(bench)}"""


def quoted(quality: Record, bench: Record, date: str) -> str:
    """The figures in the README."""
    whole = next(row for row in bench["rows"] if row["what"] == "whole scan")
    speed = (
        f"\n{date}, {bench['machine']['cores']} cores: a scan for {whole['items']:,} items under"
        f" {len(bench['policies'])} policies reads {whole['mb_per_cpu']:,.0f} MB of text per"
        f" CPU-second, {whole['times_read']:.1f} times the cost of a bare read, with"
        f" {whole['peak_mb'] / 1000:.1f} GB of memory.\n"
    )
    # Beside it a policy of its own purpose would need the explanation that its guide has.
    policies = {name: one for name, one in quality["policies"].items() if name != "contam-meaning"}
    return groups_table(policies) + speed


def main() -> None:
    """Read both files, write both places."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quality", type=Path, required=True)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--date", required=True, help="when both were measured")
    asked = parser.parse_args()
    quality = json.loads(asked.quality.read_text(encoding="utf-8"))
    bench = json.loads(asked.bench.read_text(encoding="utf-8"))
    (ROOT / "docs" / "measured.md").write_text(page(quality, bench, asked.date), encoding="utf-8")
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    between = re.compile(f"{_MARKS[0]}.*{_MARKS[1]}", re.DOTALL)
    new = _MARKS[0] + quoted(quality, bench, asked.date) + _MARKS[1]
    readme.write_text(between.sub(lambda _: new, text), encoding="utf-8")


if __name__ == "__main__":
    main()
