"""Print results as tables for people and JSON for machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from contam.cli.terminal import PLAIN_WIDTH, emit, laid_out, page_width, plain, visible
from contam.detect.labels import SHOWN
from contam.facts import counted, size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


_LABEL_STYLES = {
    "contaminated": "bold red",
    "suspect": "yellow",
    "clean": "green",
    "not_checkable": "dim",
}
#: Heads of narrow columns, where a page has no room for the words.
_HYPHENATED = {"contaminated": "contam-\ninated", "not_checkable": "not\ncheck-\nable"}
_WIDEST = 10_000
_NAMED_FAILURES = 5
_NAMED_SKIPPED = 3
_MOST_NAME = 60
_NO_TEXTS = {"hidden", "starts with _", "lock file"}  # reasons of contam.corpus.listing
_COUNTS = {"shards_expected", "shards_read", "rows", "n_bytes"}


def label_style(label: str) -> str:
    """The colour of a label."""
    return _LABEL_STYLES.get(label, "")


def emit_json(value: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """Print one JSON document to stdout; ASCII, so that no terminal or pipe can garble it."""
    emit(json.dumps(value, indent=2) + "\n")


def emit_renderable(*renderables: RenderableType) -> None:
    """Print rich tables and texts to stdout."""
    emit(laid_out(renderables))


Counts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Benchmark -> policy -> label -> number of items."""


def verdict_table(
    counts: Counts,
    chance: Mapping[tuple[str, str], str] | None = None,
    heads: Mapping[str, str] | None = None,
) -> Table:
    """A row for each benchmark and policy, and of several benchmarks a total for each policy.

    chance  (benchmark, policy) -> what is said of flags by chance, where that was measured
    heads   label -> its heading, where that is not the usual one
    """
    from rich.text import Text

    labels_shown = ((heads or {}).get(label, label.replace("_", " ")) for label in SHOWN)
    last = ("flagged", *(() if chance is None else ("chance at most",)))
    table = new_table("benchmark", "policy", numbers=("items", *labels_shown, *last))
    total: dict[str, Counter[str]] = {}
    for policies in counts.values():
        for policy, labels in policies.items():
            total.setdefault(policy, Counter()).update(labels)
    rows = {**counts, "": total} if len(counts) > 1 else counts
    for benchmark, policies in rows.items():
        for at, (policy, labels) in enumerate(policies.items()):
            n_items = sum(labels.values())
            n_flagged = labels["contaminated"] + labels["suspect"]
            numbers = (
                Text(f"{labels[label]:,}", style=label_style(label) if labels[label] else "dim")
                for label in SHOWN
            )
            table.add_row(
                "" if at else visible(benchmark or "total"), visible(policy), f"{n_items:,}",
                *numbers, share(n_flagged, n_items),
                *(() if chance is None else (chance.get((benchmark, policy), ""),)),
            )  # fmt: skip
    return table if heads or fits(table) else verdict_table(counts, chance, _HYPHENATED)


def fits(table: Table) -> bool:
    """Whether a table can be printed without breaking words."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=_WIDEST)
    return Measurement.get(console, console.options, table).maximum <= page_width()


def new_table(*headings: str, numbers: Sequence[str] = ()) -> Table:
    """An empty table that loses no characters where it is narrow; numbers stand to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    table.collapse_padding = narrow = page_width() < PLAIN_WIDTH
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        shown = heading.replace(" ", "\n") if narrow else heading
        table.add_column(shown, justify="right", overflow="fold")
    return table


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and what is said of each, where there is something."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=11, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        if text:
            grid.add_row(name, plain(text))
    return grid


def share(part: int, whole: int) -> str:
    """A share in percent; never rounded to 0 or 100 when it is neither."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    shown = f"{percent:.1f}"
    if part and shown == "0.0":
        return "<0.1 %"
    if part < whole and shown == "100.0":
        return ">99.9 %"
    return f"{shown} %"


def coverage_lines(coverage: Mapping[str, Any]) -> Iterable[str]:
    """What of the corpus was read, in sentences."""
    if not coverage.keys() >= _COUNTS:  # of another version, or from an upload
        yield "NOT KNOWN how much was read: run.json does not say which shards were read"
        return
    expected, read = coverage["shards_expected"], coverage["shards_read"]
    yield (
        f"read {read:,} of {counted(expected, 'shard')}, {counted(coverage['rows'], 'document')}, "
        f"{size(coverage['n_bytes'])} of text"
    )
    odd = [
        f"{coverage[name]:,} {words}"
        for name, words in (
            ("n_null", "without a text"),
            ("n_empty", "empty"),
            ("n_undecodable", "with bytes that are not UTF-8"),
            ("n_moved", "read from another column than the rest of their shard"),
            ("n_elsewhere", "NOT READ, with a text in another column than the one named"),
        )
        if coverage.get(name)
    ]
    if odd:
        yield f"among them {', '.join(odd)}"
    yield from gap_lines(coverage)


def source_lines(section: Mapping[str, Any], most: int = 3) -> Iterable[str]:
    """The worst sources of a corpus; section  as run.json has it."""
    worst = [row for row in section.get("rows", ()) if row["benchmark"] is None]
    dirty = [row for row in worst if row["documents"] and row["policy"] == worst[0]["policy"]]
    told = [
        f"{_short(row['source'])} {share(row['documents'], row['rows'])} of {row['rows']:,}"
        f" ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
        for row in dirty[:most]
    ]
    if told:
        more = section["n_sources"] - len(told)
        rest = f", and {more:,} more: contam sql DIR 'from sources'" if more else ""
        yield f"worst by {', '.join(section['columns'])}: {', '.join(told)}{rest}"


def _short(source: str | None) -> str:
    """The name of a source on a line that has several."""
    if source is None:
        return "(none)"
    return plain(source if len(source) <= _MOST_NAME else f"{source[:_MOST_NAME]}...")


def gap_lines(coverage: Mapping[str, Any]) -> Iterable[str]:
    """Which shards were not searched, in sentences; none where all were."""
    if excluded := coverage.get("shards_excluded"):
        yield f"EXCLUDED on purpose {counted(len(excluded), 'shard')}: {few(excluded)}"
    if missing := coverage.get("not_indexed"):
        them = "it" if len(missing) == 1 else "them"
        yield (
            f"NOT IN THE INDEX {counted(len(missing), 'shard')}: {few(missing)}"
            f" (`contam index add` adds {them})"
        )
    if aside := coverage.get("passed_over"):
        them = "it" if len(aside) == 1 else "them"
        yield (
            f"NOT SEARCHED {counted(len(aside), 'folder')} whose names begin with a dot or _: "
            f"{few(aside)} (to read {them}, give {them} to --corpus as well)"
        )
    failed = coverage.get("shards_failed", [])
    for failure in failed[:_NAMED_FAILURES]:
        # Most reasons begin with the name already.
        reason = failure["reason"].removeprefix(failure["shard"]).removeprefix(":").lstrip(", ")
        yield plain(f"NOT READ {failure['shard']}: {reason}")
    if len(failed) > _NAMED_FAILURES:
        yield f"NOT READ {counted(len(failed) - _NAMED_FAILURES, 'more shard')}, see run.json"


def skipped_rows(inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Benchmark -> `n_skipped`, `n_rows` (of how many) and `reasons`, where rows were skipped."""
    found = {}
    for benchmark in inputs.get("benchmarks", ()):
        reasons = benchmark.get("skipped", {})
        if n_skipped := sum(reasons.values()):
            n_rows = benchmark["n_items"] + n_skipped
            numbers = {"n_skipped": n_skipped, "n_rows": n_rows, "reasons": reasons}
            found[benchmark["name"]] = numbers
    return found


