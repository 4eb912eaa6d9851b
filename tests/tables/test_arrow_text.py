"""Every Arrow form of text gives the same flat bytes, and damaged arrays are refused."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.tables.blocks import block_of, pieces, repaired, text_block, texts_of
from contam.tables.ipc import check_sound

TEXTS = ["plain", None, "", "naïve 漢字 🙂", "end"]
EXPECTED = ["plain", "", "", "naïve 漢字 🙂", "end"]

FORMS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
    pa.dictionary(pa.int16(), pa.binary()),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("before", [[], ["skipped", "also skipped"]])
def test_every_form_of_text_and_a_slice_of_it_give_the_same_documents(form, before):
    value_type = form.value_type if pa.types.is_dictionary(form) else form
    array = pa.array([*before, *TEXTS, "after"]).cast(value_type)
    array = array.dictionary_encode() if pa.types.is_dictionary(form) else array
    block = text_block(array.slice(len(before), len(TEXTS)))
    assert texts_of(block) == EXPECTED
    assert (block.n_null, block.n_undecodable, block.undecodable_bytes) == (1, 0, 0)
    assert (block.data.dtype, block.offsets.dtype) == (np.uint8, np.int64)
    assert (block.offsets[0], block.offsets[-1]) == (0, len(block.data))
    assert block.data.flags.c_contiguous
    assert not block.data.flags.writeable
    assert not block.offsets.flags.writeable


def test_bytes_under_a_null_are_not_text():
    offsets = pa.py_buffer(np.array([0, 2, 5, 7], np.int32).tobytes())
    valid = pa.py_buffer(bytes([0b101]))
    array = pa.Array.from_buffers(pa.string(), 3, [valid, offsets, pa.py_buffer(b"aaXXXbb")])
    block = text_block(array)
    assert texts_of(block) == ["aa", "", "bb"]
    assert block.n_null == 1


@pytest.mark.parametrize("form", [pa.string(), pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_that_are_not_utf8_are_replaced_and_counted(form):
    raw = [b"good", b"bad \xff\xfe here", None, b"cut \xe6\xbc", "good é".encode()]
    array = pa.array(raw, pa.binary())
    if form == pa.string():
        array = pa.Array.from_buffers(pa.string(), 5, array.buffers())
    else:
        array = array.cast(form)
    block = text_block(array)
    assert texts_of(block) == [(entry or b"").decode("utf-8", "replace") for entry in raw]
    assert (block.n_null, block.n_undecodable, block.undecodable_bytes) == (1, 2, 4)


def test_a_character_cut_between_two_documents_is_in_neither():
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer("é".encode())])
    block = text_block(array)
    assert texts_of(block) == ["\ufffd", "\ufffd"]
    assert block.n_undecodable == 2


@pytest.mark.parametrize("bounds", [[0, 9, 4], [0, 3, 2]])
def test_offsets_outside_the_data_are_refused(bounds):
    offsets = pa.py_buffer(np.array(bounds, np.int32).tobytes())
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcd")])
    with pytest.raises(ValueError, match="offsets"):
        text_block(array)


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_repair_is_what_python_does_document_by_document(raw):
    block = text_block(pa.array(raw, pa.binary()))
    assert texts_of(block) == [entry.decode("utf-8", "replace") for entry in raw]
    bad = [entry for entry in raw if repaired(entry)[1]]
    assert block.n_undecodable == len(bad)


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 50))
def test_pieces_cover_every_document_once_and_keep_the_limit(sizes, limit):
    block = block_of([b"x" * size for size in sizes])
    runs = pieces(block, limit)
    assert [i for begin, end in runs for i in range(begin, end)] == list(range(len(sizes)))
    for begin, end in runs:
        assert end - begin == 1 or sum(sizes[begin:end]) <= limit


def test_rows_without_a_text_are_told_without_importing_pandas(tmp_path):
    path = tmp_path / "one.parquet"
    pq.write_table(pa.table({"text": ["one", None]}), path)
    code = (
        "import sys, pyarrow.parquet as pq\n"
        "from contam.tables.blocks import text_block\n"
        "(batch,) = pq.ParquetFile(sys.argv[1]).iter_batches()\n"
        "print(text_block(batch.column(0)).n_null, 'pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "False"]


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
