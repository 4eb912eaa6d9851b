"""Tables as lines of JSON, in pieces that stay small whatever the rows hold."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from contam.tables.table_pages import TablePages

LONG = 300 << 10


def test_lines_come_in_pieces_of_bounded_size_and_a_long_line_alone(tmp_path):
    rows = [{"at": at, "text": "x" * (LONG if at == 5 else 10_000)} for at in range(300)]
    path = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=200)
    pieces = list(TablePages(path).lines(3, 298))
    assert [json.loads(line) for line in b"".join(pieces).splitlines()] == rows[3:298]
    assert len(pieces) > 10
    for piece in pieces:
        assert piece.count(b"\n") == 1 or len(piece) <= 256 << 10
