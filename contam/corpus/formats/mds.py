"""Read MDS shards of MosaicML streaming: a head of offsets and columns, then a record each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.formats import records
from contam.corpus.formats.jsonl import noted_columns
from contam.corpus.streams import stream
from contam.tables.columns import ColumnRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import BufferedReader

    from numpy.typing import NDArray

    from contam.corpus.streams import ByteSpan

_MOST_HEAD: Final = 64 << 20
_TEXTS: Final = ("str", "str_int", "str_float", "str_decimal")
_ARRAYS: Final = {
    8: "uint8", 9: "int8", 16: "uint16", 17: "int16", 18: "float16", 32: "uint32", 33: "int32",
    34: "float32", 64: "uint64", 65: "int64", 66: "float64",
}  # fmt: skip


class Mds(records.ReadOnlyRecords):
    """MDS, as `streaming.MDSWriter` writes it."""

    name = "mds"
    title = "MDS"
    suffixes = (".mds",)

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        if found := noted_columns(record for _, record in self.numbered(path, None)):
            return found
        with stream(path) as file:
            fields = self._head(path, file)[1]
            file.read()
        return tuple(ColumnRef((name,), "null", kind) for name, kind, _ in fields)

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, records.Record]]:
        del span  # a file is one chunk
        with stream(path) as file:
            offsets, fields = self._head(path, file)
            for row, length in enumerate(np.diff(offsets).tolist()):
                raw = self._taken(path, file, length)
                try:
                    yield row, _record(raw, fields)
                except (ValueError, TypeError, IndexError, KeyError) as error:
                    raise self.bad(path, row, "damaged") from error
            if file.read(1):
                raise self.bad(path, len(offsets) - 1, "bytes follow the last record")

    def _head(
        self, path: str, file: BufferedReader
    ) -> tuple[NDArray[np.int64], list[tuple[str, str, int | None]]]:
        """Where each record begins and the last ends; name, encoding and size of each column."""
        n = int.from_bytes(self._taken(path, file, 4), "little")
        if 4 * n > _MOST_HEAD:
            raise self.bad(path, 0, "its head is damaged")
        offsets = np.frombuffer(self._taken(path, file, 4 * (n + 1)), "<u4").astype(np.int64)
        size = int(offsets[0]) - 4 * (n + 2)
        if (np.diff(offsets) < 0).any() or not 0 <= size <= _MOST_HEAD:
            raise self.bad(path, 0, "its head is damaged")
        try:
            about = json.loads(self._taken(path, file, size))
            told = (about[f"column_{what}"] for what in ("names", "encodings", "sizes"))
            return offsets, list(zip(*told, strict=True))
        except (ValueError, KeyError, TypeError) as error:
            raise self.bad(path, 0, "its head is damaged") from error

    def _taken(self, path: str, file: BufferedReader, size: int) -> bytes:
        if size > records.MAX_RECORD_BYTES:
            raise self.bad(path, 0, "longer than {} MiB", records.MAX_RECORD_BYTES >> 20)
        data = file.read(size)
        if len(data) < size:
            raise self.bad(path, 0, "the file ends in the middle of a record or of its head")
        return data


def _record(raw: bytes, fields: Sequence[tuple[str, str, int | None]]) -> records.Record:
    sizes: list[int] = []
    at = 0
    for _, _, size in fields:
        sizes.append(int.from_bytes(raw[at : at + 4], "little") if size is None else size)
        at += 4 * (size is None)
    found: records.Record = {}
    for (name, encoding, _), size in zip(fields, sizes, strict=True):
        if at + size > len(raw):
            raise ValueError(name)
        found[name] = _value(raw[at : at + size], encoding)
        at += size
    if at != len(raw):
        raise ValueError("more bytes than its columns have")
    return found


def _value(raw: bytes, encoding: str) -> Any:  # noqa: ANN401 - of many types
    kind, _, rest = encoding.partition(":")
    if kind == "json":
        return json.loads(raw)
    if kind in _TEXTS:
        return raw.decode("utf-8", "surrogateescape")
    if kind == "ndarray":
        dtype, _, shape = rest.partition(":")
        return _array(raw, dtype, is_shaped=bool(shape))
    if kind == "bytes":
        # llm-foundry keeps ids as the bytes of int64; of other bytes nothing is known.
        ids = np.frombuffer(raw, "<i8", len(raw) // 8)
        is_known = 8 * len(ids) == len(raw) and ((ids >= 0) & (ids < 1 << 32)).all()
        return ids.tolist() if is_known else raw
    if kind.startswith(("int", "uint", "float")):
        dtype = "int64" if kind == "int" else kind
        return np.frombuffer(raw, np.dtype(dtype).newbyteorder("<")).tolist()[0]
    return None


def _array(raw: bytes, dtype: str, *, is_shaped: bool) -> list[Any]:
    """The values of an array; its type and shape stand before it where the column has none."""
    at = 0
    if not dtype:
        dtype, at = _ARRAYS[raw[0]], 1
    if not is_shaped:
        at += 1 + ((raw[at] >> 2) << (raw[at] & 3))
    return list(np.frombuffer(raw[at:], np.dtype(dtype).newbyteorder("<")).tolist())
