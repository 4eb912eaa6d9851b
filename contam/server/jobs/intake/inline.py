"""Write verdicts, items and scores from a request as the files re-scoring reads."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import orjson

from contam.benchmark.items import PARTS, BenchItem, ItemName
from contam.benchmark.keys import KEY_VERSION, content_keys
from contam.detect.labels import LABELS
from contam.detect.policies.policy import get_policy
from contam.detect.policies.verdict import COLUMNS
from contam.detect.report import write_report
from contam.detect.result import VERDICTS, ScanResult
from contam.errors import InternalError, UsageError
from contam.tables import schemas
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Row = Mapping[str, Any]

_SCORES: Final = "scores.jsonl"
_AS_GIVEN: Final = "send rows as POST /v1/check gave them"


def write_inline(inline: Row, verdicts: Path) -> None:
    """Write verdicts as the result folder they would be part of.

    inline  see `contam.server.jobs.intake.requests.Inline`, as plain values

    Raises UsageError for rows that are no verdicts, or two of one item and policy.
    """
    rows = [_verdict(at, row) for at, row in enumerate(inline["verdicts"])]
    _refuse_doubles(rows)
    keys = list(dict.fromkeys(ItemName.in_row(row) for row in rows))
    items = {(item["benchmark"], item["split"], item["id"]): item for item in inline["items"]}
    if len(items) < len(inline["items"]):
        raise UsageError("two items have one id", hint="send each item once")
    if items and any(key not in items for key in keys):
        raise UsageError(
            "some verdicts are of items that are not among the items",
            hint="send all items that were asked, or none",
        )
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    definitions = {}
    for name in policies:
        spec = get_policy(name).spec
        definitions[name] = {**spec.to_dict(), "fingerprint": spec.fingerprint()}
    result = ScanResult(
        verdict_columns=_columns(rows, VERDICTS.names),
        evidence_columns=_columns(_evidence(inline["verdicts"]), schemas.EVIDENCE.names),
        item_columns=_columns([_item(items.get(key), key) for key in keys], _ITEM_COLUMNS),
        run={
            "parameters": {"policies": policies, "policy_definitions": definitions},
            "coverage": inline["coverage"],
        },
    )
    try:
        write_report(result, verdicts, overwrite=True)
    except (InternalError, OverflowError) as error:
        # The tables refuse it: the rows are not what an answer holds.
        raise UsageError(
            "the verdicts or their evidence do not fit",
            hint=_AS_GIVEN,
        ) from error


def write_scores(scores: Sequence[Row], logs: Path) -> None:
    """Write rows of scores as the plain table that they are. Raises UsageError."""
    logs.mkdir(exist_ok=True)
    with (logs / _SCORES).open("wb") as file:
        for at, row in enumerate(scores):
            try:
                file.write(orjson.dumps(row) + b"\n")
            except TypeError as error:
                raise UsageError(
                    f"row {at + 1} of the scores has a number that is too large",
                    hint="send ids as texts",
                ) from error


def _verdict(at: int, row: Row) -> dict[str, Any]:
    if missing := [
        column.name for column in COLUMNS if not column.optional and column.name not in row
    ]:
        raise UsageError(f"verdict {at + 1} has no {missing[0]}", hint=_AS_GIVEN)
    if row["label"] not in LABELS or not all(
        column.holds(row.get(column.name)) for column in COLUMNS
    ):
        raise UsageError(f"verdict {at + 1} is none", hint=_AS_GIVEN)
    return {column.name: row.get(column.name) for column in COLUMNS}


def _refuse_doubles(rows: Sequence[Row]) -> None:
    seen = {(*ItemName.in_row(row), row["policy"]) for row in rows}
    if len(seen) != len(rows):
        raise UsageError(
            "two verdicts are of one item and policy", hint="send the verdict of each once"
        )


def _evidence(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Evidence rows, each item's once: every policy's verdict repeats them."""
    found: list[dict[str, Any]] = []
    seen: set[ItemName] = set()
    for row in rows:
        key = ItemName.in_row(row)
        evidence = row.get("evidence") or []
        if not isinstance(evidence, list) or not all(isinstance(entry, dict) for entry in evidence):
            raise UsageError("the evidence of a verdict is no list of rows", hint=_AS_GIVEN)
        if key not in seen and evidence:
            seen.add(key)
            own = key._asdict()
            found += [
                {name: {**entry, **own}.get(name) for name in schemas.EVIDENCE.names}
                for entry in evidence
            ]
    return found


_TOKEN_COLUMNS: Final = tuple(f"{part}_tokens" for part in PARTS)
_ITEM_COLUMNS: Final = tuple(name for name in schemas.ITEMS.names if name not in PARTS)


def _item(item: Row | None, key: ItemName) -> dict[str, Any]:
    known = {**key._asdict(), "key_version": KEY_VERSION}
    if item is None:
        # Its text is not known: a key of its name, which no text has.
        alone = hashlib.sha256("\0".join(key).encode()).hexdigest()
        return {**dict.fromkeys(_ITEM_COLUMNS), **known, "item_key": f"id:{alone}"} | dict.fromkeys(
            _TOKEN_COLUMNS, 0
        )
    whole = BenchItem(
        benchmark=key[0], split=key[1], item_id=key[2], question=item["question"],
        passage=item["passage"], choices=tuple(item["choices"]), answer=item["answer"],
    )  # fmt: skip
    keys = content_keys(whole)
    n_tokens = {
        f"{part}_tokens": len(tokenize_bytes(whole.part_text(part).encode())) for part in PARTS
    }
    return {
        **known, "passage_key": keys.passage_key, "question_key": keys.text_key,
        "choices_key": keys.choices_key, "answer_key": keys.answer_key,
        "item_key": keys.item_key, "full_key": keys.full_key, **n_tokens,
    }  # fmt: skip


def _columns(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names}
