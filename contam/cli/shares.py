"""What commands with divided work have in common: `--shard`, `--engine`, the account of a share."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from contam.cli import render
from contam.cli.options import flag, option
from contam.cli.results import EXIT_INCOMPLETE
from contam.cli.terminal import emit, plain, talk
from contam.errors import UsageError
from contam.extras import require
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.parts.search import Work

_SHARD: Final = re.compile(r"(\d+)/(\d+)")
_AUTO: Final = re.compile(r"auto(?:/(\d+))?")
_NAMED: Final = 20


class Engine(StrEnum):
    """What runs the workers, where it is not this process."""

    RAY = "ray"


EngineOption = Annotated[
    Engine | None, flag("--engine", "Who does the work: ray, a cluster. [default: this machine]")
]
AddressOption = Annotated[
    str | None,
    option(
        "HOST:PORT",
        "The Ray cluster. [default: RAY_ADDRESS, else the one of this machine]",
    ),
]


def tell_work(
    thing: str,
    total: int,
    *,
    done: int,
    kept: int,
    out: str,
    as_json: bool,
    not_whole: int = 0,
    failures: Sequence[tuple[str, str]] = (),
    then: str = "",
) -> int:
    """Say what a worker did, and what it could not read; returns the exit code.

    thing      what it does one by one, of which there are `total`;  kept  were there before
    not_whole  how many of those it worked on have a shard that was not read
    failures   names of shards, and why each was not read
    then       what comes next, where the folder holds nothing yet
    """
    code = EXIT_INCOMPLETE if failures else 0
    for name, reason in failures[:_NAMED]:
        shown = reason.removeprefix(f"{name}: ")
        talk(f"NOT READ: {plain(name)}: {plain(shown)}")
    if len(failures) > _NAMED:
        talk(f"NOT READ: {len(failures) - _NAMED:,} more")
    if failures:
        talk(
            f"hint: repair these shards and run the same call again: it repeats their {thing}s. "
            "One put back needs its old time of writing (cp -p)"
        )
    if as_json:
        not_read = [{"shard": name, "reason": reason} for name, reason in failures]
        render.emit_json(
            {
                "out": out,
                "exit_code": code,
                f"{thing}s": total,
                "done": done,
                "kept": kept,
                "not_whole": not_whole,
                "not_read": not_read,
            }
        )
        return code
    before = f", {kept:,} there before" if kept else ""
    again = f", {not_whole:,} not read to the end" if not_whole else ""
    last = f"then      {then}" if then else f"parts     {out}"
    emit(f"{counted(done - not_whole, thing)} of {total:,} done{before}{again}\n{last}\n")
    return code


def tell_idle(thing: str, total: int, n_workers: int, *, quiet: bool) -> None:
    """Say so where there is less to do than workers to do it."""
    if total < n_workers and not quiet:
        enough = "one worker is" if total <= 1 else f"{total:,} workers are"
        talk(f"note: all of it is {counted(total, thing)}: {enough} enough, not {n_workers:,}")


def tell_search(work: Work, out: str, *, as_json: bool, then: str = "") -> int:
    """Say which parts of a search a worker computed; returns the exit code."""
    return tell_work(
        "part",
        work.total,
        done=len(work.done),
        kept=len(work.kept),
        not_whole=len(work.not_whole),
        failures=[(failure.name, failure.reason) for failure in work.failures],
        out=out,
        as_json=as_json,
        then=then,
    )


def refuse_engine(engine: Engine | None, address: str | None) -> None:
    """Raise UsageError for an address alone, MissingExtraError for a missing engine."""
    if engine is not None:
        require(engine.value)
    elif address is not None:
        raise UsageError("--address needs --engine", hint="give --engine ray")


def parse_share(text: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """`7/256` as (6, 256): the number of a worker, from 0, and how many there are.

    `auto` takes both from a Slurm array; `auto/256` the number from a Kubernetes Indexed Job, whose
    pods are not told how many they are. Raises UsageError, also for an array with gaps.
    """
    if found := _SHARD.fullmatch(text):
        number, count = int(found[1]), int(found[2])
        if not 1 <= number <= count:
            raise UsageError(
                f"--shard {text}: the first number is 1 to {count}" if count else
                f"--shard {text}: there has to be at least 1 worker",
                hint="7/256 is the seventh of 256 workers",
            )  # fmt: skip
        return number - 1, count
    if found := _AUTO.fullmatch(text):
        return _from_scheduler(text, int(found[1]) if found[1] else None, environment)
    raise UsageError(
        f"--shard {text!r} is not understood", hint="give I/N, for example 7/256, or auto"
    )


def _from_scheduler(
    text: str, count: int | None, environment: Mapping[str, str]
) -> tuple[int, int]:
    def number(name: str, otherwise: str = "") -> int:
        value = environment.get(name, otherwise)
        if not value.isdecimal():
            raise UsageError(
                f"--shard {text}: {name} is {value!r}, not a number" if value else
                f"--shard {text}: {name} is not set",
                hint="give I/N, for example 7/256",
            )  # fmt: skip
        return int(value)

    if "SLURM_ARRAY_TASK_ID" in environment:
        step = max(1, number("SLURM_ARRAY_TASK_STEP", "1"))
        # Of `--array=1-64` the first task is number 1, of `--array=0-63` number 0.
        first = number("SLURM_ARRAY_TASK_MIN", "0")
        index = (number("SLURM_ARRAY_TASK_ID") - first) // step
        total = number("SLURM_ARRAY_TASK_COUNT")
        hint = "submit the whole array again, what is done is kept; or give I/N"
        if count not in (None, total):
            raise UsageError(f"--shard {text}: the array has {total} tasks", hint="give auto alone")
    elif "JOB_COMPLETION_INDEX" in environment:
        index = number("JOB_COMPLETION_INDEX")
        if count is None:
            raise UsageError(
                f"--shard {text}: an Indexed Job does not tell its pods how many they are",
                hint="give its `completions`, for example --shard auto/64",
            )
        total = count
        hint = "give the `completions` of the Job"
    else:
        raise UsageError(
            f"--shard {text}: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set",
            hint="give I/N, for example 7/256",
        )
    if not 0 <= index < total:
        raise UsageError(f"--shard {text}: task {index + 1} of {total} cannot be", hint=hint)
    return index, total
