"""Write the tables of docs/measured.md and the README, from what was measured.

Usage: python benchmarks/measured_page.py --quality build/quality/quality.json
       --bench build/bench/bench.json --date 2026-01-31

Both files are what quality.py and bench.py write. The pages hold no figure from anywhere else.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from index_figures import HEADER, index_rows
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
BESIDE: Final = {
    "contam": "`contam`",
    "lmeval-13": "lm-evaluation-harness: 13 words in a row",
    "openr1-8": "Open-R1, s1: 8 words in a row",
}
BESIDE_FOUND: Final = {
    "verbatim": "verbatim",
    "edited": "one word in ten, numbers or names changed",
    "edited more": "one word in six changed",
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


def _found(policy: Record, group: str) -> str:
    mine = [
        row
        for row in policy["recall"]
        if _recall_of(row)[0] == group and not row["class"].endswith(QUESTION_GONE)
    ]
    return _share(sum(row["found"] for row in mine), sum(row["n"] for row in mine))


def _wrong(policy: Record, group: str) -> str:
    mine = [row for row in policy["false_flags"] if false_flag_aim(row["class"])[0] == group]
    return _share(sum(row["contaminated"] for row in mine), sum(row["n"] for row in mine))


def groups_table(policies: Record) -> str:
    """Share found per group of transformations; share called contaminated per group of others."""
    rows = []
    for group, words in GROUPS.items():
        rows.append([f"found: {words}", *(_found(policy, group) for policy in policies.values())])
    for group, words in NEGATIVES.items():
        cells = [_wrong(policy, group) for policy in policies.values()]
        rows.append([f"wrongly contaminated: {words}", *cells])
    cells = [
        _share(policy["absent"]["flagged"], policy["absent"]["n"]) for policy in policies.values()
    ]
    rows.append(["wrongly flagged: items found in no document", *cells])
    return _table(["", *(f"`{policy}`" for policy in policies)], rows)


def _class(name: str, tier: str) -> str:
    return f"`{name}`" if tier == "core" else f"`{name}` ({tier})"


def _named(names: list[str]) -> str:
    return ", ".join(names) or "none"


def recall_table(policies: Record) -> str:
    """Share found per transformation, and those of which the first policy finds all."""
    found: dict[tuple[str, str], dict[str, Record]] = {}
    for policy, one in policies.items():
        for row in one["recall"]:
            found.setdefault((row["class"], row["tier"]), {})[policy] = row
    order = list(GROUPS)
    rows, whole = [], []
    for (name, tier), by_policy in sorted(
        found.items(),
        key=lambda match: (order.index(_recall_of({"class": match[0][0]})[0]), match[0]),
    ):
        first = next(iter(by_policy.values()))
        if not first["n"]:
            continue
        if first["found"] == first["n"]:
            whole.append(_class(name, tier))
            continue
        aim = _recall_of(first)[1]
        wanted = "-" if aim is None or name.endswith(QUESTION_GONE) else f"{100 * aim:g} %"
        cells = [_share(by_policy[p]["found"], by_policy[p]["n"]) for p in policies]
        rows.append([_class(name, tier), f"{first['n']:,}", wanted, *cells])
    table = _table(["class", "items", "aim", *(f"`{p}`" for p in policies)], rows)
    return f"{table}\n`{next(iter(policies))}` finds all of {_named(whole)}.\n"


def false_table(policies: Record) -> str:
    """Share called contaminated (and flagged) per class of pairs that are no contamination."""
    found: dict[tuple[str, str], dict[str, Record]] = {}
    for policy, one in policies.items():
        for row in one["false_flags"]:
            found.setdefault((row["class"], row["tier"]), {})[policy] = row
    rows, none = [], []
    for (name, tier), by_policy in sorted(
        found.items(), key=lambda match: (false_flag_rank(match[0][0]), match[0][1])
    ):
        if not next(iter(by_policy.values()))["flagged"]:
            none.append(_class(name, tier))
            continue
        cells = [
            f"{_share(row['contaminated'], row['n'])} ({_share(row['flagged'], row['n'])})"
            for row in (by_policy[policy] for policy in policies)
        ]
        aim = f"< {100 * false_flag_aim(name)[1]:g} %"
        n = next(iter(by_policy.values()))["n"]
        rows.append([_class(name, tier), f"{n:,}", aim, *cells])
    absent = [
        f"{_share(policy['absent']['contaminated'], policy['absent']['n'])}"
        f" ({_share(policy['absent']['flagged'], policy['absent']['n'])})"
        for policy in policies.values()
    ]
    n_absent = next(iter(policies.values()))["absent"]["n"]
    rows.append(["absent items", f"{n_absent:,}", f"(< {100 * ABSENT_AIM:g} %)", *absent])
    table = _table(["class", "pairs", "aim", *(f"`{p}`" for p in policies)], rows)
    return f"{table}\n`{next(iter(policies))}` flags none of {_named(none)}.\n"


def index_section(index: Record) -> str:
    """What an index finds beside the scan, where they differ, and what it costs."""
    differing = {row["class"] for row in index["recall"] if len(set(row["found"])) > 1}
    classes = {row["class"] for row in index["recall"]}
    rows = [
        [f"`{row[0]}`" if row[0] in classes else row[0], *row[1:]]
        for row in index_rows(index)
        if row[0] in differing or row[0] not in classes
    ]
    return f"""Items found by `contam`, %, in the {len(differing)} classes that differ ({len(classes) - len(differing)} do not). {index["open"]:,} of {index["n_items"]:,} items are left open by an index for wording in too many documents.

