"""`verify` looks into the MinHash part: whether it can be true, and whether its texts say so."""

from __future__ import annotations

import numpy as np
import pytest

from contam.errors import IndexDamageError
from contam.index.build import build
from contam.index.change import compact, retire
from contam.index.manifest import read_manifest
from contam.index.open import Index
from contam.index.verify import verify
from tests.index.test_verify import of_index, put, rewrite

ENOUGH = 400
"""Documents to sample: each of the few is among them."""


@pytest.fixture
def folder(repository, tmp_path):
    """An index of the golden corpus that lies where its manifest says."""
    golden = repository / "indexes" / "golden" / "v1-word-4"
    recipe = read_manifest(golden / "index").recipe
    build(golden / "corpus", tmp_path / "ix", recipe, workers=1)
    return tmp_path / "ix"


def test_a_sound_index_is_sound_and_its_documents_are_looked_up(folder):
    report = verify(folder, sample=ENOUGH)
    assert report.ok, report.findings
    assert report.n_documents == sum(
        segment.n_documents for segment in read_manifest(folder).segments
    )


def test_so_is_one_that_was_compacted_without_some_documents(folder):
    retire(folder, documents=["part-1/4", "third/0"])
    compact(folder)
    assert verify(folder, sample=ENOUGH).ok


def test_a_signature_of_another_text_is_noticed(folder):
    rewrite(folder, "minhash_signatures", lambda a: put((1, 7), a[1, 7] ^ 1)(a))
    assert [one for one in of_index(verify(folder, sample=ENOUGH)) if "signature" in one.fact]


def test_a_window_that_lost_an_entry_is_noticed(folder):
    rewrite(folder, "minhash_entries", lambda a: put(9, a[8])(a))
    facts = [one.fact for one in of_index(verify(folder, sample=ENOUGH))]
    assert facts
    assert all("a window of it is not in the index" in fact for fact in facts)


@pytest.mark.parametrize("name", ["starts", "entries", "windows", "capped", "signatures"])
def test_an_array_that_is_missing_or_of_another_shape_is_noticed_at_opening(folder, name):
    rewrite(folder, f"minhash_{name}", lambda a: np.zeros((3, 2), a.dtype))
    with pytest.raises(IndexDamageError, match=f"minhash_{name}"):
        Index.open(folder)
