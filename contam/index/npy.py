"""The array files of an index: .npy version 1.0 with a header that has exactly one spelling."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER_BYTES: Final = 128
"""Every header is padded to this length, so that data begins at a multiple of every item size."""

_MAGIC: Final = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
_TYPES: Final = frozenset({"<i8", "<u8", "<i4", "<u4", "<u2", "|u1", "<f4"})
_HEADER: Final = re.compile(
    rb"\{'descr': '([<|][iuf][1248])', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,18}), ?([0-9]{1,9})?\), \} *\n"
)


class HeaderError(ValueError):
    """A header that this format does not have."""


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The only header, 128 bytes, of an array of one or two dimensions."""
    code = dtype.newbyteorder("<").str
    if code not in _TYPES or len(shape) not in {1, 2}:
        raise HeaderError(f"no array file holds {dtype} of shape {shape}")
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return _MAGIC + text.ljust(HEADER_BYTES - len(_MAGIC) - 1) + b"\n"


def parse_header(raw: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type and shape that `header` made these bytes of. Raises HeaderError for any other bytes."""
    found = _HEADER.fullmatch(raw, len(_MAGIC))
    if found is None:
        raise HeaderError("the header of the array is not one of ours")
    dtype = np.dtype(found[1].decode())
    shape = tuple(int(size) for size in found.groups()[1:] if size is not None)
    if header(dtype, shape) != raw:
        raise HeaderError("the header of the array is not one of ours")
    return dtype, shape


def little_endian(array: NDArray[Any]) -> NDArray[Any]:
    """The array as it is written: little-endian, C order; a copy only where it differs."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
