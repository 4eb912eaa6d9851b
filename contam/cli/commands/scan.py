"""`contam scan`: search a corpus for the items of benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.defaults import say_supplied
from contam.cli.results import print_result, refuse_beside, refuse_out_in, write_result
from contam.cli.terminal import talk
from contam.cli.worker import AddressOption, EngineOption, refuse_engine, work
from contam.errors import ContamError, UsageError
from contam.files.publication import LAST
from contam.files.uploads import place

if TYPE_CHECKING:
    from contam.detect.result import ScanResult
    from contam.detect.scan import ScanProgress

#: What a worker on a plan may choose.
_OF_WORKERS = frozenset(
    ("out", "plan", "shard", "lease", "workers", "engine", "address", "as_json", "quiet",
     "settings")
)  # fmt: skip


@options.shared
def scan(
    *,
    context: typer.Context,
    corpus: options.CorpusOrPlan = None,
    benchmark: options.Benchmark = None,
    out: options.OutFolder,
    items: options.ItemOptions,
    columns: options.ColumnOptions,
    kept: options.KeptOptions,
    unit: options.Unit = "word",
    workers: options.Workers = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Work on a plan that `contam plan` made; the folder for the results gets parts.",
        ),
    ] = None,
    shard: options.Shard = None,
    lease: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="With --plan: do this lease alone.")
    ] = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    resume: options.Resume = False,
    output: options.VerdictOptions,
    settings: options.Settings = None,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Search a corpus for benchmark items; write verdicts and the text that proves them.

    Writes verdicts.parquet, evidence.parquet, items.parquet and run.json to DIR, all or nothing.

    Examples:
        contam scan --corpus shards/*.parquet --benchmark gsm8k.jsonl --out results
        contam scan --corpus dump --text body --benchmark mmlu --policy contam palm-70 --out two
    """
    say_supplied(context, _OF_WORKERS if plan is not None else ())
    folder = place(out)
    if plan is not None:
        refuse_beside(context, _OF_WORKERS)
        return work(
            plan,
            folder,
            shard=shard,
            lease=lease,
            workers=workers,
            output=output,
            engine=engine,
            address=address,
        )
    if shard is not None or lease is not None:
        flag = "--lease" if shard is None else "--shard"
        raise UsageError(f"{flag} needs --plan", hint="`contam plan` makes one")
    refuse_engine(engine, address)
    if not corpus or not benchmark:
        missing = "--benchmark" if corpus else "--corpus"
        raise UsageError(f"Missing option '{missing}'", hint="see `contam scan --help`")
    asked = {**items.arguments(), **columns.arguments(), **kept.arguments()}
    refuse_out_in(folder, corpus)
    from contam.detect.leases.workshop import RayCluster, Workshop

    cluster = RayCluster(address or "auto", workers) if engine else None
    workshop = Workshop.beside(folder, resume=resume, cluster=cluster)

    def search(progress: ScanProgress) -> ScanResult:
        from contam.detect.scan import scan as run_scan

        return run_scan(
            corpus,
            benchmark,
            unit=unit,
            workers=workers,
            workshop=workshop,
            progress=progress,
            **asked,
        )

    try:
        result = write_result(search, folder, output)
    except (KeyboardInterrupt, SystemExit, ContamError):
        if folder == LAST.shown and LAST.is_there():
            workshop.discard()
        elif n_done := workshop.n_done():
            talk(f"leases done: {n_done}; the same call with --resume goes on from there")
        raise
    workshop.discard()
    return print_result(result, folder, output)