{_table([*HEADER], rows)}"""


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
    """The measured part of docs/measured.md."""
    policies = quality["policies"]
    marks = ", ".join(f"`{p}` {policy['fingerprint']}" for p, policy in policies.items())
    machine = bench["machine"]
    versions = quality["versions"]
    return f"""Measured on {date} with Python {versions["python"]}, numpy {versions["numpy"]}, numba {versions["numba"]}, pyarrow {versions["pyarrow"]}; policies (fingerprints) {marks}.
`benchmarks/measured_page.py` writes the tables from the output of the two commands.

## Accuracy

    make quality        # benchmarks/quality.py --data DIR --out build/quality

The labelled pack has 36,941 real items, 42,346 real documents and 24,997 labelled pairs of them: planted copies, copies found in the wild, and pairs that only look alike.
It holds benchmark text, so it is not in this repository. *Found*: the verdict is `contaminated` or `suspect`, and evidence of the question names the labelled document. Only items of
8 words or more count. A policy tuned on these labels does better here than elsewhere.

{groups_table(policies)}
### Found, by what was done to the copy

`{QUESTION_GONE.removeprefix(":")}`: less than half of the question is left. `hard`: the label is certain, the case difficult.

{recall_table(policies)}
### Flagged, where the question is not there

Share `contaminated`, and in brackets also `suspect`. A pair is judged as if its document were the whole corpus.

{false_table(policies)}
The pack lists every pair that shares much wording, so flagged pairs without a label are false flags, most of them in benchmarks made from templates:

{unlisted_lines(policies)}
### From an index

{index_section(quality["index"])}
## Speed and memory

    make bench          # benchmarks/bench.py --corpus PATH --items PATH

{machine["cpu"]}, {machine["cores"]} cores, Python {machine["python"]}; policies {", ".join(f"`{p}`" for p in bench["policies"])} in one pass.
Every line is a process of its own, with compiled kernels and files in the page cache. CPU seconds cover reading, tokenising and matching, not the table of items and the result, whose time does not grow with the corpus.

{speed_table(bench)}"""


def readme(quality: Record, bench: Record) -> str:
    """The rules of other tools beside ours, and what a scan costs, for the README."""
    rows = [
        [
            name,
            *(_found(quality["policies"][policy], group) for group in BESIDE_FOUND),
            _wrong(quality["policies"][policy], "another question"),
        ]
        for policy, name in BESIDE.items()
    ]
    speed = next(row for row in bench["rows"] if row["what"] == "whole scan")
    head = ["rule", *(f"found: {words}" for words in BESIDE_FOUND.values())]
    return f"""{_table([*head, "wrongly found: another question of the same template, passage or topic"], rows)}
A scan for {speed["items"]:,} items reads {speed["mb_per_cpu"]:,.0f} MB of text per CPU-second.
"""


def main() -> None:
    """Read both files, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quality", type=Path, required=True)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--date", required=True, help="when both were measured")
    asked = parser.parse_args()
    quality = json.loads(asked.quality.read_text(encoding="utf-8"))
    bench = json.loads(asked.bench.read_text(encoding="utf-8"))
    _put("docs/measured.md", page(quality, bench, asked.date))
    _put("README.md", readme(quality, bench))


def _put(name: str, new: str) -> None:
    path = ROOT / name
    before, _, rest = path.read_text(encoding="utf-8").partition(_MARKS[0])
    after = rest.partition(_MARKS[1])[2]
    path.write_text(before + _MARKS[0] + new + _MARKS[1] + after, encoding="utf-8")


if __name__ == "__main__":
    main()
