"""The shards of a corpus as tasks for a cluster, whose nodes all see the folder of the result."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from contam.cleaning.findings import PartHits
from contam.cleaning.shard import Cleaning
from contam.cleaning.work_folder import WorkFolder
from contam.cleaning.writer import Writer
from contam.detect.leases.jobs import Outcome, Task
from contam.detect.leases.mapped import MappedFile, write_tree
from contam.detect.leases.plan_folder import open_plan, worker_files
from contam.detect.leases.work import as_listed
from contam.detect.warm import scan_a_little
from contam.errors import AccessError, ContamError, IncompleteError, OutputError, Plain
from contam.files.addresses import Address
from contam.files.listed import FileState
from contam.files.publish import output_errors
from contam.kernels.warm_up import compile_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from contam.detect.leases.workshop import RayCluster
    from contam.detect.scan import ScanProgress

_ORDER: Final = "clean.bin"
#: How often a shard that another process writes is looked at, in seconds.
_PAUSE_S: Final = 0.2


class CleanWorker:
    """Writes shards of a cleaned corpus."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Open the plan and the order in a folder of this node.

        Raises OutputError where the node does not see what all nodes have to.
        """
        opened = open_plan(folder)
        (home, sign), question, (options, *choices), (names, rows, touched, sha256), paths = (
            MappedFile.tree(folder / _ORDER)
        )
        self._sign = home / sign
        _refuse_unseen(self._sign, home)
        for path in paths.values():
            _refuse_unseen(path, path)
        choice, after = choices
        self._writer = Writer(
            work=WorkFolder(home),
            question=question,
            cleaning=Cleaning(plan=opened.plan, options=options, choice=choice, after=after),
            corpus=opened.corpus,
            names=names.__getitem__,
            rows=rows,
            touched=touched,
            sha256=sha256,
            hits=PartHits(opened, paths).of_shard,
        )
        self._threads = threads
        compile_once("scan", scan_a_little, None)

    def do(self, number: int) -> Outcome:
        """Write a shard; what is to be said of it is the data, or the error that there was."""
        corpus = self._writer.corpus
        shard = corpus.shards[number]
        try:
            shards = (*corpus.shards[:number], as_listed(shard), *corpus.shards[number + 1 :])
            writer = replace(self._writer, corpus=replace(corpus, shards=shards))
            with writer.work.shared():
                # Whoever gave the order may have ended, and another run have begun.
                _refuse_unseen(self._sign, writer.work.folder)
                while (noted := writer.write(number, self._threads)) is None:
                    time.sleep(_PAUSE_S)
        except AccessError:
            raise
        except ContamError as error:
            return Outcome(
                data=pickle.dumps(error), failures=((number, shard.name, error.message),)
            )
        return Outcome(data=json.dumps(noted).encode())

    def piece(self, name: str, begin: int) -> bytes:
        """What is said of a shard is returned at once."""
        raise FileNotFoundError(name, begin)


class CleanJob:
    """The shards that a cluster writes into the folder of a run.

    noted   what is to be said of each that is done
    errors  why others are not
    """

    noun = "shard"
    worker = CleanWorker

    def __init__(self, writer: Writer, hits: PartHits, sign: str) -> None:
        self.noted: dict[int, dict[str, Any]] = {}
        self.errors: dict[int, ContamError] = {}
        self._writer, self._hits, self._sign = writer, hits, sign

    def files(self) -> Mapping[str, bytes]:
        """The plan without the texts of items, and what is to be done."""
        writer, cleaning = self._writer, self._writer.cleaning
        order = io.BytesIO()
        write_tree(
            order,
            (
                (writer.work.folder, self._sign),
                writer.question,
                (cleaning.options, cleaning.choice, cleaning.after),
                (
                    tuple(cleaning.plan.items.names()),
                    dict(writer.rows),
                    writer.touched,
                    dict(writer.sha256),
                ),
                {number: _anywhere(path) for number, path in self._hits.paths.items()},
            ),
        )
        return {**worker_files(self._hits.opened.folder), _ORDER: order.getvalue()}

    def finish(self, number: int, outcome: Outcome, fetch: Callable[[str, int], bytes]) -> None:
        """Keep what is to be said of a shard."""
        del fetch
        if outcome.failures:
            # Of our own process, which sends nothing that it did not make.
            self.errors[number] = pickle.loads(outcome.data)  # noqa: S301
        else:
            self.noted[number] = json.loads(outcome.data)
            self.errors.pop(number, None)

    def give_up(self, number: int, reason: str) -> None:
        """Nobody could write a shard."""
        self.errors[number] = IncompleteError(
            "{} was not written: {}", self._writer.corpus.shards[number].name, Plain(reason),
            hint="often memory runs out: go on with fewer --workers and --resume",
        )  # fmt: skip


def write_on_cluster(
    writer: Writer, hits: PartHits, cluster: RayCluster, progress: ScanProgress | None
) -> dict[int, dict[str, Any]]:
    """Write all shards that are not done; returns what is to be said of each.

    hits  in parts that all nodes see

    Raises IncompleteError when no process of the cluster can write for the result, and what kept
    the first of several shards from being written.
    """
    from contam.detect.leases.on_ray import do_tasks  # which not everybody has

    shards = writer.corpus.shards
    noted = {}
    for number in range(len(shards)):
        known = writer.known(number)
        if known is not None:
            noted[number] = known
    todo = sorted(
        (number for number in range(len(shards)) if number not in noted),
        key=lambda n: (n not in writer.touched, -shards[n].size_bytes),
    )
    # A folder of this path may be another one on another node.
    sign = writer.work.folder / f"cluster-{secrets.token_hex(8)}"
    with output_errors(sign):
        sign.touch()
    job = CleanJob(writer, hits, sign.name)
    try:
        tasks = [Task(number, shards[number].size_bytes) for number in todo]
        do_tasks(job, tasks, cluster.address, cluster.workers, progress)
    finally:
        with contextlib.suppress(OSError):
            sign.unlink()
    for _, error in sorted(job.errors.items()):
        raise error
    return noted | job.noted


def _anywhere(path: Path) -> Path:
    """A path that other processes may open."""
    return path if isinstance(path, Address) else path.resolve()


def _refuse_unseen(path: Path, shown: Path) -> None:
    try:
        FileState.at(str(path))
    except OSError as error:
        raise OutputError(
            "{} is not seen here",
            shown,
            hint="put the result, and parts, on storage that all nodes see",
        ) from error
