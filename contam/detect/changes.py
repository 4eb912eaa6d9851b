"""Compare two results: whose label changed, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.items import ItemName
from contam.detect.labels import FLAGGED
from contam.facts import counted
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contam.detect.report import Report

    Row = Mapping[str, Any]
    Evidence = dict[tuple[str, str], set[tuple[Any, ...]]]

CHANGES: Final = ("newly_flagged", "cleared", "unchecked", "relabelled", "added", "removed")
"""
newly_flagged  flagged now, and not before or not there before
cleared        was flagged, and is clean
unchecked      was judged, and could not be now
relabelled     any other two labels
added          new, and not flagged;  removed  gone, whatever it was
"""

#: How a corpus was searched; an older result lacks what it did not use.
_SEARCHED: Final = ("unit", "seed", "min_run", "text", "columns", "allow_missing")
_COVERAGE: Final = ("complete", "shards_read", "shards_expected", "rows", "n_bytes")
_SAME: Final = 1e-9
_NAMED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """An item whose label under a policy is another one; None is an item that is not there."""

    change: str
    benchmark: str
    split: str
    item_id: str
    policy: str
    before: str | None
    after: str | None
    why: str

    @property
    def flag(self) -> tuple[str, str, str, str]:
        """Benchmark, split, item id and policy."""
        return (self.benchmark, self.split, self.item_id, self.policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """A figure that is another one; None where there is none.

    what  "full", "clean", "rank_full", "rank_clean", or what of a corpus, policy or study
    """

    of: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All that changed from one result to another.

    incomparable    why verdicts cannot be set against each other; empty when they can
    policies_alike  policies that judge in both alike
    n_items_changed items that have the same name and other text; they count as new
    settings        of the search
    shards          by their digests; a shard of which nothing is known has none
    """

    incomparable: tuple[str, ...]
    policies_alike: tuple[str, ...]
    n_items_changed: int
    items: tuple[ItemChange, ...]
    coverage: tuple[FigureChange, ...]
    policies: tuple[FigureChange, ...]
    settings: tuple[FigureChange, ...]
    shards: tuple[FigureChange, ...]

    def count(self, change: str) -> int:
        """How many items changed in this way, over all policies."""
        return sum(item.change == change for item in self.items)


class Side:
    """One of two results.

    policies   what they are, by name: their version and fingerprint
    verdicts   (benchmark, split, item, policy) -> label and reason
    keys       (benchmark, split, item) -> content
    """

    def __init__(self, report: Report, normaliser: str | None, policies: Mapping[str, Row]) -> None:
        self.report = report
        self.normaliser = normaliser
        self.policies = {
            name: f"version {policy['version']}, {policy['fingerprint']}"
            for name, policy in policies.items()
        }
        self.verdicts = {
            (*ItemName.in_row(row), row["policy"]): (row["label"], row["reason"])
            for row in schemas.iter_rows(report.verdicts)
        }
        self.keys = {
            ItemName.in_row(row): (row["key_version"], row["full_key"])
            for row in schemas.iter_rows(report.items)
        }
        self.shards = {
            shard["name"]: {"": shard.get("digest")}
            for shard in report.run.get("inputs", {}).get("shards", ())
        }
        parameters = report.run["parameters"]
        self.settings = {"search": {name: parameters.get(name) for name in _SEARCHED}}

    @classmethod
    def of(cls, report: Report) -> Side:
        """What a result says of itself."""
        parameters = report.run["parameters"]
        return cls(report, parameters.get("normaliser"), parameters.get("policy_definitions", {}))

    def coverage(self) -> dict[str, Row]:
        """How much was read."""
        coverage = self.report.run["coverage"]
        return {"all corpora": {name: coverage.get(name) for name in _COVERAGE}}

    def evidence(self, wanted: set[ItemName]) -> dict[ItemName, Evidence]:
        """Of these items: the stretches found in each document, by its id and shard."""
        found: dict[ItemName, Evidence] = {item: {} for item in wanted}
        for row in schemas.iter_rows(self.report.evidence):
            if (item := ItemName.in_row(row)) in wanted:
                place = (row["document_id"], row["shard"])
                stretch = (row["part"], row["item_start"], row["item_end"])
                found[item].setdefault(place, set()).add(stretch)
        return found


def compare(first: Side, second: Side) -> Changes:
    """Set two results side by side."""
    changed = {
        key for key in first.keys.keys() & second.keys.keys() if first.keys[key] != second.keys[key]
    }
    alike = first.normaliser == second.normaliser
    before, after = (
        {name: {"": said} for name, said in side.policies.items()} for side in (first, second)
    )
    return Changes(
        incomparable=tuple(_incomparable(first, second, changed)),
        policies_alike=tuple(
            name
            for name, said in first.policies.items()
            if alike and second.policies.get(name) == said
        ),
        n_items_changed=len(changed),
        items=tuple(_items(first, second, changed)),
        coverage=differing(first.coverage(), second.coverage()),
        policies=differing(before, after),
        settings=differing(first.settings, second.settings),
        shards=differing(first.shards, second.shards),
    )


