"""`contam dupes`: near-duplicate items between benchmarks and splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from contam.benchmark.items import PARTS
from contam.cli import options
from contam.cli.output_file import refuse_replacing
from contam.cli.row_file import csv_text, form_of
from contam.cli.terminal import emit, plain, visible

if TYPE_CHECKING:
    from contam.benchmark.items import BenchItem
    from contam.detect.dupes import Dupes

SPREAD_OPTIONS = ("--benchmark", "--map")
EXIT_FLAGGED = 3
_SHOWN = 50


def dupes(
    *,
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
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write all pairs to a file: .csv, .json or .parquet by its name."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    as_json: options.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Find items that are nearly the same in another benchmark or split."""
    if out is not None:
        form_of(out)
        refuse_replacing(out, benchmark)
    from contam.benchmark.mapping import parse_mapping
    from contam.cli import render
    from contam.cli.progress import reporter
    from contam.detect.dupes import find_dupes
    from contam.files.single import whole_file

    def search() -> Dupes:
        with reporter(quiet=quiet) as progress:
            return find_dupes(
                benchmark,
                threshold=threshold,
                within=within,
                mapping=parse_mapping(mapping) if mapping else None,
                progress=progress,
            )

    if out is None:
        found = search()
    else:
        with whole_file(out, overwrite=overwrite) as file:
            found = search()
            _write(found, file, form_of(out))
    if as_json:
        render.emit_json(_tree(found))
    else:
        _show(found)
        if out is not None:
            emit(visible(f"all pairs written to {out}") + "\n")
    return EXIT_FLAGGED if fail_on_flagged and found.pairs else 0


def _write(found: Dupes, file: BinaryIO, form: str) -> None:
    """Write all pairs: as JSON what --json prints, else a row for each pair."""
    if form == ".json":
        file.write((json.dumps(_tree(found), indent=2) + "\n").encode())
        return
    from contam.tables import schemas

    group_of = {item: at for at, group in enumerate(found.groups) for item in group}
    rows = [
        (
            *(found.items[pair.one].benchmark, found.items[pair.one].split or ""),
            found.items[pair.one].item_id,
            *(found.items[pair.other].benchmark, found.items[pair.other].split or ""),
            found.items[pair.other].item_id,
            pair.similarity,
            *(pair.parts.get(part) for part in PARTS),
            group_of[pair.one],
        )
        for pair in found.pairs
    ]
    names = schemas.DUPES.names
    if form == ".csv":
        file.write(csv_text(names, rows).encode("utf-8", "replace"))
        return
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    schemas.write_parquet(schemas.table_of(columns, schemas.DUPES), file)


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
        summary += f"; {more:,} more pairs with --out or --json"
    if found.pairs:
        render.emit_renderable(table, f"\n{summary}")
    else:
        emit(f"{summary}\n")


def _label(item: BenchItem) -> str:
    split = f"/{item.split}" if item.split else ""
    return f"{item.benchmark}{split}: {item.item_id}"
