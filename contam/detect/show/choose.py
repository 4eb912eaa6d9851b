"""Choose the items of a result that are shown: by name, or by verdict, benchmark and source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from contam.benchmark.items import ItemName
from contam.detect.labels import FLAGGED, SHOWN
from contam.errors import Public, Statement, UsageError
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contam.detect.policies.verdict import Verdict
    from contam.detect.report import Report
    from contam.tables.schemas import Table

UNKNOWN_SOURCE: Final = "unknown"
"""The source of documents of which neither a source nor an address is known."""

_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Items with a verdict of `policy` (None: of any policy) and of one of the `labels`.

    benchmarks  names; none means all
    sources     of documents that share text with the item (see `source_of`); none means all
    """

    policy: str | None = None
    labels: tuple[str, ...] = FLAGGED
    benchmarks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def takes(self, verdict: Verdict) -> bool:
        """Whether a verdict is of the policy and has one of the labels."""
        return verdict.label in self.labels and self.policy in {None, verdict.policy}


def choose_items(report: Report, choice: Choice) -> list[ItemName]:
    """The items that fit the choice: the highest score of each benchmark, then the next of each.

    Scores of two policies cannot be compared: an item stands under the first policy whose verdict
    fits, and items under an earlier policy come first. Equal scores are in the order of the table,
    items without a score last.

    Raises UsageError when the result has no such policy, benchmark or source, or a label is none.
    """
    check_policy(report, choice.policy)
    _check("label", choice.labels, SHOWN)
    _check("benchmark", choice.benchmarks, schemas.column(report.items, "benchmark"))
    having = _having_sources(report, choice.sources)
    rank = {name: at for at, name in enumerate(_policies(report))}
    found: dict[ItemName, tuple[int, bool, float]] = {}
    rows = _rows(report.verdicts, *ItemName._fields, "policy", "label", "score")
    for *name, judge, label, score in rows:
        if label not in choice.labels or choice.policy not in {None, judge}:
            continue
        if choice.benchmarks and name[0] not in choice.benchmarks:
            continue
        key = ItemName(*name)
        if having is None or key in having:
            found.setdefault(key, (rank[judge], score is None, -(score or 0.0)))
    turns: Counter[tuple[int, bool, str]] = Counter()
    places: dict[ItemName, tuple[int, bool, int, float]] = {}
    for key in sorted(found, key=lambda key: found[key]):
        policy, unscored, score = found[key]
        places[key] = (policy, unscored, turns[policy, unscored, key.benchmark], score)
        turns[policy, unscored, key.benchmark] += 1
    return sorted(places, key=lambda key: places[key])


def flagged_items(report: Report, policy: str | None = None) -> list[ItemName]:
    """The items called contaminated or suspect, by this policy or by any, in table order.

    Raises UsageError when the result has no such policy.
    """
    check_policy(report, policy)
    rows = _rows(report.verdicts, *ItemName._fields, "policy", "label")
    flagged = (
        ItemName(*name) for *name, judge, label in rows
        if label in FLAGGED and policy in {None, judge}
    )  # fmt: skip
    return list(dict.fromkeys(flagged))


def find_items(report: Report, name: str) -> list[ItemName]:
    """The items of that id; `benchmark/id` or `benchmark/split/id` tells equal ids apart.

    Raises UsageError, naming close matches, when there is none.
    """
    keys = [ItemName(*row) for row in _rows(report.items, *ItemName._fields)]
    found = [key for key in keys if name in _names(key)]
    if not found:
        close = get_close_matches(name, [key.item_id for key in keys[:100_000]], n=3)
        advice = (
            Statement("did you mean {}?", ", ".join(close))
            if close
            else "items.parquet lists every item"
        )
        raise UsageError("there is no item {!r} in {}", name, report.folder, hint=advice)
    return found


def check_policy(report: Report, policy: str | None) -> None:
    """Raise UsageError unless the result holds verdicts of this policy (None: of any)."""
    if policy is not None:
        known = _policies(report)
        if policy not in known:
            raise UsageError(
                "{} has no verdicts of policy {!r}",
                report.folder,
                policy,
                hint=Statement("it has: {}", ", ".join(known) or "none"),
            )


def _policies(report: Report) -> list[str]:
    return list(dict.fromkeys(schemas.column(report.verdicts, "policy")))


def source_of(source: str | None, url: str | None) -> str:
    """What a document comes from: its source, else the host of its address, else `unknown`."""
    return source or _host_of(url) or UNKNOWN_SOURCE


def sources_of(report: Report) -> dict[tuple[str, int], str]:
    """The source of every document in the evidence, by shard and row."""
    rows = _rows(report.evidence, "shard", "row", "source", "url")
    return {(shard, row): source_of(source, url) for shard, row, source, url in rows}


def _host_of(url: str | None) -> str:
    try:
        return urlsplit(url or "").hostname or ""
    except ValueError:
        return ""


def _having_sources(report: Report, sources: Sequence[str]) -> set[ItemName] | None:
    """The items that share text with a document of these sources; None where none is asked for."""
    if not sources:
        return None
    of_source: dict[str, set[ItemName]] = {}
    for *name, source, url in _rows(report.evidence, *ItemName._fields, "source", "url"):
        of_source.setdefault(source_of(source, url), set()).add(ItemName(*name))
    _check("source", sources, of_source)
    return set[ItemName]().union(*(of_source[source] for source in sources))


def _check(thing: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for a name that the result does not have, with those nearest to it."""
    there = dict.fromkeys(known)
    for name in wanted:
        if name not in there:
            close = ", ".join(get_close_matches(name, there, n=3))
            known = ", ".join(list(there)[:_NAMED]) or "none"
            raise UsageError(
                "there is no {} {!r}",
                Public(thing),
                name,
                hint=Statement("did you mean {}?", close)
                if close
                else Statement("known: {}", known),
            )


def _rows(table: Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """The values of these columns, row by row."""
    return zip(*(schemas.column(table, name) for name in names), strict=True)


def _names(key: ItemName) -> tuple[str, ...]:
    return (
        key.item_id,
        f"{key.benchmark}/{key.item_id}",
        f"{key.benchmark}/{key.split}/{key.item_id}",
    )
