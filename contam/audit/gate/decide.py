"""Decide whether a pack passes: one outcome per rule; what cannot be judged does not pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.audit.diff import compare_packs
from contam.audit.gate import judge
from contam.audit.gate.judge import FAILS, HOLDS, UNKNOWN, RulePart
from contam.audit.gate.rules import (
    ALL,
    ChanceLimit,
    CleanItems,
    FlaggedShare,
    FullCoverage,
    Leads,
    ScoreGap,
)
from contam.audit.spec import TOGETHER
from contam.audit.verify import checked_facts

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from contam.audit.facts import Facts
    from contam.audit.gate.rules import AnyRule

_WORST_FIRST: Final = (FAILS, UNKNOWN, HOLDS)
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one rule.

    status  "pass", "fail" or "unknown";  said  why, on one line
    parts   what it was judged on, the worst first
    """

    rule: str
    check: str
    status: str
    said: str
    parts: tuple[RulePart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """What became of all rules, and of which pack."""

    pack: str
    title: str
    digest: str
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every rule was judged and held."""
        return all(outcome.status == HOLDS for outcome in self.outcomes)


def run_gate(
    rules: Sequence[AnyRule], folder: Path, today: dt.date, digest: str | None = None
) -> GateVerdict:
    """Judge a pack by rules.

    today   the day on which its waivers must hold;  digest  of the pack that was signed off

    Raises OutputError when the pack, or that of a baseline, is not as it was published.
    """
    facts, manifest = checked_facts(folder, digest)
    outcomes = [_outcome(rule, facts, folder) for rule in rules]
    if facts.waivers:
        parts = judge.waivers(facts, today)
        outcomes.append(_summed(f"waivers hold on {today}", "waivers", parts))
    return GateVerdict(
        pack=str(folder), title=facts.title, digest=manifest["digest"], outcomes=tuple(outcomes)
    )


def _outcome(rule: AnyRule, facts: Facts, folder: Path) -> Outcome:
    parts: Sequence[RulePart]
    if isinstance(rule, FlaggedShare):
        parts = judge.flagged_share(rule, facts)
        limit = f"flagged share at most {rule.most_percent:g} %"
        limit += f" in {rule.corpus}" if rule.corpus != TOGETHER else ""
    elif isinstance(rule, ScoreGap):
        parts = judge.gap(rule, facts)
        limit = f"clean score within {rule.most_points:g} points of full"
        limit += " by the interval's bound" if rule.bound else ""
    elif isinstance(rule, FullCoverage):
        parts, limit = judge.coverage(rule, facts), "all of the corpora read"
    elif isinstance(rule, Leads):
        parts, limit = judge.leads(rule, facts), "no lead rests on flagged items"
    elif isinstance(rule, CleanItems):
        parts, limit = judge.clean_items(rule, facts), f"at least {judge.n_clean_items(rule.least)}"
    elif isinstance(rule, ChanceLimit):
        parts, limit = judge.chance(rule, facts), f"at most {rule.most_percent:g} % chance flags"
    else:
        difference = compare_packs(Path(rule.baseline), folder)
        parts = judge.new_flags(rule, facts, difference)
        limit = f"at most {rule.most:,} newly flagged" if rule.most else "nothing newly flagged"
    return _summed(rule.name or _named(rule, limit), rule.check, parts)


def _named(rule: AnyRule, limit: str) -> str:
    scope = "" if rule.benchmark == ALL else f"{rule.benchmark}: "
    judged = "" if rule.policy is None else f" by {rule.policy}"
    return scope + limit + (" by every policy" if rule.policy == ALL else judged)


def _summed(name: str, check: str, parts: Sequence[RulePart]) -> Outcome:
    if not parts:
        parts = [RulePart(UNKNOWN, "", "there is nothing to judge")]
    order = sorted(parts, key=lambda part: (_WORST_FIRST.index(part.status), -part.badness))
    status = order[0].status
    shown = [part for part in order if part.status != HOLDS][:_MOST_NAMED]
    n_bad = sum(part.status != HOLDS for part in order)
    if status == HOLDS:
        said = order[0].text if len(order) == 1 else f"worst of {len(order)}: {order[0].text}"
    else:
        more = f"; and {n_bad - len(shown)} more" if n_bad > len(shown) else ""
        said = "; ".join(part.text for part in shown) + more
    return Outcome(rule=name, check=check, status=status, said=said, parts=tuple(order))
