"""Read structs of Thrift's compact protocol as plain values, and write them back.

Format: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
What is read and written back unchanged is the same struct: unknown fields are kept, too.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_NUMBERS: Final = (I16, I32, I64)
_LONG_LIST: Final = 15
_LONGEST_STEP: Final = 15
_MOST_DEPTH: Final = 32
_MOST_VARINT_BITS: Final = 63


class ThriftError(ValueError):
    """Bytes that are no struct."""


class Value(NamedTuple):
    """A value and its type: int, bytes, `Listed`, a struct, or raw bytes of a double."""

    kind: int
    value: Any


class Listed(NamedTuple):
    """A list or set: the type of its entries, and they."""

    kind: int
    entries: list[Any]


class Mapped(NamedTuple):
    """A map: the types of its keys and values, and the pairs."""

    key: int
    value: int
    pairs: list[tuple[Any, Any]]


Struct = dict[int, Value]
"""Fields by number, in their order."""


def read_struct(raw: bytes | memoryview, at: int = 0) -> tuple[Struct, int]:
    """The struct that begins there, and where it ends. Raises ThriftError."""
    reader = _Reader(raw, at)
    try:
        return reader.struct(0), reader.at
    except IndexError:
        raise ThriftError("a struct ends too early") from None


def write_struct(struct: Struct) -> bytes:
    """A struct as bytes."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


class _Reader:
    def __init__(self, raw: bytes | memoryview, at: int) -> None:
        self._raw = raw
        self.at = at

    def struct(self, depth: int) -> Struct:
        if depth > _MOST_DEPTH:
            raise ThriftError("a struct is nested too deeply")
        found: Struct = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._number()
            found[number] = Value(kind, None if kind in (TRUE, FALSE) else self._value(kind, depth))
        return found

    def _byte(self) -> int:
        byte = self._raw[self.at]
        self.at += 1
        return byte

    def _take(self, n_bytes: int) -> bytes:
        end = self.at + n_bytes
        if end > len(self._raw):
            raise ThriftError("a struct ends too early")
        taken = bytes(self._raw[self.at : end])
        self.at = end
        return taken

    def _varint(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 128:
            found |= (byte & 127) << shift
            shift += 7
            if shift > _MOST_VARINT_BITS:
                raise ThriftError("a number of more than 64 bits")
        return found | byte << shift

    def _number(self) -> int:
        zigzag = self._varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def _value(self, kind: int, depth: int) -> Any:  # noqa: ANN401 - values of any type
        if kind in _NUMBERS:
            return self._number()
        if kind == BINARY:
            return self._take(self._varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET, MAP):
            return self._map(depth) if kind == MAP else self._list(depth)
        if kind not in (DOUBLE, BYTE, TRUE, FALSE):
            raise ThriftError("a value of an unknown type")
        # Truth values are bytes in lists.
        return self._take(8) if kind == DOUBLE else self._byte()

    def _list(self, depth: int) -> Listed:
        head = self._byte()
        n_entries = self._varint() if head >> 4 == _LONG_LIST else head >> 4
        if n_entries > len(self._raw) - self.at:
            raise ThriftError("a list that is longer than what holds it")
        kind = head & 15
        return Listed(kind, [self._value(kind, depth + 1) for _ in range(n_entries)])

    def _map(self, depth: int) -> Mapped:
        n_entries = self._varint()
        kinds = self._byte() if n_entries else 0
        if n_entries > len(self._raw) - self.at:
            raise ThriftError("a map that is longer than what holds it")
        pairs = [
            (self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1))
            for _ in range(n_entries)
        ]
        return Mapped(kinds >> 4, kinds & 15, pairs)


def _put_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for number, (kind, value) in sorted(struct.items()):
        step = number - last
        if 0 < step <= _LONGEST_STEP:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_number(out, number)
        last = number
        if kind not in (TRUE, FALSE):
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:  # noqa: ANN401 - values of any type
    if kind in _NUMBERS:
        _put_number(out, value)
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind in (LIST, SET):
        n_entries = len(value.entries)
        out.append(min(n_entries, _LONG_LIST) << 4 | value.kind)
        if n_entries >= _LONG_LIST:
            _put_varint(out, n_entries)
        for entry in value.entries:
            _put(out, value.kind, entry)
    elif kind == DOUBLE:
        out += value
    elif kind in (BYTE, TRUE, FALSE):
        out.append(value)
    else:
        _put_varint(out, len(value.pairs))
        if value.pairs:
            out.append(value.key << 4 | value.value)
        for key, entry in value.pairs:
            _put(out, value.key, key)
            _put(out, value.value, entry)


def _put_number(out: bytearray, number: int) -> None:
    _put_varint(out, number << 1 if number >= 0 else ~(number << 1))


def _put_varint(out: bytearray, number: int) -> None:
    while number > 127:  # noqa: PLR2004 - seven bits a byte
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
