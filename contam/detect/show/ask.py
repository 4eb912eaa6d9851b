"""Offer a result folder as SQL views: verdicts, evidence, items and documents."""

from __future__ import annotations

import contextlib
import re
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contam.corpus.batches import read_chunk
from contam.corpus.chunks import cut_shard
from contam.corpus.columns import METADATA_NAMES
from contam.corpus.documents import read_metadata
from contam.detect.report import load_report
from contam.detect.show.reread import Library
from contam.errors import Plain, Remedy, ShardError, UsageError
from contam.files.addresses import is_address
from contam.tables.sql import Database, copied_select, shard_select, write_documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.corpus.columns import Selection
    from contam.corpus.shards import Shard
    from contam.detect.report import Report

_STRINGS = ("string", "large_string")
#: Types whose text form is the same in the corpus reader and in the database.
_PLAIN = (*_STRINGS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_NAMES_DOCUMENTS = re.compile(r"\bdocuments\b", re.IGNORECASE)


@contextlib.contextmanager
def open_database(folder: str | Path, query: str) -> Iterator[Database]:
    """The views that a query over one result folder can use.

    The shards are opened only when the query names `documents`. Raises OutputError when the
    folder holds no result, and UsageError when documents are asked for and a shard is gone or
    has changed: an answer from the rest would look whole.
    """
    report = load_report(folder)
    with tempfile.TemporaryDirectory(prefix="contam-sql-") as scratch:
        database = Database()
        try:
            for name in ("verdicts", "evidence", "items"):
                database.add_table(name, getattr(report, name))
            if _NAMES_DOCUMENTS.search(query):
                database.add_documents(_sources(report, Path(scratch)))
            yield database
        finally:
            database.close()


def _sources(report: Report, scratch: Path) -> list[str]:
    library = Library(report.run, report.folder)
    found = []
    for number, entry in enumerate(report.run["inputs"]["shards"]):
        opened = library.shard(entry["name"])
        if isinstance(opened, str):
            raise UsageError(
                "the view documents cannot be made: {}",
                Plain(opened),
                remedy=Remedy.PUT_SHARD_BACK,
            )
        shard, selection = opened
        if selection.text is None:
            continue
        fields = _plain_fields(shard, selection)
        if fields is not None:
            found.append(shard_select(shard.uri, shard.name, selection.text.path, fields))
            continue
        path = scratch / f"{number}.parquet"
        try:
            write_documents(path, _batches(shard, selection))
        except ShardError as error:
            raise UsageError(
                "the view documents cannot be made: {}", error.statement, remedy=error.remedies
            ) from error
        found.append(copied_select(path))
    return found


def _plain_fields(shard: Shard, selection: Selection) -> dict[str, str | None] | None:
    """The column of each metadata field, where the database reads all as the corpus reader does."""
    text = selection.text
    if (
        is_address(shard.uri)
        or not shard.kind.sql
        or text is None
        or text.type_name not in _STRINGS
    ):
        return None
    if selection.others and not selection.named:
        return None
    fields: dict[str, str | None] = {}
    for name in METADATA_NAMES:
        refs = selection.metadata.get(name, ())
        if len(refs) > 1 or any(len(r.path) > 1 or r.type_name not in _PLAIN for r in refs):
            return None
        fields[name] = refs[0].path[0] if refs else None
    return fields


def _batches(shard: Shard, selection: Selection) -> Iterator[dict[str, list[Any]]]:
    for chunk in cut_shard(0, shard, selection):
        for batch in read_chunk(chunk, [shard], selection):
            rows = range(batch.first_row, batch.first_row + batch.n_docs)
            metas = read_metadata(shard, selection, rows)
            data = batch.data.tobytes()
            ends = batch.offsets.tolist()
            yield {
                "shard": [shard.name] * len(rows),
                "row": list(rows),
                "document_id": [
                    meta.document_id or f"{shard.name}:{row}"
                    for meta, row in zip(metas, rows, strict=True)
                ],
                "url": [meta.url for meta in metas],
                "date": [meta.date for meta in metas],
                "source": [meta.source for meta in metas],
                "language": [meta.language for meta in metas],
                "text": [data[start:end].decode() for start, end in pairwise(ends)],
            }
