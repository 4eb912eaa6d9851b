"""Documents that hold a phrase are counted as reading them all counts them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from contam.detect.indexed.index_reader import open_index
from contam.errors import UsageError
from contam.index.build import build
from contam.index.change import add, retire
from contam.index.recipe import load_recipe

WORDS = ("lantern", "harbour", "quay", "moth")


def written(folder, name, documents):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))


def texts(rng, n):
    """Short documents of few words, in which runs of five come back."""
    return [" ".join(rng.choice(WORDS, rng.integers(3, 40))) for _ in range(n)]


@pytest.mark.parametrize("cap", [2, 5, 512])
def test_a_phrase_is_counted_as_reading_every_document_counts_it(tmp_path, cap):
    rng = np.random.default_rng(cap)
    shards = {f"{at}.jsonl": texts(rng, 30) for at in range(3)}
    other = texts(rng, 20)
    written(tmp_path / "one", "0.jsonl", shards["0.jsonl"])
    recipe = replace(load_recipe("complete"), cap=cap)
    build(tmp_path / "one", tmp_path / "first", recipe, workers=1)
    for name in ("1.jsonl", "2.jsonl"):
        written(tmp_path / "one", name, shards[name])
        add(tmp_path / "first", tmp_path / "one", workers=1)
    gone = ("1.jsonl", 4)
    retire(tmp_path / "first", documents=[":".join(map(str, gone))])
    written(tmp_path / "two", "far.jsonl", other)
    build(tmp_path / "two", tmp_path / "second", recipe, workers=1)
    reader = open_index([tmp_path / "first", tmp_path / "second"])
    held = {
        (name, row): text.split()
        for name, own in {**shards, "far.jsonl": other}.items()
        for row, text in enumerate(own)
        if (name, row) != gone
    }
    n_exact = 0
    for _ in range(60):
        phrase = list(rng.choice(WORDS, rng.integers(5, 9)))
        wanted = {
            place
            for place, words in held.items()
            if any(words[at : at + len(phrase)] == phrase for at in range(len(words)))
        }
        found = reader.count(", ".join(phrase).upper())
        assert set(found.documents) <= wanted
        assert not found.exact or set(found.documents) == wanted
        n_exact += found.exact
    assert n_exact == 60 if cap == 512 else n_exact > 0


def test_a_document_of_two_indexes_is_counted_once(tmp_path):
    written(tmp_path / "one", "0.jsonl", ["a lantern over the quay by night"] * 3)
    for name, gone in (("first", 0), ("second", 1)):
        build(tmp_path / "one", tmp_path / name, load_recipe("complete"), workers=1)
        retire(tmp_path / name, documents=[f"0.jsonl:{gone}"])
    found = open_index([tmp_path / "first", tmp_path / "second"]).count("a lantern over the quay")
    assert found.exact
    assert sorted(row for _, row in found.documents) == [0, 1, 2]


def test_a_phrase_that_cannot_be_counted_is_refused(tmp_path):
    written(tmp_path / "one", "0.jsonl", ["a lantern over the quay by night"])
    build(tmp_path / "one", tmp_path / "whole", load_recipe("complete"), workers=1)
    build(tmp_path / "one", tmp_path / "small", load_recipe("compact"), workers=1)
    reader = open_index(tmp_path / "whole")
    assert len(reader.count("a lantern over the quay").documents) == 1
    with pytest.raises(UsageError):
        reader.count("a lantern over the")
    with pytest.raises(UsageError):
        open_index(tmp_path / "small").count("a lantern over the quay by night")


def test_documents_that_cannot_be_read_leave_a_count_open(tmp_path):
    written(tmp_path / "one", "0.jsonl", ["a lantern over the quay by night"])
    build(tmp_path / "one", tmp_path / "index", load_recipe("complete"), workers=1)
    reader = open_index(tmp_path / "index")
    (tmp_path / "one" / "0.jsonl").unlink()
    found = reader.count("a lantern over the quay")
    assert (found.documents, found.exact) == ((), False)
