"""Compare two audits: items, scores, ranks, studies, coverage, corpora, policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contam.audit.verify import checked_facts
from contam.benchmark.items import ItemName
from contam.detect.labels import FLAGGED
from contam.detect.report import load_report
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from contam.audit.facts import Facts

    Row = Mapping[str, Any]

CHANGES: Final = ("newly_flagged", "cleared", "unchecked", "relabelled", "added", "removed")
"""
newly_flagged  flagged now, and not before or not there before
cleared        was flagged, and is clean
unchecked      was judged, and could not be now
relabelled     any other two labels
added          new, and not flagged;  removed  gone, whatever it was
"""

_SCORE: Final = ("benchmark", "model", "metric", "policy")
_COVERAGE: Final = ("complete", "shards_read", "shards_expected", "rows", "n_bytes")
_SAME: Final = 1e-9


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
class Difference:
    """All that changed from one audit to another.

    before, after   digests of the packs
    incomparable    why verdicts cannot be set against each other; empty when they can
    policies_alike  policies that judge in both audits alike
    n_items_changed items that have the same name and other text; they count as new
    """

    before: str
    after: str
    status_before: str
    status_after: str
    incomparable: tuple[str, ...]
    policies_alike: tuple[str, ...]
    n_items_changed: int
    items: tuple[ItemChange, ...]
    scores: tuple[FigureChange, ...]
    ranks: tuple[FigureChange, ...]
    coverage: tuple[FigureChange, ...]
    corpora: tuple[FigureChange, ...]
    policies: tuple[FigureChange, ...]
    studies: tuple[FigureChange, ...]

    def count(self, change: str) -> int:
        """How many items changed in this way, over all policies."""
        return sum(item.change == change for item in self.items)


class _Side(NamedTuple):
    """One of the two audits.

    labels  (benchmark, split, item, policy) -> label;  keys  (benchmark, split, item) -> content
    """

    facts: Facts
    digest: str
    labels: dict[tuple[str, ...], str]
    keys: dict[tuple[str, ...], Any]


def compare_packs(before: Path, after: Path) -> Difference:
    """Set two packs side by side. Raises OutputError when one of them does not hold."""
    first, second = _read(before), _read(after)
    alike = _alike(first.facts, second.facts)
    changed = {
        key for key in first.keys.keys() & second.keys.keys() if first.keys[key] != second.keys[key]
    }
    return Difference(
        before=first.digest,
        after=second.digest,
        status_before=first.facts.headline.status,
        status_after=second.facts.headline.status,
        incomparable=tuple(_incomparable(first, second)),
        policies_alike=alike,
        n_items_changed=len(changed),
        items=tuple(_items(first, second, changed)),
        scores=_figures(first.facts.scores, second.facts.scores, ("full", "clean")),
        ranks=_figures(first.facts.rankings, second.facts.rankings, ("rank_full", "rank_clean")),
        coverage=_tree(_coverage(first.facts), _coverage(second.facts)),
        corpora=_tree(_corpora(first.facts), _corpora(second.facts)),
        policies=_tree(_policies(first.facts), _policies(second.facts)),
        studies=_tree(_studies(first.facts), _studies(second.facts)),
    )


def _read(folder: Path) -> _Side:
    facts, manifest = checked_facts(folder)
    report = load_report(folder / facts.verdicts)
    return _Side(
        facts,
        manifest["digest"],
        {
            (*ItemName.in_row(row), row["policy"]): row["label"]
            for row in schemas.rows(report.verdicts)
        },
        {
            ItemName.in_row(row): (row["key_version"], row["full_key"])
            for row in schemas.rows(report.items)
        },
    )


def _alike(first: Facts, second: Facts) -> tuple[str, ...]:
    if first.tool.get("normaliser") != second.tool.get("normaliser"):
        return ()
    before, after = _policies(first), _policies(second)
    return tuple(name for name in before if after.get(name) == before[name])


def _incomparable(first: _Side, second: _Side) -> Iterable[str]:
    normalisers = [side.facts.tool.get("normaliser") for side in (first, second)]
    if normalisers[0] != normalisers[1]:
        yield f"words are told apart by {normalisers[0]} and by {normalisers[1]}"
    before, after = _policies(first.facts), _policies(second.facts)
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield f"{name} is another policy in each: {before[name]['']} and {after[name]['']}"
    if not before.keys() & after.keys():
        yield "they have no policy in common"
    if not {key[0] for key in first.keys} & {key[0] for key in second.keys}:
        yield "they have no benchmark in common"


def _items(first: _Side, second: _Side, changed: set[tuple[str, ...]]) -> Iterable[ItemChange]:
    """Items by policies that are in both audits."""
    policies = _policies(first.facts).keys() & _policies(second.facts).keys()
    for key in sorted(first.labels.keys() | second.labels.keys()):
        if key[3] not in policies:
            continue
        before = None if key[:3] in changed else first.labels.get(key)
        after = second.labels.get(key)
        if before != after:
            yield ItemChange(
                change=_change(before, after),
                benchmark=key[0],
                split=key[1],
                item_id=key[2],
                policy=key[3],
                before=before,
                after=after,
            )


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


def _figures(
    first: Sequence[Row], second: Sequence[Row], names: Sequence[str]
) -> tuple[FigureChange, ...]:
    before, after = (
        {
            ", ".join(str(row[name]) for name in _SCORE): {name: row[name] for name in names}
            for row in rows
        }
        for rows in (first, second)
    )
    return _tree(before, after)


def _tree(before: Mapping[str, Row], after: Mapping[str, Row]) -> tuple[FigureChange, ...]:
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


def _coverage(facts: Facts) -> dict[str, Row]:
    return {"all corpora": {name: facts.coverage.get(name) for name in _COVERAGE}}


def _corpora(facts: Facts) -> dict[str, Row]:
    return {
        corpus.name: {
            "stage": corpus.stage,
            "how": corpus.how,
            "guarantee_tokens": corpus.guarantee_tokens,
            **{name: corpus.coverage.get(name) for name in _COVERAGE},
        }
        for corpus in facts.corpora
    }


def _policies(facts: Facts) -> dict[str, Row]:
    return {
        name: {"": f"version {policy['version']}, {policy['fingerprint']}"}
        for name, policy in facts.policies.items()
    }


def _studies(facts: Facts) -> dict[str, Row]:
    """What each study found, and what it does not estimate."""
    return {
        study["name"]: {
            "found": study["finding"]["found"],
            **{f"not estimated, {one['what']}": one["reason"] for one in study["refused"]},
        }
        for study in facts.studies
    }
