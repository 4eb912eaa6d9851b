"""`contam dupes`: near-duplicate items between benchmarks and splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from contam.cli import options

if TYPE_CHECKING:
    from contam.benchmark.items import BenchItem
    from contam.detect.dupes import Dupes

SPREAD_OPTIONS = ("--benchmark", "--map")
EXIT_FLAGGED = 3
_SHOWN = 50


def dupes(
    benchmark: Annotated[
        list[str],
        typer.Option("--benchmark", metavar="PATH...", help="Benchmark files, folders or globs."),
    ],
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold", help="Least share of word pairs that two items have in common, 0 to 1."
        ),
    ] = 0.5,
    within: Annotated[
        bool, typer.Option("--within", help="Also compare the items of one split with each other.")
    ] = False,
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="PART=FIELD...", help="Which field is which part."),
    ] = None,
    fail_on_flagged: Annotated[
        bool, typer.Option("--fail-on-flagged", help="Exit with 3 if any are found.")
    ] = False,
    as_json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Find items that are nearly the same in another benchmark or split."""
    from contam.benchmark.mapping import parse_mapping
    from contam.cli import render
    from contam.detect.dupes import find_dupes

    found = find_dupes(
        benchmark,
        threshold=threshold,
        within=within,
        mapping=parse_mapping(mapping) if mapping else None,
    )
    if as_json:
        render.emit_json(_tree(found))
    else:
        _show(found)
    return EXIT_FLAGGED if fail_on_flagged and found.pairs else 0


def _name(item: BenchItem) -> dict[str, Any]:
    return {"benchmark": item.benchmark, "split": item.split, "item_id": item.item_id}


def _tree(found: Dupes) -> dict[str, Any]:
    return {
        "n_items": len(found.items),
        "threshold": found.threshold,
        "bands": found.bands,
        "rows": found.rows,
        "pairs": [
            {
                "one": _name(found.items[pair.one]),
                "other": _name(found.items[pair.other]),
                "similarity": pair.similarity,
                "parts": dict(pair.parts),
            }
            for pair in found.pairs
        ],
        "groups": [[_name(found.items[item]) for item in group] for group in found.groups],
    }


def _show(found: Dupes) -> None:
    from contam.cli import render
    from contam.cli.terminal import plain

    table = render.new_table("one", "other", "similar", "parts")
    for pair in found.pairs[:_SHOWN]:
        names = [plain(_label(found.items[item])) for item in (pair.one, pair.other)]
        parts = ", ".join(f"{part} {value:.2f}" for part, value in pair.parts.items())
        table.add_row(*names, f"{pair.similarity:.2f}", parts)
    more = len(found.pairs) - _SHOWN
    summary = (
        f"{render.counted(len(found.items), 'item')}, "
        f"{render.counted(len(found.pairs), 'pair')} of near-duplicates "
        f"in {render.counted(len(found.groups), 'group')}"
    )
    if more > 0:
        summary += f"; {more:,} more pairs with --json"
    if found.pairs:
        render.emit_renderable(table, f"\n{summary}")
    else:
        from contam.cli.terminal import emit

        emit(f"{summary}\n")


def _label(item: BenchItem) -> str:
    split = f"/{item.split}" if item.split else ""
    return f"{item.benchmark}{split}: {item.item_id}"