def _incomparable(first: Side, second: Side, changed: set[ItemName]) -> Iterator[str]:
    if first.normaliser != second.normaliser:
        yield f"words are told apart by {first.normaliser} and by {second.normaliser}"
    common = sorted(first.policies.keys() & second.policies.keys())
    for name in common:
        if first.policies[name] != second.policies[name]:
            said = f"{first.policies[name]} and {second.policies[name]}"
            yield f"{name} is another policy in each: {said}"
    if not common:
        yield "they have no policy in common"
    names = {key.benchmark for key in first.keys} & {key.benchmark for key in second.keys}
    if not names:
        yield "they have no benchmark in common"
    same = {key.benchmark for key in (first.keys.keys() & second.keys.keys()) - changed}
    for name in sorted(names - same):
        yield f"{name} is another benchmark in each: no item has the same name and text"


def _items(first: Side, second: Side, changed: set[ItemName]) -> Iterator[ItemChange]:
    """Items whose label is another one, by policies that are in both results."""
    policies = first.policies.keys() & second.policies.keys()
    labels = []
    for key in sorted(first.verdicts.keys() | second.verdicts.keys()):
        if key[3] not in policies:
            continue
        old, new = first.verdicts.get(key), second.verdicts.get(key)
        before = None if old is None or key[:3] in changed else old[0]
        after = None if new is None else new[0]
        if before != after:
            labels.append((key, before, after))
    both = {ItemName(*key[:3]) for key, before, after in labels if before and after}
    evidence = (first.evidence(both), second.evidence(both))
    for key, before, after in labels:
        item = ItemName(*key[:3])
        if item in changed:
            why = "its text is another one"
        elif item not in both:
            why = "only in the later" if before is None else "only in the earlier"
        else:
            why = "; ".join(_why(first, second, key, [each[item] for each in evidence]))
        yield ItemChange(
            change=_change(before, after),
            **item._asdict(),
            policy=key[3],
            before=before,
            after=after,
            why=why,
        )


def _why(
    first: Side, second: Side, key: tuple[str, str, str, str], found: list[Evidence]
) -> Iterator[str]:
    """Why an item that is in both results has another label by a policy."""
    if first.policies[key[3]] != second.policies[key[3]]:
        yield "another version of the policy"
    if first.normaliser != second.normaliser or first.settings != second.settings:
        yield "searched with other settings"
    before, after = found
    for said, here, there, shards in (
        ("evidence gone", before, after, second.shards),
        ("new evidence", after, before, first.shards),
    ):
        if places := sorted(here.keys() - there.keys()):
            named = (_place(place, first, second, shards) for place in places[:_NAMED])
            more = (
                f" and {counted(len(places) - _NAMED, 'more document')}"
                if len(places) > _NAMED
                else ""
            )
            yield f"{said}: {', '.join(named)}{more}"
    if any(before[place] != after[place] for place in before.keys() & after.keys()):
        yield "other stretches of the same documents match"
    if before == after or second.verdicts[key][0] == "not_checkable":
        yield second.verdicts[key][1]


def _place(place: tuple[str, str], first: Side, second: Side, others: Mapping[str, Row]) -> str:
    """A document, and what is with its shard in the other result."""
    document, shard = place
    if shard not in others:
        return f"{document} (the other did not search {shard})"
    if first.shards.get(shard) != second.shards.get(shard):
        return f"{document} ({shard} has changed)"
    return f"{document} in {shard}"


def _change(before: str | None, after: str | None) -> str:
    if after is None:
        return "removed"
    if after in FLAGGED:
        return "relabelled" if before in FLAGGED else "newly_flagged"
    if before is None:
        return "added"
    if after == "not_checkable":
        return "unchecked"
    return "cleared" if before in FLAGGED else "relabelled"


def differing(before: Mapping[str, Row], after: Mapping[str, Row]) -> tuple[FigureChange, ...]:
    """What differs between two tables of name -> figure -> value."""
    return tuple(
        FigureChange(of=of, what=what, before=old.get(what), after=new.get(what))
        for of in dict.fromkeys([*before, *after])
        for old, new in [(before.get(of, {}), after.get(of, {}))]
        for what in dict.fromkeys([*old, *new])
        if not _equal(old.get(what), new.get(what))
    )


def _equal(old: object, new: object) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return abs(old - new) <= _SAME
    return old == new
