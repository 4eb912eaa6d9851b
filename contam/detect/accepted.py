"""Read the file of what a person accepted, and find it in a result.

A row names an item, a document, or an item in one document, of one benchmark. It says why that may
stand and until when, and holds a digest of the evidence that the person saw: with other evidence it
accepts nothing. Labels stay what they are.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import io
import json
from collections import defaultdict
from dataclasses import asdict, astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import ItemName
from contam.detect.labels import FLAGGED
from contam.errors import ConfigError, Plain, Public, Statement
from contam.files.single import read_file, write_file
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from contam.detect.report import Report

ACCEPTED: Final = "accepted"
EXPIRED: Final = "expired"
CHANGED: Final = "its evidence has changed"
NOT_THERE: Final = "nothing of that name is in the result"
NOT_FLAGGED: Final = "not flagged"
#: What the person saw, without where it lay and without numbers of ours that say nothing of it.
_LEFT_OUT: Final = frozenset(
    (*ItemName._fields, "shard", "row", "alignment", "similarity", "answer_mark", "document_token")
)
_HINT: Final = "`contam review --accept` writes such rows"

Flag = tuple[str, str, str, str]
"""Benchmark, split, item id and policy."""


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """A row of the file.

    split     "" is the one split that has the item;  item, document  one of them may be ""
    policy    "" is every policy
    until     the last day on which the row accepts anything
    evidence  digest of the evidence that the person saw
    """

    benchmark: str
    split: str
    item: str
    document: str
    policy: str
    reason: str
    reader: str
    until: dt.date
    evidence: str

    @property
    def name(self) -> str:
        """The row in a message."""
        named = "/".join(part for part in (self.benchmark, self.split, self.item) if part)
        named += f" in {self.document}" if self.document else ""
        return named + (f" by {self.policy}" if self.policy else "")


COLUMNS: Final = tuple(column.name for column in fields(AcceptedRow))
_REQUIRED: Final = ("benchmark", "reason", "until", "evidence")


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a file of accepted rows comes to in one result.

    rows       every row as reports show it, with a `state`: "accepted", or why it accepts nothing
    flags      the flags that are accepted in full
    documents  flags that are accepted in single documents: (flag, document id)
    """

    rows: tuple[dict[str, str], ...] = ()
    flags: frozenset[Flag] = frozenset()
    documents: frozenset[tuple[Flag, str]] = frozenset()


def read_accepted(path: Path) -> tuple[AcceptedRow, ...]:
    """The rows of a CSV file. Raises ConfigError naming the file and the line."""
    try:
        text = read_file(path).decode("utf-8-sig")
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except OSError as error:
        raise ConfigError("cannot read {}: {}", path, Public(error.strerror), hint=_HINT) from error
    except (ValueError, csv.Error) as error:
        raise ConfigError("{} is not CSV in UTF-8: {}", path, Plain(error), hint=_HINT) from error
    header = lines[0] if lines else []
    _check_header(path, header)
    found: dict[tuple[str, ...], AcceptedRow] = {}
    for number, cells in enumerate(lines[1:], start=2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise ConfigError(
                "{}: row {} has {} cells, the header {}", path, number, len(cells), len(header),
                hint="quote a cell that holds a comma",
            )  # fmt: skip
        row = _row(path, number, dict(zip(header, cells, strict=True)))
        key = (row.benchmark, row.split, row.item, row.document, row.policy)
        if key in found:
            raise ConfigError("{}: row {}: {} stands twice", path, number, row.name)
        found[key] = row
    return tuple(found.values())


def _check_header(path: Path, header: Sequence[str]) -> None:
    lacking = [name for name in _REQUIRED if name not in header]
    if lacking or not {"item", "document"} & set(header):
        raise ConfigError("{} has no column {}", path, Public((lacking or ["item"])[0]), hint=_HINT)
    if unknown := [name for name in header if name not in COLUMNS]:
        raise ConfigError(
            "{}: unknown column {!r}",
            path,
            unknown[0],
            hint=Statement("columns: {}", Public(", ".join(COLUMNS))),
        )
    if len(set(header)) != len(header):
        raise ConfigError("{} names a column twice", path)


def _row(path: Path, number: int, cells: dict[str, str]) -> AcceptedRow:
    for name in _REQUIRED:
        if not cells[name].strip():
            raise ConfigError("{}: row {} has no {}", path, number, Public(name))
    if not (cells.get("item") or cells.get("document")):
        raise ConfigError("{}: row {} names no item and no document", path, number)
    try:
        until = dt.date.fromisoformat(cells["until"])
    except ValueError as error:
        raise ConfigError(
            "{}: row {}: {!r} is not a date", path, number, cells["until"],
            hint="write it as 2027-12-31",
        ) from error  # fmt: skip
    texts = {name: cells.get(name, "") for name in COLUMNS if name != "until"}
    return AcceptedRow(**texts, until=until)


def add_accepted(path: Path, rows: Iterable[AcceptedRow]) -> None:
    """Add rows to a file, which is made if need be; whole or not at all.

    A row about the same takes the place of the one there. Raises ConfigError, OutputError.
    """
    known = read_accepted(path) if path.exists() else ()
    found = {astuple(row)[:5]: row for row in (*known, *rows)}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(row) for row in found.values())
    write_file(path, text.getvalue().encode(), overwrite=True)


