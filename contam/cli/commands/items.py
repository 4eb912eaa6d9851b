"""`contam benchmarks`, `items` and `policies`: what is known by name, and how it is read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from contam.cli import options, render
from contam.cli.options import argument, flag, option
from contam.cli.results import refuse_beside, refuse_inside
from contam.cli.terminal import plain, talk
from contam.errors import IncompleteError, UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from contam.benchmark.catalogue import Entry
    from contam.benchmark.items import BenchItem, Benchmark
    from contam.detect.policies.policy_spec import PolicySpec


_SHOWN = 5
_MOST_CHARACTERS = 240


_MAKING = frozenset(("from_logs", "out", "columns", "overwrite"))


@options.shared
def items(
    benchmark: list[str] | None = argument(
        "[BENCHMARK...]", "Benchmark files, folders or globs.", None
    ),
    *,
    context: typer.Context,
    read: options.BenchmarkOptions,
    strict: bool = flag("--strict", "Exit with 4 if text is unread or an item is incomplete."),
    as_json: bool = options.JSON,
    from_logs: list[str] | None = option(
        "PATH...",
        "Make a benchmark of the items in logs: files, folders or globs, as in `contam logs`.",
    ),
    out: Path | None = option("FILE", "With --from-logs: the benchmark, as JSON lines."),
    columns: list[str] | None = options.COLUMNS,
    overwrite: bool = options.OVERWRITE,
) -> int:
    """Show how benchmarks are read, before any scan: fields, what is unread, and some items.

    With --from-logs, make a benchmark from the items in logs, for `contam scan --benchmark FILE`.
    An item in several logs is written once. Tables of scores work as well if they have a column
    for the question.

    Examples:
        contam items gsm8k.jsonl --map question=prompt,answer=solution
        contam items --from-logs runs --out items.jsonl
    """
    if from_logs:
        refuse_beside(context, _MAKING, "--from-logs", "see `contam items --help`")
    elif out or columns or overwrite:
        raise UsageError(
            "--out, --columns and --overwrite need --from-logs", hint="see `contam items --help`"
        )
    if from_logs:
        if out is None:
            raise UsageError("--from-logs needs --out", hint="name the file to write")
        _make(from_logs, out, columns, overwrite=overwrite)
        return 0
    if not benchmark:
        raise UsageError("Missing argument 'BENCHMARK...'", hint="name files, or give --from-logs")
    from contam.benchmark.read_files import read_benchmarks
    from contam.benchmark.reading import about_benchmark, how_read

    found = read_benchmarks(benchmark, **read.arguments())
    records = {one.name: about_benchmark(one) for one in found}
    if as_json:
        render.emit_json({"benchmarks": [_tree(one, records[one.name]) for one in found]})
    else:
        for one in found:
            _print(one, records[one.name])
    readings = map(how_read, records.values())
    unsure = any(read.unread or read.incomplete for read in readings)
    return IncompleteError.exit_code if strict and unsure else 0


def _some(items: Sequence[BenchItem]) -> Iterator[BenchItem]:
    """Five of the items, the first and the last among them."""
    n = min(_SHOWN, len(items))
    for at in range(n):
        yield items[at * (len(items) - 1) // max(n - 1, 1)]


def _counts(benchmark: Benchmark) -> dict[str, Any]:
    """How many items there are, by split and by the parts they have."""
    from collections import Counter

    from contam.benchmark.items import PARTS

    splits: Counter[str] = Counter()
    parts = dict.fromkeys(PARTS, 0)
    for item in benchmark.items:
        splits[item.split] += 1
        for part, text in zip(PARTS, item.part_texts(), strict=True):
            parts[part] += bool(text)
    return {"splits": dict(splits), "parts": parts}


def _tree(benchmark: Benchmark, record: Mapping[str, Any]) -> dict[str, Any]:
    """All that is known of one benchmark, for --json."""
    from dataclasses import asdict

    from contam.benchmark.reading import how_read

    rows = [asdict(row) for row in benchmark.skipped]
    items = [asdict(item) for item in _some(benchmark.items)]
    return {
        **record,
        **_counts(benchmark),
        **how_read(record).to_dict(),
        "skipped_rows": rows,
        "items": items,
    }


def _print(benchmark: Benchmark, record: Mapping[str, Any]) -> None:
    from rich.padding import Padding

    from contam.benchmark.items import PARTS
    from contam.benchmark.reading import how_read

    read, counts, n_items = how_read(record), _counts(benchmark), record["n_items"]
    rows = [("entry", ", ".join(read.entries))] if read.entries else []
    if len(counts["splits"]) > 1:
        named = [f"{name or 'without a name'} {n:,}" for name, n in counts["splits"].items()]
        rows.append(("splits", ", ".join(named)))
    for part in PARTS:
        if names := read.fields[part]:
            n = counts["parts"][part]
            of_all = "" if n == n_items else f" (in {n:,} of {counted(n_items, 'item')})"
            rows.append((part, ", ".join(names) + of_all))
    rows += [("UNREAD", f"{name}: {render.text_share(of)}") for name, of in read.unread.items()]
    rows += [("left out", ", ".join(read.left_out))] if read.left_out else []
    rows += [("never clean", f"{counted(n, 'item')}: {why}") for why, n in read.incomplete.items()]
    reasons = record.get("skipped", {})
    rows += [("skipped", f"{counted(n, 'row')}: {why}") for why, n in reasons.items()]
    files = record.get("skipped_files", ())
    rows += [("skipped", f"{file['path']}: {file['reason']}") for file in files]
    if record["duplicates"]:
        rows.append(("equal", f"{counted(len(record['duplicates']), 'group')} of items"))
    n_rows = counted(n_items + sum(reasons.values()), "row")
    n_files = counted(len(record["sources"]), "file")
    title = f"{benchmark.name}: {counted(n_items, 'item')} of {n_rows} in {n_files}"
    shown: list[RenderableType] = [plain(title), Padding(render.facts(rows), (0, 0, 0, 2))]
    for item in _some(benchmark.items):
        of = (item.passage, item.question, " | ".join(item.choices), item.answer)
        texts = [(part, _shortened(text)) for part, text in zip(PARTS, of, strict=True) if text]
        shown += ["", plain(item.item_id), Padding(render.facts(texts), (0, 0, 0, 2))]
    render.emit_renderable(*shown, "")


def _shortened(text: str) -> str:
    """The beginning of a part."""
    more = len(text) - _MOST_CHARACTERS
    return text if more <= 0 else f"{text[:_MOST_CHARACTERS]} ... {counted(more, 'more character')}"


def _make(
    from_logs: Sequence[str], out: Path, columns: list[str] | None, *, overwrite: bool
) -> None:
    """Write a benchmark of the items in logs."""
    from contam.rescore.logs.read import benchmark_of, read_logs, write_items

    refuse_inside(out)
    found = benchmark_of(read_logs(from_logs, columns=options.mapping_of(columns)))
    write_items(found.rows, out, overwrite=overwrite)
    for path, n_items in found.without:
        talk(f"note: {plain(path)}: {counted(n_items, 'item')} without a question of its own")
    names = dict.fromkeys(str(row.get("benchmark", "")) for row in found.rows)
    benchmarks = [name or "a benchmark without a name" for name in names]
    render.emit_renderable(
        plain(
            f"{counted(len(found.rows), 'item')} of {', '.join(benchmarks)}; "
            f"{found.n_again:,} more times in other logs"
        ),
        plain(f"benchmark  {out}"),
    )


def benchmarks(
    name: str | None = argument("[NAME]", "A benchmark, or a word to search for.", None),
    as_json: bool = options.JSON,
) -> None:
    """List the benchmarks that `--benchmark` takes by name, search them, or show one.

    Examples:
        contam benchmarks
        contam benchmarks gsm8k
    """
    from contam.benchmark.catalogue import close_to, entries, find, search

    entry = find(name) if name else None
    found = [entry] if entry else search(name) if name else list(entries().values())
    if not found:
        close = close_to(name or "")
        raise UsageError(
            f"no benchmark is called {name!r}, and none is about it",
            hint=f"nearly: {', '.join(close)}" if close else "`contam benchmarks` lists all",
        )
    if as_json:
        render.emit_json([{**asdict(one), "columns": one.mapping} for one in found])
    elif entry:
        _describe_benchmark(entry)
    else:
        _list_benchmarks(found)


def _list_benchmarks(found: list[Entry]) -> None:
    table = render.new_table("name", "data set", "splits", "released", "license", "")
    table.columns[0].no_wrap = True
    for entry in found:
        table.add_row(
            entry.name,
            entry.dataset,
            render.few(entry.splits),
            entry.released,
            entry.license,
            "gated" if entry.gated else "",
        )
    n = counted(len(found), "benchmark")
    render.emit_renderable(table, f"\n{n}; `contam benchmarks NAME` shows one in full")


def _describe_benchmark(entry: Entry) -> None:
    rows = {
        "name": entry.name,
        "also": ", ".join(entry.aliases),
        "data set": f"{entry.dataset}, branch {entry.revision}" + ", gated" * entry.gated,
        "configurations": ", ".join(entry.configurations),
        "splits": ", ".join(entry.splits),
        "files": ", ".join(entry.files),
        **entry.mapping,
        "released": entry.released or "not known",
        "license": entry.license or "not known",
        "canary": entry.canary,
        "lm-eval tasks": ", ".join(entry.tasks),
        "fields from": entry.source,
        "read": entry.seen or "not on real rows",
    }
    render.emit_renderable(render.facts(rows.items()))


_CONFIDENCE = {
    "source": "from its source code",
    "paper": "from its paper",
    "secondary": "second-hand",
}


def policies(
    name: str | None = argument(
        "[NAME]", "A policy, a preset (NAME:PRESET) or a policy file.", None
    ),
    as_json: bool = options.JSON,
) -> None:
    """List the policies, or describe one in full.

    Examples:
        contam policies
        contam policies gpt3-test
    """
    from contam.detect.policies.policy import get_policy, list_policies

    if name is not None:
        spec = get_policy(name).spec
        if as_json:
            render.emit_json(_policy_tree(spec))
        else:
            _describe(spec)
    elif as_json:
        render.emit_json([_policy_tree(spec) for spec in list_policies(optional=True)])
    else:
        table = render.new_table("policy", "unit", "flags", "known", "what it is")
        table.columns[0].no_wrap = True
        for spec in list_policies(optional=True):
            table.add_row(spec.id, spec.unit, _flags(spec), _known(spec), spec.title)
        render.emit_renderable(table, "\n`contam policies NAME` describes one in full")


def _policy_tree(spec: PolicySpec) -> dict[str, Any]:
    return {**spec.to_dict(), "fingerprint": spec.fingerprint()}


def _describe(spec: PolicySpec) -> None:
    rows = {
        "policy": f"{spec.id}, version {spec.version}, fingerprint {spec.fingerprint()}",
        "title": spec.title,
        "": spec.description,
        "known": _known(spec),
        "source": spec.source,
        "unit": spec.unit,
        "n": f"{spec.n} ({spec.aggregation}, {spec.scope})",
        "parts": ", ".join(spec.parts),
        "flags": _flags(spec),
        "counts": spec.count_rule,
        "too short": spec.too_short,
        "parameters": ", ".join(f"{name} = {value}" for name, value in spec.parameters),
        "constants": ", ".join(f"{name} = {value}" for name, value in spec.constants),
        "presets": ", ".join(f"{spec.base}:{preset}" for preset in spec.presets),
    }
    render.emit_renderable(render.facts(rows.items()))


def _flags(spec: PolicySpec) -> str:
    steps = (
        f"{label} {'from' if spec.comparison == 'at least' else 'above'} {score:g}"
        for score, label in reversed(spec.thresholds)
    )
    return ", ".join(steps)


def _known(spec: PolicySpec) -> str:
    from contam.detect.policies.policy import get_policy

    ours = get_policy(spec.base).traits.ours
    known = "ours" if ours else _CONFIDENCE[spec.confidence]
    return f"{known}, approximate" if spec.approximate else known
