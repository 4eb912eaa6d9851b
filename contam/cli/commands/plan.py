"""`contam plan`: freeze a scan into a folder that many workers can share."""

from __future__ import annotations

from typing import Annotated

import typer

from contam.cli import options
from contam.cli.commands.scan import (
    MAX_EVIDENCE,
    MIN_RUN,
    SEED,
    refuse_long_seed,
    refuse_out_in,
)
from contam.cli.commands.worker import EXIT_INCOMPLETE
from contam.errors import UsageError

SPREAD_OPTIONS = ("--corpus", "--exclude", "--benchmark", "--policy", "--map")


def plan(
    *,
    corpus: options.Corpus,
    benchmark: options.Benchmarks,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the plan.")],
    policy: options.Policies = None,
    unit: options.Unit = "word",
    lease_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Text of a lease, what a worker does at a time: 512MB, 16GB. [default: a 256th of "
            "the corpus, 512 MiB at least, 16 GiB at most]",
        ),
    ] = None,
    as_json: options.Json = False,
    text: options.Text = None,
    id_column: options.IdColumn = None,
    url_column: options.UrlColumn = None,
    date_column: options.DateColumn = None,
    exclude: options.Exclude = None,
    mapping: options.Mapping = None,
    name: options.Name = None,
    split: options.Split = None,
    no_text: options.NoText = False,
    allow_missing: options.AllowUnread = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a finished plan in DIR.")
    ] = False,
    max_evidence: options.MaxEvidence = MAX_EVIDENCE,
    block_items: options.BlockItems = None,
    to_clean: Annotated[
        bool,
        typer.Option(
            "--to-clean", help="Keep every document that a policy counts, for `contam clean`."
        ),
    ] = False,
    seed: options.Seed = SEED,
    min_run: options.MinRun = MIN_RUN,
    quiet: options.Quiet = False,
    settings: options.Settings = None,  # noqa: ARG001 - read by main, listed here for --help
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Freeze corpus, items and policies into a folder, cut into leases for many workers.

    Each worker runs `contam scan --plan DIR --shard I/N --out PARTS`; `contam merge PARTS` then
    gives the results of one scan.
    """
    if not out:
        raise UsageError("--out is empty", hint="check the variable it came from")
    refuse_long_seed(seed, min_run)
    refuse_out_in(out, corpus, what="the plan")
    size = options.parse_size(lease_size, "--lease-size") if lease_size is not None else None
    if size == 0:
        raise UsageError("--lease-size 0 holds no text", hint="for example --lease-size 512MB")
    from contam.benchmark.mapping import parse_mapping
    from contam.cli import render
    from contam.cli.terminal import emit, plain, talk
    from contam.detect.blocks import Blocks, folder_near
    from contam.detect.leases.plan_folder import write_plan
    from contam.detect.plan import ScanParameters
    from contam.detect.scan import open_scan
    from contam.files.uploads import place

    opened, made = open_scan(
        corpus,
        benchmark,
        ScanParameters(
            policies=tuple(options.policy_names(policy)),
            unit=unit,
            seed=seed,
            min_run=min_run,
            max_evidence=max_evidence,
            allow_missing=allow_missing,
            keep_text=not no_text,
            text=text,
            columns=options.columns_of(id_column, url_column, date_column),
            exclude=tuple(exclude or ()),
            mapping=parse_mapping(mapping) if mapping else None,
            name=name,
            split=split,
            every_hit=to_clean,
        ),
        Blocks(block_items, folder_near(place(out))),
    )
    record = write_plan(made, opened, out, lease_bytes=size, overwrite=overwrite)
    if not quiet:
        for note in opened.notes:
            talk(f"note: {plain(note)}")
        for failure in opened.coverage.failures:
            talk(f"NOT READ: {plain(failure.name)}: {plain(failure.reason)}")
    code = EXIT_INCOMPLETE if opened.coverage.failures and not allow_missing else 0
    n_leases = len(record["leases"])
    if as_json:
        render.emit_json({"out": out, "exit_code": code, **_summary(record)})
        return code
    emit(
        f"{render.counted(record['n_items'], 'item')}, "
        f"{render.counted(record['n_shards'], 'shard')}, {render.size(record['n_bytes'])} of text, "
        f"{render.counted(n_leases, 'lease')}\n\n"
        f"plan      {out}\n"
        f"workers   contam scan --plan {out} --shard 1/N --out PARTS ... --shard N/N\n"
        f"then      {'contam clean --parts' if to_clean else 'contam merge'} PARTS --out RESULTS\n"
    )
    return code


def _summary(record: dict[str, object]) -> dict[str, object]:
    left_out = ("files", "tool")
    return {name: value for name, value in record.items() if name not in left_out}
