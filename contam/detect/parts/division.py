"""How a search is divided: where its parts are kept, which of them are computed, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contam.errors import UsageError
from contam.files.uploads import place

if TYPE_CHECKING:
    from contam.detect.parts.part_store import PartStore

#: Threads of a process; as many as one interpreter keeps busy.
THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster that computes parts.

    address  as `ray.init` takes it
    workers  threads of a task; None for the usual number
    """

    address: str = "auto"
    workers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How a search is divided into parts; the result does not depend on it.

    folder     a folder or address where parts are kept; None keeps none
    size       bytes of text of a part, at most; None for the usual, see `pieces.cut_pieces`
    share      computes every n-th part alone: (number from 0, n)
    only       computes nothing: a part that is not there was not read
    processes  whether many workers are divided over processes
    cluster    what computes the parts; None for this machine
    """

    folder: str | None = None
    size: int | None = None
    share: tuple[int, int] = (0, 1)
    only: bool = False
    processes: bool = False
    cluster: RayCluster | None = None

    def __post_init__(self) -> None:
        if self.folder is None and (self.only or self.share != (0, 1)):
            raise UsageError("no folder of parts is named", hint="give --parts DIR")

    def is_needed(self, workers: int) -> bool:
        """Whether a search with so many workers is divided at all."""
        many = self.processes and workers > THREADS
        return self.folder is not None or self.cluster is not None or many

    @property
    def store(self) -> PartStore | None:
        """Where the parts are kept."""
        from contam.detect.parts.part_store import PartStore

        return None if self.folder is None else PartStore(place(self.folder))
