"""Make one small text, which compiles or loads whatever real ones need."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT: Final = (
    "seven small kites flew over the old harbour wall before the rain came in from the west"
)


@contextmanager
def small_corpus() -> Iterator[Path]:
    """The file of a corpus of one document, alone in a folder that is there for the block."""
    with tempfile.TemporaryDirectory(prefix="contam-warm-") as folder:
        corpus = Path(folder, "corpus.jsonl")
        # A letter that is not ASCII: spans in bytes and in characters differ.
        corpus.write_bytes(orjson.dumps({"id": "1", "text": f"{TEXT} é {TEXT}"}))
        yield corpus
