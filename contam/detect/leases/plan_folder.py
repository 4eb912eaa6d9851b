"""Write a plan to a folder, and open it for workers or for a merge.

plan.json    what was asked, the leases, and the digests of the other files
corpus.bin   shards in the state they were listed in, their columns and chunks
views.bin    the items as they are matched: tokens and gram tables, mapped by every worker
items.bin    the items themselves, which only a merge reads
tokenizer-N.json  copies of the tokenizer files, if any
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import contam
from contam import kernels
from contam.detect.leases.cut import Lease, cut_leases
from contam.detect.leases.mapped import MappedFile, TreeError, write_tree
from contam.detect.leases.node_folder import node_folder
from contam.detect.partial import question_of
from contam.detect.plan import Plan
from contam.errors import ASK_STORE_LATER, OutputError, Place, Public
from contam.files.addresses import Address
from contam.files.publish import output_errors, publishing
from contam.files.single import fingerprint, read_file
from contam.files.stores import StoreError
from contam.files.uploads import fetch, place, store_errors
from contam.text.bpe import load_tokenizer
from contam.text.text_tables import NORMALISER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contam.benchmark.items import Benchmark
    from contam.detect.match.token_view import TokenView
    from contam.detect.scan import Corpus
    from contam.text.bpe import FileTokenizer

_COPY_PLAN_OR_PLAN_AGAIN: Final = "copy the whole plan folder again, or make the plan again"
_GIVE_PLAN_FOLDER: Final = "give with --plan the folder that `contam plan` wrote"
_PLAN_AGAIN_HERE: Final = (
    "install the same on every machine, or make the plan again with what is here"
)


PLAN_FILE: Final = "plan.json"
FORMAT: Final = "contam-plan-1"
#: One is made of a run's `unit`; views share it.
_TOKENIZERS: Final = ("tokenizer-1.json", "tokenizer-2.json")
_FACTS: Final = frozenset(("format", "versions", "machine", "question", "leases", "files"))
_CORPUS, _VIEWS, _ITEMS = "corpus.bin", "views.bin", "items.bin"


@dataclass(frozen=True, kw_only=True)
class OpenPlan:
    """A plan that was written, with the corpus it is for.

    question  digest of what is asked of which corpus: parts of another one do not fit
    plan      without the items, unless it was opened for a merge
    is_own    whether the shards were listed for this very run, so that nothing of their state may
              differ; in another run and on other machines it is the stamps that count
    """

    folder: Path
    question: str
    leases: tuple[Lease, ...]
    plan: Plan
    corpus: Corpus
    is_own: bool = False


def machine() -> str:
    """The kind of processor: only on the same kind are all sums rounded the same way."""
    return f"{platform.machine()}-{sys.byteorder}"


@cache
def _kernels_digest() -> str:
    """Digest of the source of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(kernels.__path__[0]).glob("*.py")):
        digest.update(f"{path.name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def versions() -> dict[str, str]:
    """What must be the same wherever a plan is worked on."""
    return {
        "contam": contam.__version__,
        "normaliser": NORMALISER,
        "kernels": _kernels_digest(),
        "numpy": np.__version__,
    }


def write_plan(
    plan: Plan,
    corpus: Corpus,
    out: str | Path,
    *,
    lease_bytes: int | None = None,
    overwrite: bool = False,
    for_merge: bool = True,
) -> dict[str, Any]:
    """Write a plan into a folder, whole or not at all; returns the content of plan.json.

    lease_bytes  text of a lease, None for the usual: see `cut_leases`
    for_merge    whether it gets the items with their texts, which only a merge needs

    Raises OutputError when the folder cannot be written or holds something.
    """
    tokenizers = _tokenizers(plan.views)
    names = [*tokenizers, _CORPUS, _VIEWS, *([_ITEMS] if for_merge else [])]
    shown = place(out)
    with (
        publishing(
            shown,
            names=[*names, PLAN_FILE],
            last=PLAN_FILE,
            overwrite=overwrite,
            earlier=_TOKENIZERS,
        ) as folder,
        output_errors(shown),
    ):
        for name, tokenizer in tokenizers.items():
            shutil.copyfile(tokenizer.path, folder / name)
            if fingerprint(folder / name)["sha256"] != tokenizer.sha256:
                raise OutputError(
                    "{}: changed after it was read", Place(tokenizer.path),
                    hint="let nobody write to it meanwhile",
                )  # fmt: skip
        trees: Mapping[str, object] = {
            _CORPUS: corpus,
            _VIEWS: (plan.parameters, plan.policies, plan.view_of, plan.views),
            _ITEMS: plan.benchmarks if for_merge else None,
        }
        for name in names[len(tokenizers) :]:
            with (folder / name).open("wb") as file:
                write_tree(file, trees[name], tokenizers)
        leases = cut_leases(corpus.chunks, lease_bytes)
        record = {
            "tool": "contam",
            "format": FORMAT,
            "versions": versions(),
            "machine": machine(),
            "question": question_of_leases(plan, corpus, leases),
            "policies": [policy.spec.id for policy in plan.policies],
            "n_items": len(plan.items),
            "n_shards": len(corpus.shards),
            "shards_failed": [failure.name for failure in corpus.coverage.failures],
            "n_chunks": len(corpus.chunks),
            "n_bytes": sum(lease.n_bytes for lease in leases),
            "leases": [asdict(lease) for lease in leases],
            "files": {name: fingerprint(folder / name) for name in names},
        }
        (folder / PLAN_FILE).write_text(json.dumps(record, indent=1) + "\n", "ascii")
    return record


def question_of_leases(plan: Plan, corpus: Corpus, leases: Iterable[Lease]) -> str:
    """Digest of what decides what a part holds: the question, versions, stamps, and the leases.

    A digest of a shard does not see its middle: a stamp does.
    """
    stamps = [shard.state.stamp if shard.state else "" for shard in corpus.shards]
    cuts = [lease.first for lease in leases]
    asked = json.dumps([question_of(plan, corpus), versions(), machine(), stamps, cuts])
    return hashlib.sha256(asked.encode()).hexdigest()


def open_plan(folder: str | Path, *, with_items: bool = False) -> OpenPlan:
    """Open a plan that `write_plan` wrote.

    with_items  whether the items are read, which a merge needs and a worker does not

    Raises OutputError for a folder without a finished plan, a plan of another version or another
    kind of processor, and for files that are not those that were written.
    """
    home = place(folder)
    raw, record = _read_record(home)
    files = {name: known for name, known in record["files"].items() if with_items or name != _ITEMS}
    if not isinstance(home, Address):
        return _opened(home, home, record, files, with_items=with_items)
    # One name for all processes of a machine that open this plan at the same time. What they have
    # mapped stays when the last of them leaves the block.
    digest = hashlib.sha256(json.dumps(sorted(files)).encode() + raw).hexdigest()[:32]
    name = f"contam-plan-{os.geteuid()}-{digest}"
    with (
        output_errors(Path(tempfile.gettempdir())),
        node_folder(name, lambda local: _fetch(home, files, local)) as local,
    ):
        return _opened(local, home, record, files, with_items=with_items)


def _fetch(home: Address, files: Iterable[str], local: Path) -> None:
    """Copy files of a plan from a store. Raises OutputError."""
    for name in files:
        with store_errors(home / name):
            fetch(home / name, local / name)


def _opened(
    folder: Path,
    home: Path,
    record: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Any]],
    *,
    with_items: bool,
) -> OpenPlan:
    """The plan of the folder or address `home`, whose files are in a folder of this machine."""
    for name, known in files.items():
        try:
            found = fingerprint(folder / name)
        except OSError as error:
            raise OutputError(
                "{}: cannot be read: {}", home / name, Public(error.strerror),
                hint=_COPY_PLAN_OR_PLAN_AGAIN,
            ) from error  # fmt: skip
        if found != known:
            raise OutputError(
                "{} is not the file that was written with the plan", home / name,
                hint=_COPY_PLAN_OR_PLAN_AGAIN,
            )  # fmt: skip
    known_tokenizers = {
        name: load_tokenizer(str(folder / name)) for name in files if name.endswith(".json")
    }
    corpus: Corpus = _tree(folder / _CORPUS, {})
    leases = _leases(home / PLAN_FILE, record["leases"], len(corpus.chunks))
    parameters, policies, view_of, views = _tree(folder / _VIEWS, known_tokenizers)
    benchmarks: tuple[Benchmark, ...] = ()
    if with_items:
        benchmarks = _tree(folder / _ITEMS, {})
    plan = Plan.of_parts(
        parameters=parameters,
        benchmarks=benchmarks,
        policies=policies,
        views=views,
        view_of=view_of,
    )
    return OpenPlan(
        folder=home,
        question=record["question"],
        leases=leases,
        plan=plan,
        corpus=corpus,
    )


