"""A tree comes back as it was, and a file that is not one runs nothing."""

import contextlib
import io
import os
import pickle
from dataclasses import dataclass
from pathlib import PosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.corpus.coverage import ShardFailure
from contam.corpus.formats.base import Chunk
from contam.corpus.listing import Skipped
from contam.detect.match.matching import Matcher
from contam.detect.parts.mapped import TreeError, map_tree, write_tree
from contam.facts import Place
from contam.files.addresses import checked
from contam.kernels.match_rows import ViewSpec
from contam.server.jobs.store import JobStore


def written(path, tree, known=None):
    with path.open("wb") as file:
        write_tree(file, tree, known)
    return path


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64, np.float32, np.bool_])
@pytest.mark.parametrize("shape", [(0,), (7,), (3, 4), (0, 4)])
def test_arrays_come_back_aligned_and_as_they_were(tmp_path, dtype, shape):
    array = (np.arange(np.prod(shape)) % 3).astype(dtype).reshape(shape)
    found = map_tree(written(tmp_path / "a", (b"odd", array, array[::2])))
    for mine, theirs in zip((array, array[::2]), found[1:], strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)
        assert theirs.flags.aligned
        assert theirs.flags.c_contiguous == theirs.flags["C_CONTIGUOUS"]


def test_our_objects_come_back(tmp_path):
    failure = ShardFailure.noted(
        0, "a", "it is gone", "copy the whole plan folder again, or make the plan again"
    )
    skipped = Skipped(checked("s3://bucket/a.txt"), Place("not a shard"))
    view = ViewSpec(unit=1, seed=5, min_run=8, stride=1)
    tree = (Chunk(1, (2, 3), 4, 5, 6), view, failure, skipped, {"a": None})
    assert map_tree(written(tmp_path / "a", tree)) == tree


class Call:
    """Pickled, it is a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@dataclass
class Foreign:
    """A class of somebody else."""


@pytest.mark.parametrize(
    "tree",
    [
        Call(os.mkdir, "made"),
        Call(eval, "__import__('os').mkdir('made')"),
        Call(getattr, "text", "encode"),
        Call(np.load, "made"),
        Call(JobStore, PosixPath("made")),
        Call(map_tree, PosixPath("a")),
        Call(Matcher, None),
        Foreign(),
    ],
)
def test_a_file_that_names_anything_else_is_refused(tmp_path, monkeypatch, tree):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "a", tree)
    with pytest.raises(TreeError):
        map_tree(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("contam.files.single", "write_file"),
        ("contam.files.single", "Path"),
        ("contam.cli.main", "signal.Signals"),
        ("contam.detect.parts.mapped", "pickle.Pickler"),
    ],
)
def test_names_of_others_in_our_modules_are_refused(tmp_path, module, name):
    body = pickle.PROTO + b"\x04" + b"".join(
        pickle.SHORT_BINUNICODE + bytes([len(text)]) + text.encode() for text in (module, name)
    ) + pickle.STACK_GLOBAL + pickle.STOP  # fmt: skip
    file = io.BytesIO()
    write_tree(file, None)
    head = file.getvalue()[:8]
    path = tmp_path / "a"
    path.write_bytes(head + len(body).to_bytes(8, "little") + bytes(8) + body)
    with pytest.raises(TreeError):
        map_tree(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = written(tmp_path_factory.mktemp("tree") / "a", (Chunk(1, None, 4, 5, 6), np.arange(99)))
    return path.read_bytes()


@given(st.data())
def test_a_damaged_file_is_refused_or_read_and_never_raises_anything_else(
    tmp_path_factory, whole, data
):
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    if data.draw(st.booleans()):
        changed = changed[:at]
    else:
        changed[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(changed)
    with contextlib.suppress(TreeError):
        map_tree(path)