def skipped_files(inputs: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """`path` and `reason` of files that are neither shard nor benchmark, likely texts first."""
    files = [*inputs.get("skipped_files", ())]
    for benchmark in inputs.get("benchmarks", ()):
        files += benchmark.get("skipped_files", ())
    return sorted(files, key=lambda file: file["reason"] in _NO_TEXTS)


def benchmark_lines(inputs: Mapping[str, Any]) -> Iterable[str]:
    """What of the benchmarks was not taken, and how they were read where that needs saying."""
    from contam.benchmark.reading import readings

    for name, rows in skipped_rows(inputs).items():
        n_skipped, n_rows, reasons = rows["n_skipped"], rows["n_rows"], rows["reasons"]
        why = ", ".join(
            reason if len(reasons) == 1 else f"{n:,} {reason}" for reason, n in reasons.items()
        )
        yield plain(f"{name}: {n_skipped:,} of {counted(n_rows, 'row')} skipped ({why})")
    if files := skipped_files(inputs):
        named = [f"{PurePath(file['path']).name} ({file['reason']})" for file in files]
        more = len(files) - _NAMED_SKIPPED
        yield plain(
            f"skipped {counted(len(files), 'file')}: {', '.join(named[:_NAMED_SKIPPED])}"
            + (f" and {more:,} more, see run.json" if more > 0 else "")
        )
    for name, read in readings(inputs.get("benchmarks", ())).items():
        said = [f"by the catalogue's entry {few(read.entries)}"] if read.entries else []
        if not read.is_usual:
            parts = [part for part in ("question", "passage") if read.fields[part]]
            said += [f"{part} from {few(read.fields[part])}" for part in parts]
        if read.unread:
            shares = [f"{field} ({text_share(of)})" for field, of in read.unread.items()]
            said.append(f"UNREAD {few(shares)}")
        if read.left_out:
            said.append(f"left out {few(read.left_out)}")
        if read.incomplete:
            said.append(f"never clean {counted(sum(read.incomplete.values()), 'item')}")
        if said:
            yield plain(f"{name}: {'; '.join(said)}")


def text_share(of: float) -> str:
    """A share of a file's text: `12.3 % of its text`."""
    return f"{share(round(10_000 * of) or int(of > 0), 10_000)} of its text"


def readings_json(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The same of every benchmark, by name, for --json."""
    from contam.benchmark.reading import readings

    found = readings(inputs.get("benchmarks", ()))
    return {name: read.to_dict() for name, read in found.items()}


def few(names: Sequence[str]) -> str:
    """The first names, and how many there are besides."""
    more = len(names) - _NAMED_FAILURES
    named = ", ".join(names[:_NAMED_FAILURES])
    return plain(f"{named} and {more:,} more" if more > 0 else named)


def at_most(n: int, lines: Sequence[str], more: str) -> list[str]:
    """The first `n` lines, and one that says how many `more` there are."""
    n_more = len(lines) - n
    return [*lines[:n], *([f"{n_more:,} {more}"] if n_more > 0 else [])]


def result_lines(run: Mapping[str, Any], n_unchecked: int = 0) -> list[str]:
    """What a result rests on, in sentences: the lines below every table and list of one.

    run          as run.json has it;  n_unchecked  items to name as not checkable
    """
    from contam.detect.result import notes_below  # after --help, which needs no Arrow

    lines = [*coverage_lines(run["coverage"]), *source_lines(run.get("sources", {}))]
    lines += benchmark_lines(run.get("inputs", {}))
    lines += map(plain, notes_below(run))
    if n_unchecked:
        lines.append(f"{counted(n_unchecked, 'item')} could not be checked")
    return lines
