"""Write a part to bytes, and read it back: a zip archive of JSON and NumPy arrays.

Only items that something was found for are in it. Equal answers are equal bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
import zlib
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from contam.corpus.coverage import ShardCoverage, ShardFailure
from contam.corpus.documents import DocumentMeta
from contam.detect.match.by_source import BySource
from contam.detect.match.collect import Collected
from contam.detect.match.counts import COUNTED, PolicyCount
from contam.detect.match.hits import Hits
from contam.detect.match.pieces import Pieces
from contam.detect.model import Matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from contam.detect.match.token_view import TokenView
    from contam.detect.plan import Plan

    Table = TypeVar("Table", Matches, Hits)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part:
    """What was found in a piece of a corpus, whose shards and chunks are numbered from 0.

    name       digest of all that decides it
    chunks     numbers of the chunks that were tried, those that failed among them
    collected  what each view found
    read       what was read, by shard;  failures  shards that could not be read
    documents  (shard, row) -> what is known of a document that may become evidence
    sha256     of the files that were searched, by shard, where every hit is kept
    sources    what was counted by source, where a shard names the sources of its documents
    """

    name: str
    chunks: frozenset[int]
    collected: tuple[Collected, ...]
    read: Mapping[int, ShardCoverage]
    failures: tuple[ShardFailure, ...] = ()
    documents: Mapping[tuple[int, int], DocumentMeta] = field(default_factory=dict)
    sha256: Mapping[int, str] = field(default_factory=dict)
    sources: BySource | None = None

    def placed(self, shards: tuple[int, ...], first: int) -> Part:
        """The same under the numbers that its shards and chunks have in a larger corpus.

        first  number there of its first chunk
        """
        numbers = np.array(shards, np.int32)
        return replace(
            self,
            chunks=frozenset(first + chunk for chunk in self.chunks),
            collected=tuple(_placed(collected, numbers) for collected in self.collected),
            read={shards[shard]: counts for shard, counts in self.read.items()},
            failures=tuple(replace(one, shard=shards[one.shard]) for one in self.failures),
            documents={(shards[shard], row): meta for (shard, row), meta in self.documents.items()},
            sha256={shards[shard]: digest for shard, digest in self.sha256.items()},
        )


def hits_placed(hits: Hits, shards: tuple[int, ...]) -> Hits:
    """Hits of a piece, under the numbers that its shards have in a larger corpus."""
    return _moved(hits, np.array(shards, np.int32))


def _placed(collected: Collected, numbers: np.ndarray) -> Collected:
    return replace(
        collected,
        counts=tuple(
            replace(count, best=_moved(count.best, numbers)) for count in collected.counts
        ),
        matches=_moved(collected.matches, numbers),
        hits=None if collected.hits is None else _moved(collected.hits, numbers),
    )


def _moved(table: Table, numbers: np.ndarray) -> Table:
    # Rows of no document have the number -1.
    return replace(table, shard=np.where(table.shard < 0, table.shard, numbers[table.shard]))


_META: Final = "part.json"
#: The array of places of documents; the names of others begin with the number of their view.
_DOCUMENTS: Final = "documents"
_SOURCES: Final = "sources"
#: Stands in the names of the columns of hits, and of no other array.
_HITS: Final = ".hits."
_SOURCE_ARRAYS: Final = ("rows", "documents", "items")
#: A part is mostly zeros and small numbers: more effort saves little.
_EFFORT: Final = 1
_MADE: Final = (1980, 1, 1, 0, 0, 0)


class PartError(ValueError):
    """Bytes that are no part, or the part of another piece or plan."""


def part_bytes(part: Part) -> bytes:
    """The content of a part's file."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, collected in enumerate(part.collected):
        _put(arrays, f"{number}", collected)
    places = sorted(part.documents)
    arrays[_DOCUMENTS] = np.array(places, np.int64).reshape(-1, 2)
    by_source = part.sources
    if by_source is not None:
        for name in _SOURCE_ARRAYS:
            arrays[f"{_SOURCES}.{name}"] = getattr(by_source, name)
    meta = {
        "name": part.name,
        "chunks": sorted(part.chunks),
        "n_tokens": [collected.n_tokens for collected in part.collected],
        "read": [
            [shard, counts.to_dict(), counts.columns] for shard, counts in sorted(part.read.items())
        ],
        "failures": [[failure.shard, failure.name, failure.reason] for failure in part.failures],
        "documents": [_known(part.documents[place]) for place in places],
        "sha256": sorted(part.sha256.items()),
        _SOURCES: by_source and [by_source.names, by_source.n_unread, by_source.too_many],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        _add(archive, _META, json.dumps(meta).encode())
        for name, array in arrays.items():
            raw = io.BytesIO()
            np.lib.format.write_array(raw, np.ascontiguousarray(array), allow_pickle=False)
            _add(archive, f"{name}.npy", raw.getvalue())
    return packed.getvalue()


def part_of(data: bytes, plan: Plan, name: str) -> Part:
    """The part of this name that these bytes are, for the views of a plan. Raises PartError."""
    with _errors():
        meta, arrays = _unpacked(data, name, lambda _: True)
        if len(meta["n_tokens"]) != len(plan.views):
            raise ValueError("other views than those of the plan")
        n_policies = _policies_by_view(plan)
        return Part(
            name=name,
            chunks=frozenset(meta["chunks"]),
            collected=tuple(
                _get(arrays, str(at), view, n_policies[at], meta["n_tokens"][at])
                for at, view in enumerate(plan.views)
            ),
            read={shard: _counts(counts, columns) for shard, counts, columns in meta["read"]},
            failures=tuple(ShardFailure.noted(*facts) for facts in meta["failures"]),
            documents={
                (shard, row): DocumentMeta(*known)
                for (shard, row), known in zip(
                    arrays[_DOCUMENTS].tolist(), meta["documents"], strict=True
                )
            },
            sha256={int(shard): str(found) for shard, found in meta["sha256"]},
            sources=meta[_SOURCES] and _by_source(meta[_SOURCES], arrays),
        )


def hits_of(data: bytes, plan: Plan, name: str) -> tuple[Hits, ...]:
    """The hits alone, of each view. Raises PartError, also where the search kept none."""
    with _errors():
        _, arrays = _unpacked(data, name, lambda array: _HITS in array)
        return tuple(
            _hits(arrays, f"{number}", view, n_policies)
            for number, (view, n_policies) in enumerate(
                zip(plan.views, _policies_by_view(plan), strict=True)
            )
        )


def _unpacked(
    data: bytes, name: str, wanted: Callable[[str], bool]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What a part says of itself, and those of its arrays whose names are wanted."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        meta = json.loads(archive.read(_META))
        if meta["name"] != name:
            raise ValueError("the part of another piece")
        return meta, {
            entry.removesuffix(".npy"): np.lib.format.read_array(
                io.BytesIO(archive.read(entry)), allow_pickle=False
            )
            for entry in archive.namelist()
            if entry != _META and wanted(entry)
        }


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (
        zipfile.BadZipFile, zlib.error, EOFError,
        ValueError, KeyError, TypeError, IndexError, AttributeError,
    ) as error:  # fmt: skip
        raise PartError(str(error)) from error


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _MADE)
    info.compress_type = zipfile.ZIP_DEFLATED
    # An archive's own level does not count for entries that are described.
    archive.writestr(info, data, compresslevel=_EFFORT)


def _known(meta: DocumentMeta) -> list[str | bool | None]:
    return [meta.document_id, meta.url, meta.date, meta.source, meta.language, meta.lost]


def _counts(counts: Mapping[str, int], columns: list[list[Any]]) -> ShardCoverage:
    known = ShardCoverage.of_counts(counts)
    return ShardCoverage(
        **known.to_dict(), columns=tuple((str(name), int(n)) for name, n in columns)
    )


def _by_source(told: list[Any], arrays: Mapping[str, NDArray[Any]]) -> BySource:
    names, n_unread, too_many = told
    found = {name: arrays[f"{_SOURCES}.{name}"] for name in _SOURCE_ARRAYS}
    if len(found["rows"]) != len(names):
        raise ValueError("sources without their documents")
    return BySource(names=tuple(names), n_unread=n_unread, too_many=too_many, **found)


def _policies_by_view(plan: Plan) -> list[int]:
    return [plan.view_of.count(number) for number in range(len(plan.views))]


def _put(arrays: dict[str, NDArray[Any]], key: str, collected: Collected) -> None:
    """The arrays of a view, under names that begin with its key."""
    arrays[f"{key}.longest.at"] = collected.runs_at
    arrays[f"{key}.longest"] = collected.runs.astype(np.int32)
    for number, count in enumerate(collected.counts):
        columns, best = count.by_item()
        under = f"{key}.count{number}"
        arrays[f"{under}.at"] = best.item.astype(np.int64)
        arrays.update((f"{under}.{name}", values) for name, values in columns.items())
        _put_columns(arrays, f"{under}.best", best)
    _put_columns(arrays, f"{key}.matches", collected.matches)
    _put_columns(arrays, f"{key}.pieces", collected.pieces)
    arrays[f"{key}.rank"] = collected.rank
    if collected.hits is not None:
        _put_columns(arrays, f"{key}{_HITS[:-1]}", collected.hits)


def _get(
    arrays: Mapping[str, NDArray[Any]], key: str, view: TokenView, n_policies: int, n_tokens: int
) -> Collected:
    items = view.items
    runs_at, runs = arrays[f"{key}.longest.at"], arrays[f"{key}.longest"]
    _check_runs(runs_at, runs, view)
    counts = []
    for number in range(n_policies):
        at = f"{key}.count{number}"
        best = Matches(**_columns(arrays, f"{at}.best", Matches))
        _check_items(best, items.n_items)
        columns = {name: arrays[f"{at}.{name}"] for name in COUNTED}
        counts.append(PolicyCount.of_rows(items.n_items, len(items.read), columns, best))
    matches = Matches(**_columns(arrays, f"{key}.matches", Matches))
    pieces = Pieces(**_columns(arrays, f"{key}.pieces", Pieces))
    _check_items(matches, items.n_items)
    kept = f"{key}{_HITS}item" in arrays
    hits = _hits(arrays, key, view, n_policies) if kept else None
    if len(pieces.match) and not 0 <= pieces.match.min() <= pieces.match.max() < len(matches):
        raise ValueError("a piece of no match")
    return Collected(
        n_tokens=int(n_tokens),
        runs_at=runs_at,
        runs=runs.astype(np.uint32),
        counts=tuple(counts),
        matches=matches,
        pieces=pieces,
        rank=arrays[f"{key}.rank"],
        hits=hits,
    )


def _check_runs(at: NDArray[Any], runs: NDArray[Any], view: TokenView) -> None:
    """Raise ValueError for runs at tokens that a plan does not have, or longer than any part."""
    if at.dtype.kind != "i" or runs.dtype.kind != "i" or at.shape != runs.shape or at.ndim != 1:
        raise ValueError("runs that are no numbers, or without their places")
    if not len(at):
        return
    if at[0] < 0 or at[-1] >= len(view.items.token_hash) or (np.diff(at) <= 0).any():
        raise ValueError("runs at tokens that the plan does not have, or out of order")
    if not 0 < runs.min() <= runs.max() <= view.longest:
        raise ValueError("runs of no length, or longer than any part")


def _hits(arrays: Mapping[str, NDArray[Any]], key: str, view: TokenView, n_policies: int) -> Hits:
    hits = Hits(**_columns(arrays, f"{key}{_HITS[:-1]}", Hits))
    _check_items(hits, view.items.n_items)
    if hits.counted.shape != (len(hits), n_policies) or hits.n_spans.sum() != len(hits.start):
        raise ValueError("hits of other policies, or without their stretches")
    return hits


def _check_items(matches: Matches | Hits, n_items: int) -> None:
    """Raise ValueError for matches of items that a plan does not have; -1 is none."""
    if len(matches.item) and not -1 <= matches.item.min() <= matches.item.max() < n_items:
        raise ValueError("an item that the plan does not have")


def _put_columns(arrays: dict[str, NDArray[Any]], key: str, table: Matches | Pieces | Hits) -> None:
    for column in fields(table):
        arrays[f"{key}.{column.name}"] = getattr(table, column.name)


def _columns(
    arrays: Mapping[str, NDArray[Any]], key: str, kind: type[Matches | Pieces | Hits]
) -> dict[str, Any]:
    return {column.name: arrays[f"{key}.{column.name}"] for column in fields(kind)}
