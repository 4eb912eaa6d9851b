"""Small indexes for tests, and what they should hold, worked out one document at a time."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from contam.index import build as build_module
from contam.index.array_files import CheckedArray
from contam.index.model import Manifest, Recipe
from contam.index.recipe import load_recipe
from contam.index.writing import intake
from contam.kernels import gram_table
from tests.corpus_files import find_shards
from tests.integration.processes import fixture_texts
from tests.kernels.support import twin_tokens
from tests.twins import grams
from tests.twins import index as twin

if TYPE_CHECKING:
    from pathlib import Path

BASE, SPREAD = int(gram_table.GRAM_BASE), int(gram_table.GRAM_SPREAD)


def recipe_of(**changes) -> Recipe:
    """A recipe of words without MinHash: the guarantee of `standard`, in a small index."""
    plain = {"name": "small", "unit": "word", "gram": 5, "stride": 4, "cap": 10_000}
    normaliser = load_recipe("compact").normaliser
    return Recipe(**{**plain, "normaliser": normaliser, **changes})


def build(corpus, index, recipe=None, *, memory=build_module.DEFAULT_MEMORY, **options) -> Manifest:
    """`build`, which also takes memories so small that a few documents fill a segment."""
    before = build_module.LEAST_MEMORY, build_module._RESERVE, intake.BATCH_BYTES
    build_module.LEAST_MEMORY = build_module._RESERVE = 0
    intake.BATCH_BYTES = min(memory // 10, intake.BATCH_BYTES)
    try:
        return build_module.build(corpus, index, recipe or recipe_of(), memory=memory, **options)
    finally:
        build_module.LEAST_MEMORY, build_module._RESERVE, intake.BATCH_BYTES = before


def some_texts(n: int, first: int = 0) -> list[str]:
    """Short documents, some of them empty or very short."""
    originals = fixture_texts()
    return [
        "" if i % 17 == 3 else " ".join(originals[i % len(originals)].split()[i % 5 : i % 90])
        for i in range(first, first + n)
    ]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def entries_of(text: str, recipe: Recipe) -> list[int]:
    """The entries of one document, by the twins."""
    tokens = twin_tokens(text, recipe.unit)
    hashes = grams.gram_hashes(tokens, recipe.gram, BASE, SPREAD)
    return twin.entries(tokens, hashes, recipe.gram, recipe.stride)


def keys_of(hashes: np.ndarray, gram: int) -> list[int]:
    """The keys of every gram of a text, given by the hashes of its tokens."""
    values = grams.gram_hashes(hashes.tolist(), gram, BASE, SPREAD)
    return [value >> 24 for value in values]


def read_index(folder: Path, manifest: Manifest) -> dict[tuple[str, int], list[int]]:
    """(shard, row) -> entries in the document's order, for an index in which nothing is capped."""
    found: dict[tuple[str, int], list[int]] = {}
    for segment in manifest.segments:
        records = {file.name: file for file in segment.files}
        home = folder / "segments" / segment.id
        arrays = {}
        for name in ("starts", "postings", "doc_entries", "doc_tokens", "doc_crc"):
            opened = CheckedArray(home, records[f"{name}.npy"])
            opened.check_all()
            arrays[name] = opened.array
        ordinals, entries = _entries(arrays["starts"], arrays["postings"])
        assert ordinals.tolist() != [] or segment.n_entries == 0
        flat = np.zeros(segment.n_entries, np.uint64)
        flat[ordinals] = entries
        places = [
            (manifest.shards[span.shard].name, span.first_row + i)
            for span in segment.spans
            for i in range(span.n_rows)
        ]
        for number, place in enumerate(places):
            lo, hi = arrays["doc_entries"][number : number + 2].tolist()
            assert place not in found
            found[place] = flat[lo:hi].tolist()
    return found


def _entries(starts: np.ndarray, postings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    words = postings.astype(np.uint64)
    value = words[:, 0] | (words[:, 1] << np.uint64(16)) | (words[:, 2] << np.uint64(32))
    bucket = np.repeat(np.arange(2**16, dtype=np.uint64), np.diff(starts))
    mask = np.uint64(2**24 - 1)
    entries = (
        (bucket << np.uint64(48)) | ((value & mask) << np.uint64(24)) | (value >> np.uint64(24))
    )
    return (words[:, 3] | (words[:, 4] << np.uint64(16))).astype(np.int64), entries


def crc(text: str) -> int:
    return zlib.crc32(text.encode())


def shard_names(corpus: Path) -> list[str]:
    return [shard.name for shard in find_shards([corpus])]
