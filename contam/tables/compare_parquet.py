"""Compare a Parquet shard with what was written of it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from contam.files.listed import opened
from contam.tables import parquet_splice as splice
from contam.tables import same_rows
from contam.tables.parquet_splice import ParquetBytes, chunks_of, number
from contam.tables.rewrite_parquet import columns_of, plain_metadata
from contam.tables.shard_errors import arrow_file, shard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from contam.tables.columns import TextColumns
    from contam.tables.edits import Edit
    from contam.tables.thrift import Struct

#: About so much is decoded at once, so that it is compared while it is in cache.
_BATCH_BYTES: Final = 2 << 20
_BATCH_ROWS: Final = 4096
#: What the description of a column chunk says of places in the file.
_PLACES: Final = (
    splice.META_DATA_AT,
    splice.META_INDEX_AT,
    splice.META_DICTIONARY_AT,
    splice.META_BLOOM_AT,
)


def count_same(
    source: str, new: str, edits: Sequence[Edit], sources: TextColumns, *, replacement: str | None
) -> int:
    """How many rows are the same in a shard that was written again; see `CorpusFormat.count_same`.

    Columns of row groups that lost no row are the same if their bytes are; all else is decoded and
    compared row by row.
    """
    with shard_errors(source), opened(source) as old_file, shard_errors(new), opened(new) as file:
        files = ParquetBytes.of(old_file), ParquetBytes.of(file)
        return _Comparison((source, new), files, sources, replacement).count(edits)


class _Comparison:
    def __init__(
        self,
        paths: tuple[str, str],
        files: tuple[ParquetBytes, ParquetBytes],
        sources: TextColumns,
        replacement: str | None,
    ) -> None:
        self._paths, self._files = paths, files
        self._sources, self._replacement = sources, replacement
        self._metas = tuple(plain_metadata(file.footer) for file in files)
        self._columns = columns_of(files[0].footer, self._metas[0].schema)
        self._texts = {part.path[0] for ref in sources.every for part in ref.single}

    def count(self, edits: Sequence[Edit]) -> int:
        old, new = self._files
        for key in old.footer.keys() | new.footer.keys():
            if key not in (splice.FILE_ROWS, splice.FILE_GROUPS) and (
                old.footer.get(key) != new.footer.get(key)
            ):
                raise ValueError("its footer says something else of the whole file")
        rows = [edit.row for edit in edits]
        n_same = begin = at = 0
        for index, group in enumerate(old.groups):
            end = begin + number(group, splice.GROUP_ROWS)
            inside = edits[bisect_left(rows, begin) : bisect_left(rows, end)]
            if begin < end and sum(edit.drop for edit in inside) < end - begin:
                if at == len(new.groups):
                    raise ValueError("a row group is missing")
                n_same += self._same(
                    (index, at), [edit._replace(row=edit.row - begin) for edit in inside], begin
                )
                at += 1
            begin = end
        if at < len(new.groups):
            raise ValueError("it has a row group too many")
        return n_same

    def _same(self, places: tuple[int, int], edits: Sequence[Edit], first_row: int) -> int:
        """Compare a row group with its copy; the rows of the edits count from its first."""
        group, copy = (file.groups[place] for file, place in zip(self._files, places, strict=True))
        n_rows = number(group, splice.GROUP_ROWS)
        names = [column.name for column in self._columns]
        if not any(edit.drop for edit in edits):
            if number(copy, splice.GROUP_ROWS) != n_rows:
                raise ValueError("a row group has other rows")
            names = [
                column.name
                for column in self._columns
                if (edits and column.name in self._texts)
                or not all(
                    self._is_copy(chunks_of(group)[leaf], chunks_of(copy)[leaf])
                    for leaf in column.leaves
                )
            ]
        if not edits and names:
            raise ValueError(f"column {names[0]}, which was to be copied, is another")
        if not names:
            return n_rows
        before, after = (self._batches(which, place, names) for which, place in enumerate(places))
        return same_rows.count_same(
            before, after, edits, self._sources, self._replacement, self._paths[1], first_row
        )

    def _is_copy(self, mine: Struct, theirs: Struct) -> bool:
        """Whether two column chunks are described alike and have the same bytes."""
        metas = mine[splice.CHUNK_META].value, theirs[splice.CHUNK_META].value
        said = [{key: value for key, value in meta.items() if key not in _PLACES} for meta in metas]
        shifts = {
            number(metas[1], key) - number(metas[0], key)
            for key in _PLACES[:-1]
            if number(metas[0], key) or number(metas[1], key)
        }
        if said[0] != said[1] or len(shifts) > 1:
            return False
        pieces = zip(self._files[0].chunk(mine), self._files[1].chunk(theirs), strict=True)
        return all(one == other for one, other in pieces)

    def _batches(self, which: int, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = [column for column in self._columns if column.name in names]
        leaves = [leaf for column in chosen for leaf in column.leaves]
        struct = self._files[which].groups[group]
        metas = [chunks_of(struct)[leaf][splice.CHUNK_META].value for leaf in leaves]
        size = sum(number(meta, splice.META_SIZE) for meta in metas)
        n_rows = max(1, number(struct, splice.GROUP_ROWS))
        with (
            arrow_file(self._paths[which]) as source,
            pq.ParquetFile(
                source, metadata=self._metas[which], page_checksum_verification=True
            ) as file,
        ):
            yield from file.iter_batches(
                batch_size=max(1, min(_BATCH_ROWS, n_rows * _BATCH_BYTES // max(1, size))),
                row_groups=[group],
                columns=[self._metas[which].schema.column(leaf).path for leaf in leaves],
                use_threads=False,
            )