def worker_files(folder: Path) -> dict[str, bytes]:
    """What a worker on another machine needs of a plan: the content of each file by its name.

    Raises OutputError for a folder without a finished plan, and for files that cannot be read.
    """
    _, record = _read_record(folder)
    names = [name for name in record["files"] if name != _ITEMS]
    found = {}
    for name in (*names, PLAN_FILE):
        try:
            found[name] = read_file(folder / name)
        except OSError as error:
            raise OutputError(
                "{}: cannot be read: {}", folder / name, Public(error.strerror),
                hint=_COPY_PLAN_OR_PLAN_AGAIN,
            ) from error  # fmt: skip
    return found


def _read_record(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The content of plan.json, and what it says."""
    path = folder / PLAN_FILE
    raw = b""
    try:
        raw = read_file(path)
        record = json.loads(raw)
    except StoreError as error:
        raise OutputError("{}: {}", path, Public(error.strerror), hint=ASK_STORE_LATER) from error
    except OSError as error:
        raise OutputError(
            "{} holds no finished plan: {}", folder, Public(error.strerror),
            hint=_GIVE_PLAN_FOLDER,
        ).of_call() from error  # fmt: skip
    except ValueError:
        record = None
    if not (
        isinstance(record, dict)
        and record.keys() >= _FACTS
        and isinstance(record["versions"], dict)
        and isinstance(record["files"], dict)
    ):
        raise OutputError("{} is no plan", path, hint=_GIVE_PLAN_FOLDER)
    # Names become paths when a plan is fetched.
    if not {*record["files"]} <= {*_TOKENIZERS, _CORPUS, _VIEWS, _ITEMS}:
        raise OutputError("{} is no plan", path, hint=_GIVE_PLAN_FOLDER)
    if record["format"] != FORMAT:
        raise OutputError(
            "{}: a plan in another format ({})", folder, record["format"],
            hint=_PLAN_AGAIN_HERE,
        )  # fmt: skip
    here = {**versions(), "machine": machine()}
    made = {**record["versions"], "machine": record["machine"]}
    other = [name for name in here if here[name] != made.get(name)]
    if other:
        raise OutputError(
            "{}: made with another {}: {}, here {}", folder, Public(other[0]),
            Public(made.get(other[0])), Public(here[other[0]]), hint=_PLAN_AGAIN_HERE,
        )  # fmt: skip
    return raw, record


def _leases(path: Path, found: object, n_chunks: int) -> tuple[Lease, ...]:
    """The leases that plan.json lists, which together are every chunk once, in order."""
    try:
        leases = tuple(Lease(**lease) for lease in found)  # type: ignore[attr-defined]
        ends = [0, *(lease.end for lease in leases)]
        whole = [lease.first for lease in leases] == ends[:-1] and ends[-1] == n_chunks
        sound = all(
            lease.number == number and lease.first < lease.end and lease.n_bytes >= 0
            for number, lease in enumerate(leases, 1)
        )
    except TypeError:
        whole = sound = False
    if not (whole and sound):
        raise OutputError(
            "{}: the leases of the plan are not the whole corpus, once and in order", path,
            hint=_COPY_PLAN_OR_PLAN_AGAIN,
        )  # fmt: skip
    return leases


def _tree(path: Path, known: Mapping[str, object]) -> Any:  # noqa: ANN401 - what was written
    try:
        return MappedFile.tree(path, known)
    except OSError as error:
        raise OutputError(
            "{}: cannot be read: {}", path, Public(error.strerror),
            hint=_COPY_PLAN_OR_PLAN_AGAIN,
        ) from error  # fmt: skip
    except TreeError as error:
        raise OutputError(
            "{}: {}", path, Place(str(error)), hint=_COPY_PLAN_OR_PLAN_AGAIN
        ) from error


def _tokenizers(views: Iterable[TokenView]) -> dict[str, FileTokenizer]:
    """The tokenizer files that views use, by the names of their copies."""
    used = [tokenizer for view in views for tokenizer in (view.tokenizer, view.reads_with)]
    distinct = {id(tokenizer): tokenizer for tokenizer in used if tokenizer is not None}
    return dict(zip(_TOKENIZERS, distinct.values(), strict=False))
