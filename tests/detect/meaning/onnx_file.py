"""A small ONNX model: a table of vectors by token, in the format's own bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_FLOAT, _INT64 = 1, 7


def _varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _field(number, value):
    """A field of a protocol buffer: a number, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _value(name, kind, *shape):
    dims = b"".join(
        _field(1, _field(1, dim) if isinstance(dim, int) else _field(2, dim)) for dim in shape
    )
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, dims)))


def table_model(table: np.ndarray, *, extra_input: str = "attention_mask") -> bytes:
    """A model that gives `table[input_ids]`, and does not look at its other input."""
    dims = b"".join(_field(1, size) for size in table.shape)
    weights = dims + _field(2, _FLOAT) + _field(8, "table")
    weights += _field(9, table.astype("<f4").tobytes())
    node = b"".join(
        (_field(1, "table"), _field(1, "input_ids"), _field(2, "hidden"), _field(4, "Gather"))
    )
    graph = _field(1, node) + _field(2, "g") + _field(5, weights)
    for name in ("input_ids", extra_input):
        graph += _field(11, _value(name, _INT64, "batch", "tokens"))
    graph += _field(12, _value("hidden", _FLOAT, "batch", "tokens", table.shape[1]))
    return _field(1, 8) + _field(8, _field(1, "") + _field(2, 13)) + _field(7, graph)
