"""Share code between Parquet and Arrow IPC: typed columns in record batches."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from contam.corpus.formats.base import CorpusFormat, Document, FileChunk
from contam.tables import lookup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.tables.columns import ColumnRef, TextColumns


class TabularFormat(CorpusFormat):
    """A format of typed columns."""

    @property
    @abstractmethod
    def reader(self) -> lookup.TableReader:
        """Reads record batches of a file."""

    def metadata(
        self, path: str, refs: tuple[ColumnRef, ...], chunk: FileChunk
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        return lookup.all_values(path, self.reader, refs, chunk.row_groups)

    def values(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int]
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        for row, values in lookup.values(path, self.reader, refs, rows):
            yield row, dict(zip(refs, values, strict=True))

    def documents(
        self, path: str, sources: TextColumns, rows: Sequence[int], *, with_turns: bool
    ) -> Iterator[tuple[int, Document]]:
        found: dict[int, Document] = {}
        for ref in sources.every:
            left = [row for row in rows if row not in found or _is_blank(found[row].text)]
            if not left:
                break
            column = "" if ref is sources.first else ref.dotted
            for row, text, turns in lookup.documents(
                path, self.reader, ref, left, with_turns=with_turns
            ):
                if not (column and _is_blank(text)):
                    found[row] = Document(text, column, None if turns is None else tuple(turns))
        yield from found.items()


def _is_blank(text: str) -> bool:
    return not text or (text.isascii() and text.isspace())
