"""`contam index plan`, `merge`, and `build --plan`: one index made by many machines."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from contam.cli import options
from contam.cli.commands.worker import parse_shard, tell_work
from contam.cli.terminal import emit


def plan(
    *,
    corpus: options.Corpus,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the plan.")],
    recipe: options.Recipe = "standard",
    tokenizer: options.Tokenizer = None,
    memory: options.BuildMemory = "2GB",
    text: options.Text = None,
    id_column: options.IdColumn = None,
    url_column: options.UrlColumn = None,
    date_column: options.DateColumn = None,
    exclude: options.Exclude = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a plan in DIR.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Cut a corpus into groups of shards that many machines index.

    Each runs `contam index build --plan DIR --shard I/N --out PARTS`; then
    `contam index merge PARTS --plan DIR --index INDEX` makes the index.
    """
    n_bytes = options.parse_size(memory, "--memory")
    from contam.cli import render
    from contam.cli.progress import reporter
    from contam.index.recipe import load_recipe
    from contam.index.shared_build import plan_index

    chosen = load_recipe(recipe, tokenizer=tokenizer)
    with reporter(quiet=quiet) as progress:
        made = plan_index(
            corpus,
            out,
            chosen,
            memory=n_bytes,
            text=text,
            columns=options.columns_of(id_column, url_column, date_column),
            exclude=exclude or (),
            overwrite=overwrite,
            progress=progress,
        )
    n_shards, n_groups = len(made.manifest.shards), len(made.groups)
    if as_json:
        render.emit_json({"out": out, "n_shards": n_shards, "n_groups": n_groups})
        return 0
    emit(
        f"{render.counted(n_shards, 'shard')} in {render.counted(n_groups, 'group')}\n\n"
        f"plan      {out}\n"
        f"workers   contam index build --plan {out} --shard 1/N --out PARTS ... --shard N/N\n"
        f"then      contam index merge PARTS --plan {out} --index DIR\n"
    )
    return 0


def merge(
    parts: Annotated[
        list[str],
        typer.Argument(metavar="PARTS...", help="Folders that `index build --plan` wrote."),
    ],
    *,
    plan: Annotated[
        str, typer.Option(metavar="DIR", help="The plan that `contam index plan` made.")
    ],
    index: options.IndexFolder,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing index.")
    ] = False,
    home: options.Home = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,  # noqa: ARG001 - as the other commands have it
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Merge the groups that all machines indexed into one index."""
    from contam.cli.commands.index import print_built
    from contam.index.home import resolve_index
    from contam.index.shared_build import open_index_plan
    from contam.index.shared_merge import merge_groups

    folder = resolve_index(index, home, to_write=True)
    manifest = merge_groups(open_index_plan(plan), parts, folder, overwrite=overwrite)
    return print_built(folder, manifest, as_json=as_json)


def build_groups(
    plan: str,
    out: str,
    shard: str | None,
    workers: int | None,
    *,
    cluster: str | None = None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Index the groups of one worker, and say what was done; returns the exit code.

    cluster  address of the Ray cluster that does it; None for this process
    """
    from contam.cli.progress import reporter
    from contam.index.shared_build import build_groups as build_each
    from contam.index.shared_build import open_index_plan

    index, count = parse_shard(shard, os.environ) if shard is not None else (0, 1)
    opened = open_index_plan(plan)
    with reporter(quiet=quiet) as progress:
        groups = opened.groups[index::count]
        if cluster is None:
            built = build_each(opened, groups, out, workers=workers, progress=progress)
        else:
            from contam.detect.leases.on_ray import build_on_ray

            built = build_on_ray(
                opened, groups, out, address=cluster, workers=workers, progress=progress
            )
    return tell_work(
        "group",
        len(opened.groups),
        done=built.done,
        kept=built.kept,
        not_whole=built.not_whole,
        failures=[(failed.name, failed.failure or "") for failed in built.failures],
        out=out,
        as_json=as_json,
    )
