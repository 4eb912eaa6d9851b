"""Load the frozen character and name tables of the normaliser."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import InternalError, Plain, Public

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_REINSTALL: Final = "the installation is damaged: reinstall contam"


NORMALISER: Final = "word-5"
"""Version of fold rules, scanning rules, name lists and hash together; stamped into outputs."""

TABLE_FILE: Final = Path(__file__).parent / "data" / f"{NORMALISER}.npz"


class FoldKind(IntEnum):
    """What an entry of the character table does to the word being read."""

    SEPARATOR = 0
    LETTER = 1
    DIGIT = 2
    SINGLE = 3
    TRANSPARENT = 4
    EXPANSION = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTables:
    """The tables as read-only, C-ordered arrays; docs/normaliser.md explains them.

    page         uint16[0x1100]: code point >> 8 -> page number
    entry        int32[n_pages * 256]: kind in the low 3 bits, payload above
    expansion    int32[m]: a count, then as many entries; EXPANSION payloads point at the count
    confusable   uint8[0x1C90] by code point - 0x370: Latin letter, bit 7 when both cases agree
    assigned     int32[k, 2]: first and last of the code points known to this Unicode version
    names        of each of NAMES, uint64 hashes of lower-cased names, ascending, and int32 values:
                 1; for tags 1 separates, 2 transparent, 3 belongs to a cue; for attributes 1 text,
                 2 none; between words 1 a sound, 2 the level of a log, 3 a word of English; for
                 entities the code point
    """

    normaliser: str
    unicode_version: str
    page: NDArray[np.uint16]
    entry: NDArray[np.int32]
    expansion: NDArray[np.int32]
    confusable: NDArray[np.uint8]
    assigned: NDArray[np.int32]
    names: Mapping[str, tuple[NDArray[np.uint64], NDArray[np.int32]]]


#: The lists of names.
NAMES: Final = ("latex_skip", "latex_words", "html_tags", "attributes", "asides", "entities")


def read_tables(path: Path) -> TextTables:
    """Read a table file; raises InternalError when it is missing, damaged or of another version."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        normaliser = str(arrays.pop("normaliser"))
        unicode_version = str(arrays.pop("unicode_version"))
        for array in arrays.values():
            array.setflags(write=False)
        names = {name: (arrays.pop(f"{name}_keys"), arrays.pop(f"{name}_values")) for name in NAMES}
        tables = TextTables(
            normaliser=normaliser, unicode_version=unicode_version, names=names, **arrays
        )
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InternalError(
            "cannot read the text tables {}: {}", path, Plain(error), hint=_REINSTALL
        ) from error
    if tables.normaliser != NORMALISER:
        raise InternalError(
            "text tables {} are of version {}, not {}", path, Public(tables.normaliser),
            Public(NORMALISER),
            hint=_REINSTALL,
        )  # fmt: skip
    return tables


@cache
def load_tables() -> TextTables:
    """The tables of `NORMALISER`, read once per process (a few milliseconds)."""
    return read_tables(TABLE_FILE)
