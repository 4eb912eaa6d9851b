"""Make the answer to a check of a result, item by item, to bound memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from contam.benchmark.items import ItemName
from contam.detect.indexed.index_reader import quote
from contam.detect.match.workers import REASON as DEADLINE
from contam.detect.policies.verdict import COLUMNS
from contam.detect.result import VERDICTS, item_ranks
from contam.server.problems import RequestError
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from contam.detect.result import ScanResult
    from contam.server.indexes import IndexSnapshot
    from contam.server.schemas import Options


Row = dict[str, Any]
Place = tuple[str, int]

#: Documents whose texts are held at once, unless one item has more.
_DOCUMENTS: Final = 128


class EvidenceReader:
    """Rows of evidence by item, their texts read when they are asked for."""

    def __init__(self, result: ScanResult, snapshot: IndexSnapshot, options: Options) -> None:
        self._columns = result.evidence_columns
        self._snapshot = snapshot
        self._context = options.context
        owner = self._columns["item_id"]
        assert isinstance(owner, schemas.Repeated)  # noqa: S101 - for the type checker: as finishing makes it
        bounds = np.searchsorted(owner.index, np.arange(len(result.items_in_order) + 1)).tolist()
        self._items = result.items_in_order
        self._bounds = list(pairwise(bounds))

    def by_item(self) -> Iterator[list[Row]]:
        """The rows of each item in order, with the matching texts and the text around them."""
        first = 0
        while first < len(self._bounds):
            last, places = first, set[Place]()
            pieces: list[list[Row]] = []
            while last < len(self._bounds) and (last == first or len(places) < _DOCUMENTS):
                rows = self._rows(*self._bounds[last])
                places |= {(row["shard"], row["row"]) for row in rows}
                pieces.append(rows)
                last += 1
            texts = quote(self._snapshot.opened, places)
            for at, rows in enumerate(pieces, first):
                yield self._with_texts(rows, at, texts)
            first = last

    def _rows(self, begin: int, end: int) -> list[Row]:
        columns = schemas.part(self._columns, begin, end)
        rows = schemas.records(columns, schemas.EVIDENCE)
        for row in rows:
            for name in ItemName._fields:
                del row[name]
        return rows

    def _with_texts(self, rows: list[Row], at: int, texts: dict[Place, str]) -> list[Row]:
        item = self._items[at]
        for row in rows:
            own = item.part_text(row["part"])[row["item_start"] : row["item_end"]]
            row["item_text"] = own or None
            row["document_text"] = row["before"] = row["after"] = None
            text = texts.get((row["shard"], row["row"]))
            if text is not None:
                start, end = row["document_start"], row["document_end"]
                row["document_text"] = text[start:end]
                if self._context:
                    row["before"] = text[max(start - self._context, 0) : start]
                    row["after"] = text[end : end + self._context]
        return rows


MOST_BYTES: Final = 32 << 20
"""Bytes that an answer to a check may have."""

_MOST_FAILURES: Final = 20
_NOTHING_KNOWN: Final = {
    **{column.name: None if column.nullable else column.kind() for column in COLUMNS},
    "label": "not_checkable",
    "exposure": "none",
    "reason": DEADLINE,
}


@dataclass(frozen=True, slots=True, eq=False)
class StreamedAnswer:
    """An answer to a check, its evidence not made yet.

    verdicts  without their evidence, item by item;  rest  what else is said
    evidence  None if not asked for;  n_policies  verdicts of each item
    """

    verdicts: list[Row]
    rest: Row
    evidence: EvidenceReader | None
    n_policies: int

    def rows(self) -> Iterator[Row]:
        """The verdicts with their evidence, each made when it is asked for."""
        if self.evidence is None:
            yield from self.verdicts
            return
        verdicts = iter(self.verdicts)
        for found in self.evidence.by_item():
            for verdict in islice(verdicts, self.n_policies):
                yield {**verdict, "evidence": found}

    def whole(self) -> Row:
        """All of it: see `contam.server.schemas.CheckAnswer`."""
        return {"verdicts": list(self.rows()), **self.rest}

    def as_json(self, most_bytes: int = MOST_BYTES) -> bytes:
        """All of it as JSON. Raises RequestError, 413, as soon as that has too many bytes."""
        made = bytearray(b'{"verdicts":[')
        end = orjson.dumps(self.rest)[1:]
        for row in self.rows():
            made += orjson.dumps(row)
            made += b","
            if len(made) + len(end) + 1 > most_bytes:
                raise too_large(most_bytes)
        if made.endswith(b","):
            made.pop()
        made += b"],"
        made += end
        return bytes(made)


def answer_of(
    result: ScanResult, snapshot: IndexSnapshot, options: Options, read: Row
) -> StreamedAnswer:
    """The answer that a result makes; read  how the items were read."""
    # Not from `run`, which lists every shard: there may be thousands.
    covered = snapshot.opened.coverage if result.covered is None else result.covered
    verdicts = schemas.records(result.verdict_columns, VERDICTS)
    return StreamedAnswer(
        verdicts=verdicts,
        rest=_rest(snapshot, covered.totals, result.about_index()["capped"], read),
        evidence=EvidenceReader(result, snapshot, options) if options.evidence else None,
        n_policies=len(verdicts) // len(result.items_in_order),
    )


def too_large(most_bytes: int) -> RequestError:
    """The refusal of an answer beyond the limit: nothing is left out of one silently."""
    return RequestError(
        413,
        f"the answer would have more than {most_bytes} bytes",
        code="answer-too-large",
        hint="ask for fewer items, less context or max_evidence, or make a job of it: "
        "POST /v1/jobs",
    )


def late_answer(
    names: Sequence[tuple[str, str, str]],
    policies: Sequence[str],
    snapshot: IndexSnapshot,
    read: Row,
) -> StreamedAnswer:
    """The answer when the time is over: nothing is known of any item (benchmark, split, id)."""
    verdicts = [
        {**_NOTHING_KNOWN, **ItemName(*names[i])._asdict(), "policy": policy, "evidence": []}
        for i in np.argsort(item_ranks(names)).tolist()
        for policy in policies
    ]
    capped = {"cap": snapshot.opened.recipe.cap, "grams": 0, "items": 0, "first_items": []}
    return StreamedAnswer(
        verdicts=verdicts,
        rest=_rest(snapshot, snapshot.opened.coverage.totals, capped, read),
        evidence=None,
        n_policies=len(policies),
    )


def summary(coverage: Mapping[str, Any]) -> Row:
    """A coverage without its shards one by one: of those that failed, the first are named."""
    short = {name: value for name, value in coverage.items() if name != "by_shard"}
    counted = {
        "failed": "shards_failed",
        "excluded": "shards_excluded",
        "not_indexed": "not_indexed",
    }
    for name, kind in counted.items():
        if kind == "shards_failed" or short.get(kind):
            short[f"n_{name}"] = len(short[kind])
    for kind in (*counted.values(), "passed_over", "unread_columns"):
        if names := short.get(kind):
            short[kind] = names[:_MOST_FAILURES]
    return short


def _rest(
    snapshot: IndexSnapshot, coverage: Mapping[str, Any], capped: Mapping[str, Any], read: Row
) -> Row:
    """What an answer says besides its verdicts."""
    return {
        "index": list(snapshot.names),
        "states": list(snapshot.states),
        "guarantee_tokens": snapshot.reader.guarantee_tokens,
        "coverage": summary(coverage),
        "capped": capped,
        "read": read,
    }
