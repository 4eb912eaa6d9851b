"""What `contam scan --plan` does: the leases of one worker of many."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from contam.cli.results import EXIT_INCOMPLETE, refuse_out_in
from contam.cli.shares import parse_share
from contam.errors import UsageError
from contam.extras import require
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.cli.options import OutputOptions
    from contam.detect.leases.cut import Lease
    from contam.detect.leases.plan_folder import OpenPlan
    from contam.detect.leases.work import Work
    from contam.detect.scan import ScanProgress

INTERRUPTED: Final = "the leases that were done are there; the same call does the others"
_NAMED: Final = 20


class Engine(StrEnum):
    """What runs the workers, where it is not this process."""

    RAY = "ray"


EngineOption = Annotated[
    Engine | None,
    typer.Option("--engine", help="Who does the work: ray, a cluster. [default: this machine]"),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster. [default: RAY_ADDRESS, else the one of this machine]",
    ),
]


def work(
    plan: str,
    out: Path,
    *,
    shard: str | None,
    lease: int | None,
    workers: int | None,
    output: OutputOptions,
    engine: Engine | None = None,
    address: str | None = None,
) -> int:
    """Do the leases of one worker, and say what was done; returns the exit code.

    shard    `7/256`, the leases of the seventh of 256 workers, or `auto`; None for all
    lease    the number of the only lease to do
    engine   what runs the workers; None for this process
    address  of the Ray cluster
    """
    refuse_engine(engine, address)
    if shard is not None and lease is not None:
        raise UsageError("--shard and --lease exclude each other", hint="give one of them")
    share = parse_share(shard, os.environ) if shard is not None else (0, 1)
    from contam.cli.progress import Reporter
    from contam.detect.leases.plan_folder import open_plan

    opened = open_plan(plan)
    refuse_out_in(out, opened.corpus.paths, what="the parts")
    leases = _chosen(opened, share, lease)
    with Reporter(quiet=output.quiet) as progress:
        if engine is None:
            found = _here(opened, leases, out, workers, progress)
        else:
            from contam.detect.leases.on_ray import work_on_ray

            found = work_on_ray(
                opened, leases, out, address=address or "auto", workers=workers, progress=progress
            )
    return tell_work(
        "lease",
        len(opened.leases),
        done=found.done,
        kept=found.kept,
        not_whole=found.not_whole,
        failures=[(failure.name, failure.reason) for failure in found.failures],
        out=str(out),
        as_json=output.as_json,
    )


def tell_work(
    thing: str,
    total: int,
    *,
    done: Sequence[int] | Sequence[str],
    kept: Sequence[int] | Sequence[str],
    out: str,
    as_json: bool,
    not_whole: Sequence[int] = (),
    failures: Sequence[tuple[str, str]] = (),
    then: str = "",
) -> int:
    """Say what a worker did, and what it could not read; returns the exit code.

    thing      what it does one by one, of which there are `total`
    not_whole  those it worked on of which a shard was not read
    failures   names of shards, and why each was not read
    then       what comes next, where the folder holds nothing yet
    """
    from contam.cli import render
    from contam.cli.terminal import emit, plain, talk

    code = EXIT_INCOMPLETE if failures else 0
    for name, reason in failures[:_NAMED]:
        shown = reason.removeprefix(f"{name}: ")
        talk(f"NOT READ: {plain(name)}: {plain(shown)}")
    if len(failures) > _NAMED:
        talk(f"NOT READ: {len(failures) - _NAMED:,} more")
    if failures:
        talk(
            f"hint: repair these shards and run the same call again: it repeats their {thing}s. "
            "One put back needs its old time of writing (cp -p); a changed one needs a new plan"
        )
    if as_json:
        not_read = [{"shard": name, "reason": reason} for name, reason in failures]
        render.emit_json(
            {
                "out": out,
                "exit_code": code,
                f"{thing}s": total,
                "done": list(done),
                "kept": list(kept),
                "not_whole": list(not_whole),
                "not_read": not_read,
            }
        )
        return code
    before = f", {len(kept):,} there before" if kept else ""
    again = f", {len(not_whole):,} not read to the end" if not_whole else ""
    n_done = len(done) - len(not_whole)
    last = f"then      {then}" if then else f"parts     {out}"
    emit(f"{counted(n_done, thing)} of {total:,} done{before}{again}\n{last}\n")
    return code


def refuse_engine(engine: Engine | None, address: str | None) -> None:
    """Raise UsageError for an address alone, MissingExtraError for a missing engine."""
    if engine is not None:
        require(engine.value)
    elif address is not None:
        raise UsageError("--address needs --engine", hint="give --engine ray")


def _here(
    opened: OpenPlan,
    leases: Sequence[Lease],
    out: Path,
    workers: int | None,
    progress: ScanProgress,
) -> Work:
    """Do leases in this process."""
    from contam.detect.leases.work import work_on
    from contam.detect.scan import worker_count
    from contam.detect.warm import scan_a_little
    from contam.kernels.warm_up import compile_once

    n_threads = worker_count(workers)
    compile_once("scan", scan_a_little, progress)
    return work_on(opened, leases, out, workers=n_threads, progress=progress)


def _chosen(opened: OpenPlan, share: tuple[int, int], lease: int | None) -> Sequence[Lease]:
    from contam.detect.leases.cut import share_of
    from contam.detect.leases.work import lease_by_number

    if lease is not None:
        return [lease_by_number(opened, lease)]
    return share_of(opened.leases, *share)
