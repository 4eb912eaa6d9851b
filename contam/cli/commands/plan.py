"""`contam plan` and `contam merge`: a scan that many workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.defaults import say_supplied
from contam.cli.results import EXIT_INCOMPLETE, print_result, refuse_out_in, write_result
from contam.cli.terminal import plain
from contam.errors import UsageError
from contam.facts import counted, size
from contam.files.uploads import place

if TYPE_CHECKING:
    from contam.detect.result import ScanResult
    from contam.detect.scan import ScanProgress


@options.shared
def plan(
    *,
    context: typer.Context,
    corpus: options.Corpus,
    benchmark: options.Benchmarks,
    out: options.OutFolder,
    items: options.ItemOptions,
    columns: options.ColumnOptions,
    kept: options.KeptOptions,
    unit: options.Unit = "word",
    lease_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Text of a lease, what a worker does at a time: 512MB, 16GB. [default: a 256th of "
            "the corpus, 512 MiB at least, 16 GiB at most]",
        ),
    ] = None,
    to_clean: Annotated[
        bool,
        typer.Option(
            "--to-clean", help="Keep every document that a policy counts, for `contam clean`."
        ),
    ] = False,
    output: options.OutputOptions,
    settings: options.Settings = None,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Freeze corpus, items and policies into a folder, cut into leases for many workers.

    Each worker runs `contam scan --plan DIR --shard I/N --out PARTS`; `contam merge PARTS` then
    gives the results of one scan.

    Examples:
        contam plan --corpus shards --benchmark gsm8k.jsonl --out plan
        contam plan --corpus shards --benchmark gsm8k.jsonl --lease-size 2GB --out plan
    """
    say_supplied(context)
    asked = {**items.arguments(), **columns.arguments(), **kept.arguments()}
    refuse_out_in(out, corpus, what="the plan")
    lease_bytes = options.parse_size(lease_size, "--lease-size") if lease_size is not None else None
    if lease_bytes == 0:
        raise UsageError("--lease-size 0 holds no text", hint="for example --lease-size 512MB")
    from contam.cli import render
    from contam.cli.terminal import emit, plain, talk
    from contam.detect.leases.plan_folder import write_plan
    from contam.detect.parameters import ScanParameters
    from contam.detect.scan import open_scan

    opened, made = open_scan(
        corpus,
        benchmark,
        ScanParameters(unit=unit, every_hit=to_clean, **asked),
    )
    record = write_plan(made, opened, out, lease_bytes=lease_bytes, overwrite=output.overwrite)
    if not output.quiet:
        for note in opened.notes:
            talk(f"note: {plain(note)}")
        for failure in opened.coverage.failures:
            talk(f"NOT READ: {plain(failure.name)}: {plain(failure.reason)}")
    code = EXIT_INCOMPLETE if opened.coverage.failures and not kept.allow_missing else 0
    n_leases = len(record["leases"])
    if output.as_json:
        render.emit_json({"out": out, "exit_code": code, **_summary(record)})
        return code
    emit(
        f"{counted(record['n_items'], 'item')}, "
        f"{counted(record['n_shards'], 'shard')}, {size(record['n_bytes'])} of text, "
        f"{counted(n_leases, 'lease')}\n\n"
        f"plan      {out}\n"
        f"workers   contam scan --plan {out} --shard 1/N --out PARTS ... --shard N/N\n"
        f"then      {'contam clean --parts' if to_clean else 'contam merge'} PARTS --out RESULTS\n"
    )
    return code


def _summary(record: dict[str, object]) -> dict[str, object]:
    left_out = ("files", "tool")
    return {name: value for name, value in record.items() if name not in left_out}


@options.shared
def merge(
    parts: Annotated[
        list[str],
        typer.Argument(metavar="PARTS...", help="Folders that `contam scan --plan` wrote."),
    ],
    *,
    out: options.OutFolder,
    plan: options.PlanPlace = None,
    output: options.VerdictOptions,
) -> int:
    """Merge the parts of all workers into the results of one scan.

    A lease without a part was not read: the exit code is then 4, and nothing is called clean.

    Examples:
        contam merge parts --out results
        contam merge parts-a parts-b --plan plan --out results --fail-on-flagged
    """
    folders = [place(folder) for folder in parts]
    target = place(out)
    from contam.detect.leases.parts_folder import question_of_parts
    from contam.detect.leases.plan_folder import open_plan
    from contam.detect.leases.work import merge_parts

    found = place(plan) if plan else question_of_parts(folders[0])[1]

    def gather(progress: ScanProgress) -> ScanResult:
        opened = open_plan(found, with_items=True)
        refuse_out_in(out, opened.corpus.paths)
        return merge_parts(opened, folders, progress=progress)

    result = write_result(gather, target, output)
    more = folders[0] if len(folders) == 1 else "PARTS"
    return print_result(
        result,
        target,
        output,
        way_out=plain(
            f"`contam scan --plan {found} --out {more}` does what is left; then merge again. "
            "A plan that is made again with --allow-missing judges without shards that are lost"
        ),
    )
