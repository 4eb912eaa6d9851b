"""What an index finds of what the scan finds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from index_figures import INDEXED, POLICY, side_by_side
from labelled_scan import query_pack
from quality_measures import judged

from contam.detect.query import MAY_BE_MISSED
from contam.index.build import build
from contam.index.open import Index
from contam.index.shards import describe

if TYPE_CHECKING:
    from pathlib import Path

Record = dict[str, Any]


def build_index(data: Path, folder: Path, workers: int) -> float:
    """Index `data`/corpus by the recipe `complete`, anew; seconds of all processors."""
    started = time.process_time()
    build(data / "corpus", folder, "complete", workers=workers, overwrite=True)
    return round(time.process_time() - started, 1)


def _is_open(reason: str) -> bool:
    return reason.startswith(MAY_BE_MISSED)


def measure_index(data: Path, folder: Path, scanned: Record, workers: int) -> Record:
    """Ask the index of `data`/corpus in `folder`; the part of quality.json about it.

    scanned  what the scan's policy of the same name is measured at
    """
    started = time.process_time()
    answer = query_pack(data, folder, [POLICY], workers=workers)
    seconds = round(time.process_time() - started, 1)
    answers = {INDEXED: judged(data, [POLICY], answer)[POLICY]}
    described = describe(Index.open(folder))
    return {
        "recipe": described["recipe"],
        "n_text_bytes": described["n_text_bytes"],
        "n_documents": described["n_documents"],
        "n_index_bytes": described["n_index_bytes"],
        "documents_read": answer.run["index"]["documents_read"],
        "open": sum(map(_is_open, answer.verdicts.column("reason").to_pylist())),
        "n_items": answer.verdicts.num_rows,
        "cpu_seconds": seconds,
        "recall": side_by_side([scanned, *answers.values()]),
        "answers": answers,
    }
