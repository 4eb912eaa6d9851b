"""Read `--shard`: which share of the work is this process's, by its number or by its scheduler."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHARD: Final = re.compile(r"(\d+)/(\d+)")
_AUTO: Final = re.compile(r"auto(?:/(\d+))?")


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
