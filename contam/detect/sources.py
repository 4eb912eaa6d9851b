"""Where the documents of an answer come from, as far as finishing it needs to know.

A scan answers from the shards it has just read; an index answers from what it kept of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from contam.corpus.documents import read_metadata
from contam.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.corpus.columns import Selection
    from contam.corpus.coverage import Coverage
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.shards import Shard
    from contam.detect.model import Bools, Pairs


class Sources(Protocol):
    """The documents behind an answer. Shards go by their number, an index into `names`."""

    @property
    def names(self) -> Sequence[str]:
        """The shards' names, as evidence and verdicts say them."""

    @property
    def coverage(self) -> Coverage:
        """What was looked at of the shards; its names are `names`."""

    @property
    def notes(self) -> Sequence[str]:
        """What else there is to say, for the notes of run.json."""

    def metadata(self, shard: int, rows: Sequence[int]) -> Sequence[DocumentMeta]:
        """Who the documents in these rows are, in the order asked (rows ascend).

        Raises ShardError when that cannot be told any more: the evidence then goes without.
        """

    def verified(self, pairs: Pairs) -> Bools:
        """Whether each pair was compared with the document's text, bool[m]; else with hashes."""

    def near(self, pairs: Pairs) -> Bools:
        """Whether only a sketch led to each pair's document, no gram of an item, bool[m]."""

    def inputs(self) -> dict[str, Any]:
        """What run.json records of the corpus: JSON-able, equal for equal corpora."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSources:
    """Shards that a run has read: all evidence is compared with their text.

    selections  columns of each shard, None where none was found
    digests     of each shard when it was listed, None where it could not be read
    paths       what the user named
    """

    shards: tuple[Shard, ...]
    digests: Sequence[str | None]
    selections: Sequence[Selection | None]
    paths: tuple[str, ...]
    coverage: Coverage
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The shards' names."""
        return tuple(shard.name for shard in self.shards)

    def metadata(self, shard: int, rows: Sequence[int]) -> list[DocumentMeta]:
        """Read the rows' metadata columns. Raises ShardError."""
        selection = self.selections[shard]
        if selection is None:
            name = self.shards[shard].name
            raise InternalError(f"{name}: rows were read without a text column")
        return read_metadata(self.shards[shard], selection, rows)

    def verified(self, pairs: Pairs) -> Bools:
        """Every pair is."""
        return np.ones(len(pairs), np.bool_)

    def near(self, pairs: Pairs) -> Bools:
        """No pair is: every document was read."""
        return np.zeros(len(pairs), np.bool_)

    def inputs(self) -> dict[str, Any]:
        """The paths as named, and every shard with its digest."""
        return {
            "corpus": list(self.paths),
            "shards": [
                {
                    "uri": shard.uri,
                    "name": shard.name,
                    "format": shard.format,
                    "size_bytes": shard.size_bytes,
                    "digest": digest,
                }
                for shard, digest in zip(self.shards, self.digests, strict=True)
            ],
        }