class Seen:
    """What there is to see of the items of some benchmarks in a result."""

    def __init__(self, report: Report, benchmarks: Iterable[str]) -> None:
        wanted = set(benchmarks)
        self.flags: defaultdict[ItemName, dict[str, int]] = defaultdict(dict)
        self._evidence: defaultdict[ItemName, list[dict[str, Any]]] = defaultdict(list)
        self._keys: dict[ItemName, list[str | None]] = {}
        for row in schemas.iter_rows(report.items):
            if row["benchmark"] in wanted:
                keys = [row["key_version"], row["item_key"], row["full_key"]]
                self._keys[ItemName.in_row(row)] = keys
        for row in schemas.iter_rows(report.verdicts):
            if row["benchmark"] in wanted and row["label"] in FLAGGED:
                self.flags[ItemName.in_row(row)][row["policy"]] = row["n_documents"]
        for row in schemas.iter_rows(report.evidence):
            if row["benchmark"] in wanted:
                self._evidence[ItemName.in_row(row)].append(row)

    def items(self, row: AcceptedRow) -> list[ItemName]:
        """The items that a row is about."""
        return [
            item
            for item in sorted(self._keys)
            if item.benchmark == row.benchmark
            and row.split in {"", item.split}
            and row.item in {"", item.item_id}
            and (not row.document or row.document in self.documents(item))
        ]

    def documents(self, item: ItemName) -> list[str]:
        """The documents that are in the evidence of an item."""
        return sorted({row["document_id"] for row in self._evidence[item]})

    def n_places(self, item: ItemName) -> int:
        """In how many places the evidence of an item lies: documents may share an id."""
        return len({(row["shard"], row["row"]) for row in self._evidence[item]})

    def n_documents(self, item: ItemName, policy: str) -> int:
        """How many documents hold an item, by one policy or the most by any that flags it."""
        flags = self.flags[item]
        return flags.get(policy, 0) if policy else max(flags.values(), default=0)

    def digest(self, items: Sequence[ItemName], document: str, policy: str) -> str:
        """SHA-256 of what there is to see of these items, in one document or ("") in all."""
        seen = [
            [
                self._keys[item],
                # How many documents there are is no matter of the one that was looked at.
                None if document else self.n_documents(item, policy),
                sorted(
                    json.dumps([[name, row[name]] for name in row if name not in _LEFT_OUT])
                    for row in self._evidence[item]
                    if document in {"", row["document_id"]}
                ),
            ]
            for item in items
        ]
        return hashlib.sha256(json.dumps(seen).encode("ascii")).hexdigest()


def find_accepted(
    rows: Sequence[AcceptedRow], report: Report, today: dt.date | None = None
) -> Accepted:
    """What the rows accept in a result.

    today  the day on which they have to hold; None does not ask
    """
    seen = Seen(report, {row.benchmark for row in rows})
    told = []
    flags: set[Flag] = set()
    documents: defaultdict[Flag, set[str]] = defaultdict(set)
    for row in rows:
        items = seen.items(row)
        state = _state(row, items, seen, today)
        told.append({**asdict(row), "until": row.until.isoformat(), "state": state})
        if state != ACCEPTED:
            continue
        for item in items:
            for policy in seen.flags[item]:
                if row.policy not in {"", policy}:
                    continue
                if row.document:
                    documents[(*item, policy)].add(row.document)
                else:
                    flags.add((*item, policy))
                    documents[(*item, policy)].update(seen.documents(item))
    for flag, own in documents.items():
        item = ItemName(*flag[:3])
        # Evidence is kept of a few documents only: what nobody saw is not accepted.
        whole = seen.flags[item][flag[3]] <= seen.n_places(item)
        if whole and own >= set(seen.documents(item)):
            flags.add(flag)
    pairs = {(flag, document) for flag, own in documents.items() for document in own}
    return Accepted(tuple(told), frozenset(flags), frozenset(pairs))


def _state(row: AcceptedRow, items: Sequence[ItemName], seen: Seen, today: dt.date | None) -> str:
    """Say that the row holds, or why it accepts nothing."""
    if today is not None and row.until < today:
        return EXPIRED
    if not items:
        return NOT_THERE
    if row.item and len(items) > 1:
        return f"in several splits: {', '.join(item.split for item in items)}"
    if not any(row.policy in {"", policy} for item in items for policy in seen.flags[item]):
        return NOT_FLAGGED
    return ACCEPTED if seen.digest(items, row.document, row.policy) == row.evidence else CHANGED
