"""Documents as the bytes of a corpus file, for every format that contam reads."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from contam.corpus.columns import Selection
from contam.corpus.coverage import ShardFailure
from contam.corpus.documents import read_documents
from contam.corpus.opening import cut_shard, open_shards
from contam.corpus.shards import survey
from contam.errors import ShardError

if TYPE_CHECKING:
    from collections.abc import Callable


def find_shards(paths):
    """The shards that a scan of these paths would read."""
    return survey(paths)[0]


def select_all(shards, text=None):
    """The columns to read of each shard, and the shards that cannot be read."""
    found = open_shards(shards, text)
    return found.selections, found.failures


def plan_chunks(shards, selection):
    """The chunks of the shards, by one selection or one a shard, and those that have none."""
    chunks, failures = [], []
    for number, shard in enumerate(shards):
        chosen = selection if isinstance(selection, Selection) else selection[number]
        try:
            chunks += cut_shard(number, shard, chosen) if chosen else ()
        except ShardError as error:
            failures.append(ShardFailure.of(number, shard.name, error))
    return chunks, failures


WET_HEADERS = {
    "id": "WARC-Record-ID",
    "url": "WARC-Target-URI",
    "date": "WARC-Date",
    "language": "WARC-Identified-Content-Language",
}


def delimited(texts, delimiter=",", quoting=csv.QUOTE_MINIMAL):
    """A table with one column."""
    return table([{"text": text} for text in texts], delimiter, quoting, ["text"])


def table(rows, delimiter=",", quoting=csv.QUOTE_MINIMAL, names=None):
    """A table with these columns, or one for every name that some row has."""
    out = io.StringIO(newline="")
    names = names or list(dict.fromkeys(name for row in rows for name in row))
    # The writer of Python 3.11 quotes a carriage return only if lines end with one.
    end = "\r\n" if any("\r" in (text or "") for row in rows for text in row.values()) else "\n"
    writer = csv.DictWriter(out, names, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def wet_record(kind, content, **headers):
    """One record of a WARC file; a header that is None is left out."""
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{0:032x}>",
        "WARC-Date": "2024-02-20T21:24:06Z",
        "Content-Type": "text/plain",
        "Content-Length": str(len(content)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"{name}: {value}\r\n" for name, value in fields.items() if value is not None]
    return f"WARC/1.0\r\n{''.join(lines)}\r\n".encode() + content + b"\r\n\r\n"


def wet_records(texts):
    """What a WET file of these texts consists of: a description, and a record for each text."""
    return wet_pages([{"text": text} for text in texts])


def wet_pages(rows):
    """The same for rows that may have an id, an address, a date and a language."""
    info = wet_record("warcinfo", b"software: none\r\n", Content_Type="application/warc-fields")
    pages = []
    for number, row in enumerate(rows, 1):
        headers = {WET_HEADERS[name]: value for name, value in row.items() if name != "text"}
        headers.setdefault("WARC-Record-ID", f"<urn:uuid:{number:032x}>")
        pages.append(wet_record("conversion", row["text"].encode(), **headers))
    return [info, *pages]


def _parquet(rows):
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), out, row_group_size=2)
    return bytes(out.getvalue())


def _arrow(rows):
    out = pa.BufferOutputStream()
    found = pa.Table.from_pylist(rows)
    with ipc.new_file(out, found.schema) as writer:
        writer.write_table(found, max_chunksize=2)
    return bytes(out.getvalue())


def _mds(rows):
    """As `streaming.MDSWriter` writes columns of text."""
    names = sorted(rows[0]) if rows else ["text"]
    about = {"column_names": names, "column_encodings": ["str"] * len(names)}
    about = json.dumps({**about, "column_sizes": [None] * len(names)}).encode()
    records = []
    for row in rows:
        cells = [row[name].encode() for name in names]
        sizes = np.array([len(cell) for cell in cells], "<u4")
        records.append(sizes.tobytes() + b"".join(cells))
    offsets = np.cumsum([4 * (len(rows) + 2) + len(about), *map(len, records)]).astype("<u4")
    return np.uint32(len(rows)).tobytes() + offsets.tobytes() + about + b"".join(records)


#: Format -> the bytes of a file with some rows: `text`, and `id`, `url`, `date`, `language`.
WRITERS: dict[str, Callable[[list[dict[str, str]]], bytes]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "jsonl": lambda rows: b"".join(json.dumps(row).encode() + b"\n" for row in rows),
    "csv": table,
    "tsv": lambda rows: table(rows, "\t"),
    "warc": lambda rows: b"".join(wet_pages(rows)),
    "mds": _mds,
}

#: What a file has room for, of formats that lack some of these fields: `"name": ("id", "text")`.
FIELDS: dict[str, tuple[str, ...]] = {}


def read_texts(shard, selection, rows):
    """The texts of these rows, in the order asked."""
    return [document.text for document in read_documents(shard, selection, rows)]
