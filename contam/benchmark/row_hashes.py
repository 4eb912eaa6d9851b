"""Hash the rows of a benchmark's file as lm-eval hashes its documents."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contam.benchmark.jsonrows import read_json
from contam.benchmark.mapping import FieldMap
from contam.benchmark.paths import read_unpacked
from contam.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def row_hashes(sources: Iterable[Mapping[str, Any]]) -> set[str]:
    """The hash of each row of some files of a benchmark, which run.json names with their digests.

    lm-eval's `doc_hash` is the SHA-256 of a row as JSON in two spaces of indentation. A file that
    is no longer there or is another one, and a format other than JSON and Parquet, have none.
    """
    found: set[str] = set()
    for source in sources:
        try:
            found.update(map(_hash, _rows(source)))
        except (BenchmarkError, OSError):
            continue
    return found


def _rows(source: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    path = Path(source["path"])
    file = read_unpacked(path)
    if file.sha256 != source["sha256"]:
        return ()
    if source["format"] == "parquet":
        from contam.tables.input_tables import parquet_rows

        return parquet_rows(path, list, file.data)
    if source["format"].startswith("json"):
        return (row for _, row in read_json(path, file.data, FieldMap({})).rows)
    return ()


def _hash(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, indent=2, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
