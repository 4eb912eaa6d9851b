"""`contam scan` and `contam warm`: search a corpus for items; compile kernels before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contam.cli import options, render
from contam.cli.options import flag, option
from contam.cli.results import (
    DivisionOptions,
    print_result,
    refuse_out_in,
    tell_idle,
    tell_search,
    write_result,
)
from contam.cli.terminal import Reporter, talk
from contam.errors import UsageError
from contam.files.stores import place

if TYPE_CHECKING:
    from contam.detect.corpus import ScanProgress
    from contam.detect.parts.part_store import Division
    from contam.detect.result import ScanResult


@options.shared
def scan(
    *,
    corpus: list[str] = options.CORPUS,
    benchmark: list[str] = options.BENCHMARKS,
    out: str | None = options.OPTIONAL_OUT,
    items: options.ItemOptions,
    columns: options.ColumnOptions,
    kept: options.KeptOptions,
    unit: str = options.UNIT,
    workers: int | None = options.WORKERS,
    divided: DivisionOptions,
    part_size: str | None = option(
        "SIZE",
        "Text of a part: 512MB, 16GB; the same in all calls. [default: a 256th of the "
        "corpus, 512 MiB at least, 16 GiB at most]",
    ),
    only_parts: bool = options.ONLY_PARTS,
    every_hit: bool = flag(
        "--every-hit",
        "Keep every document that a policy counts, in hits.parquet, for `contam clean --verdicts`.",
    ),
    output: options.VerdictOptions,
) -> int:
    """Search a corpus for benchmark items; write verdicts and the text that proves them.

    Writes verdicts.parquet, evidence.parquet, items.parquet and run.json to DIR, all or nothing.

    Examples:
        contam scan --corpus shards/*.parquet --benchmark gsm8k.jsonl --out results
        contam scan --corpus dump --text body --benchmark mmlu --policy contam palm-70 --out two
    """
    shard = divided.shard
    if out is None and shard is None:
        raise UsageError("Missing option '--out'", hint="see `contam scan --help`")
    if shard is not None and only_parts:
        raise UsageError("--shard and --only-parts exclude each other", hint="give one of them")
    if out is not None:
        refuse_out_in(out, corpus)
    size = None if part_size is None else options.parse_size(part_size, "--part-size")
    division = divided.division(corpus, workers, size=size, only=only_parts)
    asked = {
        **items.arguments(),
        **columns.arguments(),
        **kept.arguments(),
        "unit": unit,
        "every_hit": every_hit,
    }
    if shard is not None:
        return _compute_share(corpus, benchmark, division, workers, asked, output)

    def search(progress: ScanProgress) -> ScanResult:
        from contam.detect.scan import scan as run_scan

        return run_scan(
            corpus, benchmark, workers=workers, division=division, progress=progress, **asked
        )

    target = place(out or "")
    result = write_result(search, target, output, every_hit=every_hit)
    return print_result(result, target, output)


def _compute_share(
    corpus: list[str],
    benchmark: list[str],
    division: Division,
    workers: int | None,
    asked: dict[str, Any],
    output: options.VerdictOptions,
) -> int:
    """Compute a share of the parts, and say what was done; returns the exit code."""
    from contam.detect.scan import scan_share

    with Reporter(quiet=output.quiet) as progress:
        work = scan_share(corpus, benchmark, division, workers=workers, progress=progress, **asked)
    tell_idle("part", work.total, division.share[1], quiet=output.quiet)
    return tell_search(work, str(division.folder), as_json=output.as_json)


def warm(
    *,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> int:
    """Compile all kernels now, which the first scan, build and query would do otherwise.

    Examples:
        contam warm
        contam warm --json
    """
    # Imported here: this loads the compiler.
    from contam.detect.query import run_a_little
    from contam.kernels.warm_up import compile_once, folder, is_kept

    with Reporter(quiet=quiet) as progress:
        compile_once("all", run_a_little, progress)
    if as_json:
        render.emit_json({"folder": str(folder()) if is_kept() else None})
    elif not quiet and is_kept():
        talk(f"all kernels are compiled, in {folder()}")
    return 0 if is_kept() else 1
