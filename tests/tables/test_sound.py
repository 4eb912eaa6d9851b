"""Damaged arrays are refused before anything is looked up in them; bytes that are no text are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from contam.tables.ipc import check_sound

NO_TEXT = b"caf\xe9"
#: Offsets of three values with 8 bytes of data.
DAMAGED = {
    "far away": [0, 1 << 30, 1 << 30, 8],
    "behind the end": [0, 3, 6, 400],
    "not ascending": [0, 6, 3, 8],
    "before the beginning": [0, -8, 6, 8],
}


def batch(array):
    return pa.record_batch({"column": array})


def texts(offsets, kind="string"):
    width = np.int64 if kind.startswith("large") else np.int32
    buffers = [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(2 * NO_TEXT)]
    return pa.Array.from_buffers(pa.type_for_alias(kind), 3, buffers)


def nested(inner):
    of_structs = pa.StructArray.from_arrays([inner, inner], ["a", "b"])
    return pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), of_structs)


@pytest.mark.parametrize("offsets", DAMAGED.values(), ids=DAMAGED.keys())
@pytest.mark.parametrize("wrap", [lambda array: array, nested], ids=["plain", "nested"])
@pytest.mark.parametrize("kind", ["string", "large_binary"])
def test_offsets_that_do_not_fit_are_refused(offsets, wrap, kind):
    with pytest.raises(pa.ArrowInvalid):
        check_sound(batch(wrap(texts(offsets, kind))))


def test_an_index_of_no_value_is_refused():
    indices = pa.array([0, 7], pa.int32())
    with pytest.raises(pa.ArrowInvalid):
        check_sound(batch(pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)))


@pytest.mark.parametrize(
    "array",
    [
        texts([0, 4, 4, 8]),
        nested(texts([0, 4, 4, 8])),
        pa.array([NO_TEXT, None], pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
        pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([NO_TEXT]).view(pa.string())),
        pa.array([{"a": 1}, None]),
        pa.array([[1], None]),
    ],
    ids=lambda array: str(array.type),
)
def test_bytes_that_are_no_text_and_all_other_values_are_sound(array):
    check_sound(batch(array))
    check_sound(batch(array).slice(1))
