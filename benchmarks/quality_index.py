"""What an index finds of what the scan finds: by its n-grams alone, and with its sketches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from index_figures import ANSWERS, POLICY, side_by_side, sizes
from labelled_scan import query_pack
from quality_measures import judged

from contam.index.build import build
from contam.index.describe import describe
from contam.index.open import Index

if TYPE_CHECKING:
    from pathlib import Path

Record = dict[str, Any]


def build_index(data: Path, folder: Path, workers: int) -> float:
    """Index `data`/corpus by the recipe `standard`, anew; seconds of all processors."""
    started = time.process_time()
    build(data / "corpus", folder, "standard", workers=workers, overwrite=True)
    return round(time.process_time() - started, 1)


def measure_index(data: Path, folder: Path, scanned: Record, workers: int) -> Record:
    """Ask the index of `data`/corpus in `folder` both ways; the part of quality.json about it.

    scanned  what the scan's policy of the same name is measured at
    """
    answers, read, seconds = {}, {}, {}
    for name, near in ANSWERS.items():
        started = time.process_time()
        answer = query_pack(data, folder, [POLICY], workers=workers, near=near)
        seconds[name] = round(time.process_time() - started, 1)
        read[name] = answer.run["index"]["documents_read"]
        answers[name] = judged(data, [POLICY], answer)[POLICY]
    described = describe(Index.open(folder))
    return {
        "recipe": described["recipe"],
        "n_text_bytes": described["n_text_bytes"],
        "n_documents": described["n_documents"],
        "bytes": sizes(described["bytes_by_file"]),
        "documents_read": read,
        "cpu_seconds": seconds,
        "recall": side_by_side([scanned, *answers.values()]),
        "answers": answers,
    }
