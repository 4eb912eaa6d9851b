"""Stream a result as an answer piece by piece, to bound memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import orjson

from contam.benchmark.items import ItemName
from contam.detect.match.deadline import REASON as DEADLINE
from contam.detect.policies.verdict import COLUMNS
from contam.detect.result import VERDICTS, item_ranks
from contam.server.checks.evidence import EvidenceReader
from contam.server.problems.failures import RequestError
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from contam.detect.result import ScanResult
    from contam.server.checks.evidence import Row
    from contam.server.indexes.registry import IndexSnapshot
    from contam.server.schemas.check import Options

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
        """All of it: see `contam.server.schemas.check.CheckAnswer`."""
        return {"verdicts": list(self.rows()), **self.rest}

    def as_json(self, most_bytes: int) -> bytes:
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

    def as_lines(self, most_bytes: int) -> Iterator[bytes]:
        """A line for each verdict and one for the rest, each made when the one before is taken.

        Raises RequestError, 413, at once if a line has too many bytes.
        """
        if self.evidence is not None:
            for at, most in enumerate(self.evidence.most_bytes()):
                # The bound is a wide one: only where it is passed, the item's rows are made for it.
                if most > most_bytes and len(orjson.dumps(self.evidence.of(at))) > most_bytes:
                    raise too_large(most_bytes)
        return self._lines()

    def _lines(self) -> Iterator[bytes]:
        for row in self.rows():
            yield orjson.dumps(row) + b"\n"
        yield orjson.dumps(self.rest) + b"\n"


def answer_of(result: ScanResult, snapshot: IndexSnapshot, options: Options) -> StreamedAnswer:
    """The answer that a result makes."""
    # Not from `run`, which lists every shard: there may be thousands.
    covered = snapshot.opened.coverage if result.covered is None else result.covered
    verdicts = schemas.records(result.verdict_columns, VERDICTS)
    return StreamedAnswer(
        verdicts=verdicts,
        rest={
            **_about(snapshot),
            "coverage": summary(covered.totals),
            "capped": result.about_index()["capped"],
        },
        evidence=EvidenceReader(result, snapshot, options) if options.evidence else None,
        n_policies=len(verdicts) // len(result.items_in_order),
    )


def too_large(most_bytes: int) -> RequestError:
    """The refusal of an answer beyond the limit: nothing is left out of one silently."""
    return RequestError(
        413,
        f"the answer, or a line of it, would have more than {most_bytes} bytes",
        code="answer-too-large",
        hint="ask for fewer items, less context or max_evidence, or for lines "
        "(Accept: application/x-ndjson), or make a job of it: POST /v1/jobs",
    )


def late_answer(
    names: Sequence[tuple[str, str, str]], policies: Sequence[str], snapshot: IndexSnapshot
) -> StreamedAnswer:
    """The answer when the time is over: nothing is known of any item (benchmark, split, id)."""
    verdicts = [
        {**_NOTHING_KNOWN, **ItemName(*names[i])._asdict(), "policy": policy, "evidence": []}
        for i in np.argsort(item_ranks(names)).tolist()
        for policy in policies
    ]
    return StreamedAnswer(
        verdicts=verdicts,
        rest={
            **_about(snapshot),
            "coverage": summary(snapshot.opened.coverage.totals),
            "capped": {
                "cap": snapshot.opened.recipe.cap,
                "grams": 0,
                "items": 0,
                "first_items": [],
            },
        },
        evidence=None,
        n_policies=len(policies),
    )


def summary(coverage: Mapping[str, Any]) -> Row:
    """A coverage without its shards one by one: of those that failed, the first are named."""
    short = {name: value for name, value in coverage.items() if name != "by_shard"}
    short["n_failed"] = len(short["shards_failed"])
    short["shards_failed"] = short["shards_failed"][:_MOST_FAILURES]
    if excluded := short.get("shards_excluded"):
        short["n_excluded"] = len(excluded)
        short["shards_excluded"] = excluded[:_MOST_FAILURES]
    if missing := short.get("not_indexed"):
        short["n_not_indexed"] = len(missing)
        short["not_indexed"] = missing[:_MOST_FAILURES]
    return short


def _about(snapshot: IndexSnapshot) -> Row:
    return {
        "index": list(snapshot.names),
        "states": list(snapshot.states),
        "guarantee_tokens": snapshot.reader.guarantee_tokens,
    }
