"""Keep a tree of our objects and their arrays in bytes, or in a file that is mapped into memory.

The arrays lie behind each other as they are in memory, so that all processes of a machine share
them; the rest is a pickle. Reading it makes objects of this package and NumPy arrays, and nothing
else: a file that names any other function or class is refused before it is called.

A plan that other processes open is a folder of `views.bin`, which is such a tree without the texts
of the items, and of copies of its tokenizer files, `tokenizer-N.json`.
"""

from __future__ import annotations

import errno
import io
import mmap
import pickle
import shutil
import struct
from dataclasses import is_dataclass
from enum import Enum
from pathlib import PosixPath, PurePath
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.item_table import ItemTable
from contam.detect.plan import Plan
from contam.errors import OutputError, Place
from contam.files.single import fingerprint
from contam.text.bpe import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import IO

_VIEWS: Final = "views.bin"
_MAGIC: Final = b"contam01"
_HEAD: Final = struct.Struct("<8sQQ")
#: Arrays begin at multiples of it, as NumPy's own do.
_ALIGN: Final = 64
_NUMPY: Final = frozenset(
    (
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
    )
)
_PLAIN: Final = {
    ("builtins", "frozenset"): frozenset,
    ("builtins", "set"): set,
    ("pathlib", "PosixPath"): PosixPath,
    ("pathlib._local", "PosixPath"): PosixPath,
}


#: Where the classes of our trees are; elsewhere in the package, some open files and databases.
_HOMES: Final = (
    "contam.benchmark.", "contam.corpus.",
    "contam.detect.", "contam.facts", "contam.files.addresses", "contam.files.disk",
    "contam.kernels.", "contam.tables.columns", "contam.tables.records",
)  # fmt: skip


class TreeError(ValueError):
    """A file that holds no tree, or one that names what no tree of ours has."""


class _Pickler(pickle.Pickler):
    def __init__(
        self, file: io.BytesIO, buffers: list[pickle.PickleBuffer], known: Mapping[int, str]
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self._known = known

    def persistent_id(self, thing: object) -> str | None:
        return self._known.get(id(thing))


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, file: io.BytesIO, buffers: list[memoryview], known: Mapping[str, object]
    ) -> None:
        super().__init__(file, buffers=buffers)
        self._known = known

    def persistent_load(self, name: Any) -> object:  # noqa: ANN401 - as pickle declares it
        if name not in self._known:
            raise TreeError(f"nothing is known as {name!r}")
        return self._known[name]

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as pickle declares it
        if (module, name) in _PLAIN:
            return _PLAIN[module, name]
        if (module, name) in _NUMPY:
            return super().find_class(module, name)
        if module.startswith(_HOMES) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module and _is_harmless(found):
                return found
        raise TreeError(f"{module}.{name} has no place in such a file")


def _is_harmless(kind: type) -> bool:
    """Whether a call of a class only keeps what it is given; a file may have it called."""
    return (
        is_dataclass(kind)
        or issubclass(kind, (tuple, str, Enum, PurePath))
        or kind.__init__ is object.__init__
        or kind.__module__.startswith("contam.detect.policies.")
    )


def write_tree(file: IO[bytes], tree: object, known: Mapping[str, object] | None = None) -> None:
    """Write a tree of dataclasses, tuples, plain values and arrays.

    known  objects by name that are not written: whoever reads the tree gives them again
    """
    body, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    _Pickler(body, buffers, {id(thing): name for name, thing in (known or {}).items()}).dump(tree)
    views = [buffer.raw() for buffer in buffers]
    file.write(_HEAD.pack(_MAGIC, body.tell(), len(views)))
    file.write(struct.pack(f"<{len(views)}Q", *(view.nbytes for view in views)))
    file.write(body.getvalue())
    at = _HEAD.size + 8 * len(views) + body.tell()
    for view in views:
        file.write(bytes(-at % _ALIGN))
        file.write(view)
        at += -at % _ALIGN + view.nbytes


def map_tree(path: Path, known: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - what was written
    """The tree in a file, whose arrays stay there: what is written to them stays in this process.

    Raises OSError, TreeError for any other file, and MemoryError where addresses run out.
    """
    with path.open("rb") as file:
        if not file.seek(0, io.SEEK_END):
            raise TreeError("the file is empty")
        try:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        except OSError as error:
            if error.errno == errno.ENOMEM:
                raise MemoryError from error  # or it would look like a fault of the disk
            raise
    return read_tree(view, known)


def read_tree(view: memoryview, known: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - what was written
    """The tree that `write_tree` wrote, whose arrays are parts of this memory. Raises TreeError.

    known  the objects by name that were not written

    Arrays of memory that is only read would have another type, for which every kernel would be
    compiled anew.
    """
    try:
        magic, n_body, n_buffers = _HEAD.unpack_from(view)
        sizes = struct.unpack_from(f"<{n_buffers}Q", view, _HEAD.size)
        begin = _HEAD.size + 8 * n_buffers
        at = begin + n_body
        buffers = []
        for size in sizes:
            at += -at % _ALIGN
            buffers.append(view[at : at + size])
            at += size
        if magic == _MAGIC and at == len(view):
            body = io.BytesIO(view[begin : begin + n_body])
            return _Unpickler(body, buffers, known or {}).load()
    except TreeError:
        raise
    except Exception as error:
        raise TreeError(str(error)) from error
    raise TreeError("the file is not whole")


def write_plan(plan: Plan, folder: Path) -> None:
    """Write what a worker needs of a plan into a folder.

    Raises OSError, and OutputError for a tokenizer file that changed.
    """
    used = [one for view in plan.views for one in (view.tokenizer, view.reads_with) if one]
    distinct = {id(tokenizer): tokenizer for tokenizer in used}.values()
    known: dict[str, object] = {}
    for number, tokenizer in enumerate(distinct, 1):
        path = folder / f"tokenizer-{number}.json"
        shutil.copyfile(tokenizer.path, path)
        if fingerprint(path)["sha256"] != tokenizer.sha256:
            raise OutputError(
                "{}: changed after it was read", Place(tokenizer.path),
                hint="let nobody write to it meanwhile",
            )  # fmt: skip
        known[path.name] = tokenizer
    with (folder / _VIEWS).open("wb") as file:
        write_tree(file, (plan.parameters, plan.policies, plan.view_of, plan.search_views), known)


def open_plan(folder: Path) -> Plan:
    """The plan in a folder, without its items; afterwards the folder may be removed."""
    known = {path.name: load_tokenizer(str(path)) for path in folder.glob("tokenizer-*.json")}
    parameters, policies, view_of, views = map_tree(folder / _VIEWS, known)
    return Plan(
        parameters=parameters,
        benchmarks=(),
        items=ItemTable.of(()),
        policies=policies,
        views=tuple(view.for_judging() for view in views),
        search_views=views,
        view_of=view_of,
    )
