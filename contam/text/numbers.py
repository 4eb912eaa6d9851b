"""Numbers of texts as tokens, known by their hash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

#: Of other scripts every character may be a word.
_NUMBER: Final = re.compile(r"(?<![0-9A-Za-z])[0-9][0-9A-Za-z]*")


def number_hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Sorted token hashes of every word of the texts that begins with an ASCII digit."""
    written: set[str] = set()
    for text in texts:
        written.update(_NUMBER.findall(text))
    hashes = np.unique(tokenize_bytes(" ".join(sorted(written)).encode()).hashes)
    hashes.setflags(write=False)
    return hashes
