"""Read files of token ids: Megatron and NeMo, datatrove, OLMo, nanoGPT, llm.c and NumPy arrays.

Rows are the documents that an index beside the file tells, the rows of a matrix, or what stands
between two end tokens.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.lib import format as npy

from contam.corpus.formats.base import (
    Chunk,
    CorpusFormat,
    IdRows,
    are_cut,
    decoder_of,
    head_of,
)
from contam.corpus.streams import readable
from contam.errors import COPY_AGAIN, Public, ShardError
from contam.files.listed import ListedPath, opened, state_at, state_of
from contam.tables.columns import ColumnRef
from contam.tables.fields import as_ids
from contam.tables.parquet import RowGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import BufferedReader
    from pathlib import PurePath

    from numpy.typing import NDArray

    from contam.files.disk import FileState
    from contam.text.token_ids import IdDecoder

    Ids = NDArray[np.uint32]

#: Tokens of a part that is read by itself: the documents that begin in it.
GROUP: Final = 1 << 19
_TEXT_BYTES: Final = 4
_STEP: Final = 1 << 16
_LONGEST: Final = 32 << 20
_HEAD: Final = 64

_MEGATRON: Final = b"MMIDIDX\0\0"
_DTYPES: Final = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
_LLM_C: Final = {20240520: "<u2", 20240801: "<u4"}
_LLM_C_BYTES: Final = 1024
_NUMPY: Final = b"\x93NUMPY"
_WHOLE_NUMBERS: Final = re.compile(rb"'[<>|][iu]\d")
_WIDTHS: Final = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}
#: First bytes of other files called .bin: models of PyTorch and GGUF, pickles, ELF. No fewer than
#: four bytes, since ids may begin like that too.
_OTHERS: Final = (
    b"PK\x03\x04", b"\x80\x02\x8a\n", b"\x80\x02}q", b"\x80\x04\x95", b"GGUF", b"ggml", b"\x7fELF"
)  # fmt: skip

_SAMPLES: Final = 24
_SAMPLE_IDS: Final = 1024


class Layout(NamedTuple):
    """Where the ids of a file are.

    dtype   of an id; "" where nothing tells it;  begin  byte of the first one
    ends    int64[rows], the token behind each row; None where an end token tells it
    n       how many ids there must be; None where nothing tells it
    """

    dtype: str
    begin: int
    ends: NDArray[np.int64] | None
    n: int | None = None


class TokenFile(CorpusFormat):
    """Token ids one behind the other."""

    name = "tokens"
    title = "token ids"
    suffixes = (".bin", ".ds", ".npy")

    def no_shard(self, path: PurePath) -> str:
        head = head_of(path)[:_HEAD]
        if path.suffix.lower() == ".npy" and head.startswith(_NUMPY):
            return "" if _WHOLE_NUMBERS.search(head) else "a NumPy array of other values"
        return "no token ids" if head.startswith(_OTHERS) and not _told(str(path)) else ""

    def is_sure(self, path: PurePath) -> bool:
        return _told(str(path))

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        del path
        return (ColumnRef(("tokens",), "tokens", "token ids"),)

    def widths(self, path: str) -> tuple[int, ...]:
        """Bytes that an id may have; only 0 where the format says."""
        layout = _layout(path)
        if layout.dtype:
            return (0,)
        return (2,) if state_of(path).size % 4 else (4, 2)

    def is_cut(self, path: str) -> bool:
        """Rows of one length may, and those that end tokens divide."""
        ends = _layout(path).ends
        return ends is None or are_cut(np.diff(ends, prepend=0))

    def beside(self, path: str) -> tuple[str, ...]:
        """Digests of the files beside it that say what is in it."""
        found = (_read(one) for one in _companions(path) if is_there(one))
        return tuple(hashlib.sha256(data).hexdigest()[:32] for data in found)

    def sample(self, path: str, ref: ColumnRef) -> list[Ids]:
        """Some tokens from all over the file, from where a document begins if that is near."""
        layout, n = _known(path, ref)
        decoder, found = decoder_of(ref), []
        for at in np.unique(np.linspace(0, max(0, n - _SAMPLE_IDS), _SAMPLES, dtype=np.int64)):
            ids = _ids(path, layout, int(at), min(n, int(at) + _SAMPLE_IDS))
            near = np.flatnonzero(decoder.ends_in(ids[: _SAMPLE_IDS // 2]))
            found.append(ids[near[0] + 1 :] if at and len(near) else ids)
        return found

    def row_groups(self, path: str, text: ColumnRef) -> Sequence[RowGroup]:
        _, n = _known(path, text)
        rows = self._rows_before(path, text)
        sizes = [min(GROUP, n - at) * _TEXT_BYTES for at in range(0, n, GROUP)]
        return [RowGroup(b - a, size) for (a, b), size in zip(pairwise(rows), sizes, strict=True)]

    def id_rows(
        self, path: str, ref: ColumnRef, chunk: Chunk, wanted: Sequence[int] | None = None
    ) -> Iterator[IdRows]:
        """The rows that begin in the groups of a chunk, a group at a time."""
        del wanted  # to read them all is as fast
        _, n = _known(path, ref)
        groups = chunk.row_groups
        for group in range(-(-n // GROUP)) if groups is None else groups:
            rows = self._group(path, ref, group)
            if len(rows.offsets) > 1:
                yield rows

    def ids_behind(self, path: str, ref: ColumnRef, chunk: Chunk | None) -> Iterator[Ids]:
        """Yield the ids behind a chunk; none where its rows were read to their end tokens."""
        layout, n = _known(path, ref)
        at = 0 if chunk is None else n
        if chunk is not None and chunk.row_groups and layout.ends is not None:
            rows = self._rows_before(path, ref)[chunk.row_groups[-1] + 1]
            at = int(layout.ends[rows - 1]) if rows else 0
        for begin in range(at, n, _STEP):
            yield _ids(path, layout, begin, min(n, begin + _STEP))

    def _rows_before(self, path: str, ref: ColumnRef) -> tuple[int, ...]:
        """How many rows begin before each group, and in all."""
        layout, n = _known(path, ref)
        if layout.ends is None:
            return _counted(str(path), state_of(path), layout, n, decoder_of(ref))
        edges = [*range(0, n, GROUP), n]
        starts = np.concatenate([[0], layout.ends[:-1]])
        found = np.searchsorted(starts, edges[:-1]).tolist()
        return (*found, len(layout.ends))

    def _group(self, path: str, ref: ColumnRef, group: int) -> IdRows:
        """The rows that begin in a group."""
        layout, n = _known(path, ref)
        begin, stop = group * GROUP, min(n, (group + 1) * GROUP)
        if layout.ends is not None:
            first, last = self._rows_before(path, ref)[group : group + 2]
            edges = np.concatenate([[0], layout.ends])[first : last + 1]
            ids = _ids(path, layout, int(edges[0]), int(edges[-1]))
            return IdRows(ids, edges - edges[0], first=int(edges[0]))
        decoder = decoder_of(ref)
        pieces = [_ids(path, layout, begin, stop)]
        behind_end = not begin or bool(decoder.ends_in(_ids(path, layout, begin - 1, begin))[0])
        starts = _starts(decoder.ends_in(pieces[0]), behind_end=behind_end)
        if not len(starts):
            return IdRows(pieces[0][:0], np.zeros(1, np.int64))
        at = stop
        while at < n and not decoder.ends_in(pieces[-1][-1:]).any():
            piece = _ids(path, layout, at, min(n, at + _STEP))
            cut = np.flatnonzero(decoder.ends_in(piece))
            pieces.append(piece[: cut[0] + 1] if len(cut) else piece)
            at += len(pieces[-1])
            if at - stop > _LONGEST:
                raise ShardError(
                    "{shard}: no end token among {:,} tokens", _LONGEST, shard=path,
                    hint="name the token that ends documents with --special, and its tokenizer"
                    " with --tokenizer",
                )  # fmt: skip
        ids = np.concatenate(pieces)
        # The last document of the group may end inside it, and nothing of the next is there then.
        offsets = np.append(starts, len(ids)) - starts[0]
        return IdRows(ids[starts[0] :], offsets, first=begin + int(starts[0]))


def _starts(is_end: NDArray[np.bool_], *, behind_end: bool) -> NDArray[np.int64]:
    """Where documents begin: at what is no end token and stands behind one."""
    places = np.flatnonzero(is_end) + 1
    if behind_end:
        places = np.append(0, places)
    places = places[places < len(is_end)]
    return places[~is_end[places]]


@lru_cache(maxsize=16)
def _counted(
    path: str, state: FileState, layout: Layout, n: int, decoder: IdDecoder
) -> tuple[int, ...]:
    """How many documents begin before each group, and in all, where end tokens tell them."""
    found = [0]
    behind_end = True
    for at in range(0, n, GROUP):
        is_end = decoder.ends_in(_ids(ListedPath(path, state), layout, at, min(n, at + GROUP)))
        found.append(found[-1] + len(_starts(is_end, behind_end=behind_end)))
        behind_end = bool(is_end[-1])
    return tuple(found)


def _known(path: str, ref: ColumnRef) -> tuple[Layout, int]:
    """The layout of a file whose width of ids is known, and how many there are."""
    layout = _layout(path)
    width = ref.tokens.width if ref.tokens else 0
    if width:
        layout = layout._replace(dtype=_WIDTHS[width])
    n, rest = divmod(state_of(path).size - layout.begin, np.dtype(layout.dtype).itemsize)
    if rest:
        raise _bad(path, f"its size is no multiple of {np.dtype(layout.dtype).itemsize} bytes")
    if layout.n not in (n, None):
        raise _bad(path, f"it has {n:,} tokens, and {layout.n:,} are promised")
    return layout, n


def _layout(path: str) -> Layout:
    with readable(path):
        stamps = tuple(state_at(one).stamp for one in _companions(path) if is_there(one))
        return _laid_out(str(path), state_of(path), stamps)


@lru_cache(maxsize=16)
def _laid_out(path: str, state: FileState, stamps: tuple[str, ...]) -> Layout:
    del stamps  # files beside it that are others
    with opened(ListedPath(path, state)) as file:
        head = file.read(_LLM_C_BYTES)
        if head.startswith(_NUMPY):
            return _numpy(path, file)
    if path.endswith(".bin") and is_there(_companions(path)[0]):
        return _megatron(path, _read(_companions(path)[0]))
    if path.endswith(".ds") and is_there(_companions(path)[0]):
        return _datatrove(path, state.size, _read(_companions(path)[0]))
    magic = int.from_bytes(head[:4], "little")
    if magic in _LLM_C and len(head) == _LLM_C_BYTES:
        promised = int.from_bytes(head[8:12], "little")
        return Layout(_LLM_C[magic], _LLM_C_BYTES, None, promised)
    return Layout("", 0, None)


def _numpy(path: str, file: BufferedReader) -> Layout:
    file.seek(0)
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_column, dtype = read(file)
    except ValueError as error:
        raise _bad(path, "its NumPy header is damaged") from error
    if dtype.kind not in "iu" or by_column or len(shape) not in (1, 2):
        raise _bad(path, f"a NumPy array of {dtype} and {len(shape)} dimensions")
    rows = np.arange(1, shape[0] + 1) * shape[1] if len(shape) > 1 else None
    return Layout(dtype.str, file.tell(), rows, int(np.prod(shape)))


def _megatron(path: str, index: bytes) -> Layout:
    head = len(_MEGATRON) + 8 + 1 + 8 + 8
    if not index.startswith(_MEGATRON) or len(index) < head:
        raise _bad(path, "the .idx beside it is no Megatron index")
    code = index[len(_MEGATRON) + 8]
    n, n_documents = np.frombuffer(index, "<u8", 2, head - 16).tolist()
    least = head + 12 * n + 8 * n_documents
    if code not in _DTYPES or len(index) not in (least, least + n):
        raise _bad(path, "the .idx beside it is damaged or cut off")
    sizes = np.frombuffer(index, "<i4", n, head).astype(np.int64)
    places = np.frombuffer(index, "<i8", n, head + 4 * n)
    documents = np.frombuffer(index, "<i8", n_documents, head + 12 * n)
    stops = np.concatenate([[0], np.cumsum(sizes)])
    fits = (sizes >= 0).all() and (places == stops[:-1] * np.dtype(_DTYPES[code]).itemsize).all()
    if not fits or documents[:1] != [0] or documents[-1] != n or (np.diff(documents) < 0).any():
        raise _bad(path, "the .idx beside it is damaged")
    return Layout(_DTYPES[code], 0, stops[documents[1:]], int(stops[-1]))


def _datatrove(path: str, size: int, index: bytes) -> Layout:
    if len(index) % 8:
        raise _bad(path, "the .ds.index beside it is cut off")
    ends = np.frombuffer(index, "<u8").astype(np.int64)
    n = int(ends[-1]) if len(ends) else 0
    width = size // n if n else 2
    if width not in _WIDTHS or n * width != size or (np.diff(ends) < 0).any():
        raise _bad(path, f"it has {size:,} bytes, which its .ds.index of {n:,} tokens does not fit")
    return Layout(_WIDTHS[width], 0, ends, n)


def _companions(path: str) -> tuple[str, ...]:
    """Files that may lie beside a file and say where documents end."""
    if path.endswith(".bin"):
        return (path[: -len(".bin")] + ".idx",)
    return (path + ".index",) if path.endswith(".ds") else ()


def _told(path: str) -> bool:
    """Whether more than its name says that a file holds token ids."""
    head = head_of(Path(path))[:_HEAD] if not _companions(path) or path.endswith(".bin") else b""
    is_known = head.startswith(_NUMPY) or int.from_bytes(head[:4], "little") in _LLM_C
    beside = (*_companions(path), path[: -len(".npy")] + ".csv.gz")
    return is_known or any(is_there(one) for one in beside)


def is_there(path: str) -> bool:
    """Whether there is a file or an object."""
    try:
        state_at(path)
    except OSError:
        return False
    return True


def lacks_ids(path: PurePath) -> bool:
    """Whether a file is the index of token ids that are not there."""
    name = str(path)
    if name.endswith(".ds.index"):
        return not is_there(name.removesuffix(".index"))
    is_index = name.endswith(".idx") and head_of(path).startswith(_MEGATRON)
    return is_index and not is_there(name.removesuffix(".idx") + ".bin")


def _read(path: str) -> bytes:
    with opened(path) as file:
        return file.read()


def _ids(path: str, layout: Layout, begin: int, end: int) -> Ids:
    dtype = np.dtype(layout.dtype)
    with readable(path), opened(path) as file:
        file.seek(layout.begin + begin * dtype.itemsize)
        data = file.read((end - begin) * dtype.itemsize)
    if len(data) < (end - begin) * dtype.itemsize:
        raise _bad(path, f"it ends before token {end:,}")
    return as_ids(np.frombuffer(data, dtype))


def _bad(path: str, what: str) -> ShardError:
    return ShardError("{shard}: {}", Public(what), shard=path, hint=COPY_AGAIN)
