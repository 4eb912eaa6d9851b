"""Compute parts on a Ray cluster, a task each; only this module imports Ray.

A task of which a process or a node is lost is done again by Ray, elsewhere. What it found is
returned as bytes, so that only the driver needs the folder of parts.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import secrets
import signal
import socket
import tempfile
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import ray
from ray.exceptions import RayError, RayTaskError

from contam.detect.parts.part_store import THREADS
from contam.errors import ContamError, IncompleteError, Plain, Public, UsageError
from contam.files.addresses import is_address
from contam.files.listed import state_at

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from contam.corpus.shards import Shard
    from contam.detect.corpus import Corpus
    from contam.detect.parts.part_store import RayCluster
    from contam.detect.parts.pieces import Piece
    from contam.detect.plan import Plan

#: How often a task is begun anew after a process was lost.
_RETRIES: Final = 2
#: Ray says much of a lost process.
_MOST_CHARACTERS: Final = 250
_CONNECT_S: Final = 30.0
_START_CLUSTER: Final = "start one with `ray start`, or check its address"

#: The plans that a process of a node has open, by their names: the last.
_open: dict[str, Plan] = {}


def on_ray(
    plan: Plan, pieces: Sequence[Piece], cluster: RayCluster
) -> Generator[tuple[int, bytes | str], None, None]:
    """The part of each piece with its place in the list, as they are done, or why there is none.

    Raises UsageError when no cluster answers, IncompleteError for a node with other packages.
    """
    from contam.detect.parts.mapped import write_plan
    from contam.detect.parts.pieces import versions

    with _connected(cluster.address):
        cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        threads = min(cluster.workers or THREADS, max(cpus, default=0))
        if not threads:
            raise UsageError(
                "no node of the Ray cluster at {} has a CPU", Public(cluster.address),
                hint=_START_CLUSTER,
            )  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="contam-plan-") as folder:
            write_plan(plan, Path(folder))
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        # In a list: each process fetches it once, and not with every task.
        given = [ray.put(files)]
        del files
        name = secrets.token_hex(8)
        search = ray.remote(num_cpus=threads, max_retries=_RETRIES)(_search)
        tasks = {
            search.remote(name, given, versions(), piece.name, piece.corpus, threads): at
            for at, piece in enumerate(pieces)
        }
        while tasks:
            (done, *_), _ = ray.wait(list(tasks))
            yield tasks.pop(done), _answer(done)


def _answer(task: Any) -> bytes | str:  # noqa: ANN401 - Ray has no types
    """What a task gave, or why it was lost. Raises what stops all of them."""
    try:
        return bytes(ray.get(task))
    except RayTaskError as error:
        if isinstance(error.cause, ContamError):
            raise error.cause from None
        raise
    except RayError as error:
        return f"lost {_RETRIES + 1} times on the Ray cluster: {_last_line(error)}"


def _search(
    plan: str,
    given: Sequence[Any],
    needed: Mapping[str, str],
    name: str,
    corpus: Corpus,
    threads: int,
) -> bytes:
    """Search a piece, on a node.

    plan   its name;  given  a reference to its files
    needed  what must be the same on all nodes
    """
    from contam.memory import tune_command

    tune_command()  # before anything heavy is imported
    from contam.detect.parts.mapped import open_plan
    from contam.detect.parts.part_store import part_bytes
    from contam.detect.parts.pieces import versions
    from contam.detect.parts.search import search_piece
    from contam.detect.warm import warmup_scan
    from contam.kernels.warm_up import compile_once

    here = versions()
    if other := [one for one in needed if here[one] != needed[one]]:
        raise IncompleteError(
            "{} has another {}: {}, the driver {}", Public(platform.node()), Public(other[0]),
            Public(here[other[0]]), Public(needed[other[0]]),
            hint="install the same on every node",
        )  # fmt: skip
    if plan not in _open:
        _open.clear()
        # Arrays straight from Ray are read-only, for which the kernels would be compiled anew.
        with tempfile.TemporaryDirectory(prefix="contam-plan-") as folder:
            for file, data in ray.get(given[0]).items():
                Path(folder, file).write_bytes(data)
            _open[plan] = open_plan(Path(folder))
        compile_once("scan", warmup_scan, None)
    return part_bytes(search_piece(_open[plan], name, _here(corpus), workers=threads))


def _here(corpus: Corpus) -> Corpus:
    """The corpus with its files as they are on this node: another has other numbers for them.

    One that is not as it was listed stays as it is, and will not be read.
    """

    def seen(shard: Shard) -> Shard:
        if shard.state is None or is_address(shard.uri):
            return shard
        with contextlib.suppress(OSError):
            now = state_at(shard.uri)
            return replace(shard, state=now) if now.stamp == shard.state.stamp else shard
        return shard

    return replace(corpus, shards=tuple(map(seen, corpus.shards)))


@contextlib.contextmanager
def _connected(address: str) -> Iterator[None]:
    """Be connected to a cluster; what was started there ends with the block."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address.startswith("ray://"):
        raise UsageError(
            "{}: only programs on a node of the cluster can be its drivers", Public(address),
            hint="run it on a node, for example with `ray job submit`",
        )  # fmt: skip
    in_main = threading.current_thread() is threading.main_thread()
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():
            # Where nobody listens, Ray would try again and again.
            with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S):
                pass
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            "no Ray cluster at {}: {}", Public(address), Plain(_last_line(error)),
            hint=_START_CLUSTER,
        ) from error  # fmt: skip
    # A thread of Ray's prints there what it knows of lost processes, the last of it as it ends.
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            if in_main:
                # Ray has put its own in its place, which would leave drafts behind.
                signal.signal(signal.SIGTERM, terminate)
            yield
        finally:
            ray.shutdown()


def _last_line(error: BaseException) -> str:
    """What an error of Ray says in the end: the lines before are where it came from."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[-1] if lines else type(error).__name__
    return textwrap.shorten(line, _MOST_CHARACTERS, placeholder=" ...")
