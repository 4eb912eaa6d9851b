"""Keep what an unfinished scan has done beside where its results will be."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contam.detect.leases.node_folder import refuse_foreign
from contam.errors import OutputError
from contam.files.addresses import Address
from contam.files.publish import output_errors, work_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.detect.leases.cut import Lease

#: Parts quote the corpus's metadata, and the plan beside them holds the items.
_RIGHTS = 0o700


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster that does the leases.

    address  as `ray.init` takes it
    workers  threads of a process; None for the usual number
    """

    address: str = "auto"
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Workshop:
    """A folder beside the results that keeps what is done until they are published.

    folder   made when there is more than one lease, or a cluster
    resume   whether to go on from what an interrupted run of the same scan left there
    cluster  what does the leases; None for this machine
    """

    folder: Path
    resume: bool = False
    cluster: RayCluster | None = None

    @classmethod
    def beside(
        cls, out: Path, *, resume: bool = False, cluster: RayCluster | None = None
    ) -> Workshop:
        """The one of the results in the folder `out`; for an address, a temporary folder."""
        if isinstance(out, Address):
            digest = hashlib.sha256(str(out).encode()).hexdigest()[:16]
            name = f"contam-parts-{os.geteuid()}-{digest}"
            return cls(Path(tempfile.gettempdir(), name), resume, cluster)
        return cls(work_folder(out, "parts"), resume, cluster)

    @property
    def parts(self) -> Path:
        """Where the parts are."""
        return self.folder / "parts"

    def serves(self, leases: Sequence[Lease]) -> bool:
        """Whether these leases are worth it: one is done sooner by itself, on this machine."""
        return len(leases) > (0 if self.cluster else 1)

    def n_done(self) -> int:
        """Leases that are done."""
        return len(list(self.parts.glob("*.part")))

    def discard(self) -> None:
        """Remove it, when the results are published; not one that another run works in."""
        if self.folder.exists():
            with contextlib.suppress(OutputError), folder_held(self.folder):
                shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let no other run work in it; removed when the block fails before any lease is done.

        Raises OutputError when another run does.
        """
        with folder_held(self.folder):
            try:
                yield
            except BaseException:
                if not self.n_done():
                    shutil.rmtree(self.folder, ignore_errors=True)
                raise


@contextlib.contextmanager
def folder_held(folder: Path) -> Iterator[None]:
    """Make a folder of one's own, and let no other run work in it.

    Raises OutputError when another run does, and for a folder of somebody else.
    """
    with output_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=_RIGHTS, exist_ok=True)
        refuse_foreign(folder)
        handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise OutputError(
            "another run works in {}", folder, hint="choose another folder"
        ) from error
    try:
        yield
    finally:
        os.close(handle)
