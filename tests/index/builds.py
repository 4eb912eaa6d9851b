"""Small indexes for tests, and what they should hold, worked out one document at a time."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from contam.index import build as build_module
from contam.index.model import Manifest, Recipe
from contam.index.recipe import load_recipe
from contam.index.segment import Segment
from contam.index.writing import intake
from contam.kernels import gram_table
from tests.integration.processes import fixture_texts
from tests.kernels.support import twin_tokens
from tests.twins import grams
from tests.twins import index as twin

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

BASE, SPREAD = int(gram_table.GRAM_BASE), int(gram_table.GRAM_SPREAD)


def recipe_of(**changes) -> Recipe:
    """A recipe of words without MinHash that takes every fourth gram."""
    plain = {"name": "small", "unit": "word", "gram": 5, "stride": 4, "cap": 10_000, "key_bits": 36}
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
    """The keys of one document, by the twins."""
    tokens = twin_tokens(text, recipe.unit)
    hashes = grams.gram_hashes(tokens, recipe.gram, BASE, SPREAD)
    return sorted(set(twin.keys(hashes, recipe.stride, recipe.key_bits)))


def keys_of(hashes: np.ndarray, gram: int, key_bits: int = 36) -> list[int]:
    """The keys of every gram of a text, given by the hashes of its tokens."""
    return twin.keys(grams.gram_hashes(hashes.tolist(), gram, BASE, SPREAD), 1, key_bits)


def read_index(folder: Path, manifest: Manifest) -> dict[tuple[str, int], list[int]]:
    """(shard, row) -> keys of the document, for an index in which nothing is capped."""
    found: dict[tuple[str, int], list[int]] = {}
    for record in manifest.segments:
        segment = Segment(folder, record, manifest.recipe)
        pairs, capped = segment.grams.unpacked()
        assert not len(capped)
        places = [
            (manifest.shards[span.shard].name, span.first_row + i)
            for span in record.spans
            for i in range(span.n_rows)
        ]
        assert not found.keys() & set(places)
        found |= {place: [] for place in places}
        mask = (1 << twin.DOCUMENT_BITS) - 1
        for pair in pairs.tolist():
            found[places[pair & mask]].append(pair >> twin.DOCUMENT_BITS)
    return found


def crc(text: str) -> int:
    return zlib.crc32(text.encode())
