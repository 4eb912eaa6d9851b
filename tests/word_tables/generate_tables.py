"""Write the frozen table file from Unicode data and name lists (for maintainers).

``python -m tests.word_tables.generate_tables`` replaces ``contam/text/data/word-5.npz``. Run it only
to make a new normaliser version: the file decides what every token is.
"""

from __future__ import annotations

import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.text.text_tables import NORMALISER, TABLE_FILE
from contam.text.token_hash import token_hash
from tests.word_tables import markup_names
from tests.word_tables.fold_rules import Entry, FoldKind, fold
from tests.word_tables.lookalikes import FIRST, LAST, lookalikes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

N_CODE_POINTS = 0x110000
PAGE_SIZE = 256


def _pack(entry: Entry) -> int:
    return int(entry[0]) | entry[1] << 3


def character_arrays() -> dict[str, NDArray[Any]]:
    """The arrays `page`, `entry` and `expansion`; equal pages and expansions are stored once."""
    expansion: list[int] = []
    expansion_at: dict[tuple[int, ...], int] = {}
    pages: dict[tuple[int, ...], int] = {}
    page = np.zeros(N_CODE_POINTS // PAGE_SIZE, dtype=np.uint16)
    for number in range(page.size):
        packed_page = []
        for code in range(number * PAGE_SIZE, (number + 1) * PAGE_SIZE):
            packed = tuple(_pack(entry) for entry in fold(code))
            if len(packed) == 1:
                packed_page.append(packed[0])
                continue
            if packed not in expansion_at:
                expansion_at[packed] = len(expansion)
                expansion.extend((len(packed), *packed))
            packed_page.append(_pack((FoldKind.EXPANSION, expansion_at[packed])))
        page[number] = pages.setdefault(tuple(packed_page), len(pages))
    return {
        "page": page,
        "entry": np.array(list(pages), dtype=np.int32).reshape(-1),
        "expansion": np.array(expansion, dtype=np.int32),
    }


def confusable_array() -> NDArray[np.uint8]:
    """uint8 by code point - `FIRST`: the Latin letter it passes for, 0 for none."""
    array = np.zeros(LAST - FIRST + 1, dtype=np.uint8)
    for code, value in lookalikes().items():
        array[code - FIRST] = value
    return array


def assigned_ranges() -> NDArray[np.int32]:
    """int32[n, 2]: first and last of each stretch of code points this Unicode version assigns."""
    known = np.array([unicodedata.category(chr(code)) != "Cn" for code in range(N_CODE_POINTS)])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], known, [False])).astype(np.int8)))
    ranges = edges.reshape(-1, 2)
    ranges[:, 1] -= 1
    return ranges.astype(np.int32)


def name_arrays(table: str, values: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """`<table>_keys` (uint64 name hashes, ascending) and `<table>_values` (int32)."""
    by_hash = sorted((token_hash(name.encode("ascii")), value) for name, value in values.items())
    keys = np.array([key for key, _ in by_hash], dtype=np.uint64)
    if np.unique(keys).size != keys.size:
        raise ValueError(f"two names of {table} share a hash")
    return {
        f"{table}_keys": keys,
        f"{table}_values": np.array([value for _, value in by_hash], dtype=np.int32),
    }


def all_arrays() -> dict[str, NDArray[Any]]:
    """Everything in the table file, by name."""
    return {
        "normaliser": np.array(NORMALISER),
        "unicode_version": np.array(unicodedata.unidata_version),
        **character_arrays(),
        "confusable": confusable_array(),
        "assigned": assigned_ranges(),
        **name_arrays("latex_skip", dict.fromkeys(markup_names.LATEX_SKIP, 1)),
        **name_arrays("latex_words", dict.fromkeys(markup_names.LATEX_WORDS, 1)),
        **name_arrays("html_tags", markup_names.HTML_TAGS),
        **name_arrays("attributes", markup_names.ATTRIBUTES),
        **name_arrays("asides", markup_names.ASIDES),
        **name_arrays("entities", markup_names.ENTITIES),
    }


def write(path: Path) -> None:
    """Write the table file; the same Unicode version and lists give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **all_arrays())


if __name__ == "__main__":
    write(TABLE_FILE)
    sys.stderr.write(f"{TABLE_FILE}: Unicode {unicodedata.unidata_version}\n")
