"""Near copies without a long run are proposed, however the corpus is cut, and nothing else is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contam.detect.indexed import candidates
from contam.detect.indexed.candidates import Windows
from contam.errors import IndexDamageError
from contam.index import minhash
from contam.index.array_files import CheckedArray, write_array
from contam.text.tokenizer import tokenize_bytes
from tests.kernels.support import make_item, view_of

QUESTION = (
    "a baker in Lyon sells forty loaves every morning and twice as many rolls in the afternoon; "
    "how many pieces leave her shop on a day when it rains and half of the rolls are kept back"
)
#: Every sixth word is another one: no run is longer than five words.
EDITED = " ".join(
    f"changed{at}" if at % 6 == 5 else word for at, word in enumerate(QUESTION.split())
)


if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Piece:
    """As much of a segment as is asked here."""

    folder: Path
    arrays: dict[str, CheckedArray]


def filler(seed: int, n_words: int = 300) -> str:
    return " ".join(f"w{word}" for word in np.random.default_rng(seed).integers(0, 9000, n_words))


CORPUS = [filler(1), f"{filler(2)} {EDITED} {filler(3)}", "", filler(4), QUESTION, filler(5)]


def sketch(texts: list[str]) -> minhash.MinHashSketch:
    tokens = [tokenize_bytes(text.encode()).hashes for text in texts]
    starts = np.cumsum([0, *map(len, tokens)]).astype(np.int64)
    flat = np.concatenate([np.empty(0, np.uint64), *tokens])
    return minhash.sketch(flat, starts)


def piece(folder: Path, arrays: dict[str, np.ndarray]) -> Piece:
    folder.mkdir()
    records = [write_array(folder, name, array) for name, array in arrays.items()]
    opened = {record.name.removesuffix(".npy"): CheckedArray(folder, record) for record in records}
    return Piece(folder, opened)


def segment(folder: Path, texts: list[str]) -> Piece:
    return piece(folder, minhash.sketch_arrays([sketch(texts)]))


def ask(questions: list[str], pieces: list[Piece], dead=None) -> list[list[int]]:
    view = view_of([make_item(i, question=text) for i, text in enumerate(questions)])
    if dead is None:
        dead = [np.zeros(len(one.arrays["minhash_windows"]) - 1, np.bool_) for one in pieces]
    found = candidates.near_copies(
        view, [Windows.of(one, gone) for one, gone in zip(pieces, dead, strict=True)]
    )
    return [found.get(one.folder, np.empty(0)).tolist() for one in pieces]


def test_an_edited_copy_and_a_whole_one_are_proposed_and_nothing_else(tmp_path):
    assert ask([QUESTION], [segment(tmp_path / "s", CORPUS)]) == [[1, 4]]


@pytest.mark.parametrize("at", range(len(CORPUS) + 1))
def test_how_the_corpus_is_cut_into_segments_decides_nothing(tmp_path, at):
    parts = [segment(tmp_path / "a", CORPUS[:at]), segment(tmp_path / "b", CORPUS[at:])]
    first, second = ask([QUESTION], parts)
    assert [*first, *(at + number for number in second)] == [1, 4]


def test_a_retired_document_is_not_proposed_and_weighs_nothing(tmp_path, monkeypatch):
    one = segment(tmp_path / "s", [*CORPUS, *[QUESTION] * 4])
    dead = np.zeros(len(CORPUS) + 4, np.bool_)
    dead[len(CORPUS) :] = True
    monkeypatch.setattr(candidates, "MOST_WINDOWS", 3)
    assert 4 not in ask([QUESTION], [one])[0]
    assert ask([QUESTION], [one], [dead]) == [[1, 4]]


def test_of_many_documents_the_best_are_proposed_and_all_that_tie(tmp_path, monkeypatch):
    monkeypatch.setattr(candidates, "MOST_DOCUMENTS", 2)
    one = segment(tmp_path / "s", [EDITED, QUESTION, filler(1), QUESTION, QUESTION])
    assert ask([QUESTION], [one]) == [[1, 3, 4]]


@pytest.mark.parametrize("name", ["starts", "entries", "windows", "capped"])
def test_a_damaged_array_is_noticed_before_it_is_used(tmp_path, name):
    arrays = dict(minhash.sketch_arrays([sketch(CORPUS)]))
    arrays["minhash_capped"] = np.array([16], np.uint32)
    one = piece(tmp_path / "s", arrays)
    path = tmp_path / "s" / f"minhash_{name}.npy"
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 4
    path.write_bytes(raw)
    with pytest.raises(IndexDamageError, match=f"minhash_{name}"):
        ask([QUESTION], [one])
