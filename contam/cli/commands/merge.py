"""`contam merge`: the results of a scan from the parts of its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from contam.cli import options
from contam.cli.commands.scan import print_result, refuse_out_in, write_result
from contam.cli.terminal import plain
from contam.errors import UsageError
from contam.files.uploads import place

if TYPE_CHECKING:
    from contam.detect.result import ScanResult
    from contam.detect.scan import ScanProgress


def merge(
    parts: Annotated[
        list[str],
        typer.Argument(metavar="PARTS...", help="Folders that `contam scan --plan` wrote."),
    ],
    *,
    out: options.OutFolder,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="The plan, if it is not where the workers found it any more."
        ),
    ] = None,
    as_json: options.Summary = False,
    overwrite: options.Overwrite = False,
    fail_on_flagged: options.FailOnFlagged = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,  # noqa: ARG001 - read by main, listed here for --help
) -> int:
    """Merge the parts of all workers into the results of one scan.

    A lease without a part was not read: the exit code is then 4, and nothing is called clean.
    """
    if not out:
        raise UsageError("--out is empty", hint="check the variable it came from")
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

    result = write_result(gather, target, overwrite=overwrite, quiet=quiet)
    more = folders[0] if len(folders) == 1 else "PARTS"
    return print_result(
        result,
        target,
        fail_on_flagged=fail_on_flagged,
        as_json=as_json,
        quiet=quiet,
        way_out=plain(
            f"`contam scan --plan {found} --out {more}` does what is left; then merge again. "
            "A plan that is made again with --allow-missing judges without shards that are lost"
        ),
    )
