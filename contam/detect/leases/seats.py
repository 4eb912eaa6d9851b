"""The tasks and the processes of a cluster, as whoever gives them out sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contam.detect.leases.jobs import Task


@dataclass(eq=False)
class Try:
    """A task that is to be done.

    attempts  how often a process was given it
    nodes     those that lost it, or could not read all of its shards
    best      shards that could not be read, of the answer that is kept; None while there is none
    reason    why the last attempt gave no answer
    """

    task: Task
    attempts: int = 0
    nodes: set[str] = field(default_factory=set)
    best: int | None = None
    reason: str = ""


@dataclass(eq=False)
class Seat:
    """Room for a process on the cluster, and the process that has it.

    actor    None while there is none
    node     of the process, "" until Ray has found room for it
    is_open  whether it has opened the plan
    task     what it works on
    lost     processes that were lost in a row
    wake     when the next is started, by the monotonic clock
    """

    threads: int
    actor: Any = None
    node: str = ""
    is_open: bool = False
    task: Try | None = None
    lost: int = 0
    wake: float = 0.0
