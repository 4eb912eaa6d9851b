"""Reads damaged Parquet files as a scan does, in a process of its own, which one of them may end.

Says a line for each: its number and what came of it. `same`: the texts of the sound file.
`refused`: an error that names the file. `other`: texts, and they are others.
"""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from contam.corpus.batches import read_chunk
from contam.corpus.columns import select_columns
from contam.errors import ContamError, ShardError
from contam.tables.parquet import promised
from tests.corpus_files import find_shards, plan_chunks
from tests.fuzz.parquet_shapes import TEXTS, mutant

#: Seconds for one file, which takes some thousandths: a reader that hangs is ended by the alarm.
_PATIENCE_S = 120
_MEMORY = 8 << 30


def read(folder: Path) -> list[str]:
    (shard,) = find_shards([folder])
    promised(shard.uri)
    selection = select_columns(shard)
    units, failures = plan_chunks([shard], [selection])
    if failures:
        raise ShardError(failures[0].reason, shard=shard.name)
    return [
        bytes(batch.data[begin:end]).decode()
        for unit in units
        for batch in read_chunk(unit, [shard], [selection])
        for begin, end in pairwise(batch.offsets.tolist())
    ]


def outcome(folder: Path) -> str:
    try:
        found = read(folder)
    except ContamError:
        return "refused"
    return "same" if found == TEXTS else "other"


def main(first: int, end: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, end):
            name, where, content = mutant(number)
            Path(folder, "a.parquet").write_bytes(content)
            signal.alarm(_PATIENCE_S)
            print(number, outcome(Path(folder)), where, name, sep="\t", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
