"""Judge a pack by the rules of a release: one outcome per rule; what cannot be judged fails."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

from annotated_types import Ge, Le
from pydantic import Field, TypeAdapter, ValidationError

from contam.audit.facts import BenchmarkFacts
from contam.audit.spec import TOGETHER, describe_mistake, first_wrong, read_toml, spec_error
from contam.audit.verify import checked_facts, compare_packs
from contam.benchmark.items import ItemName
from contam.detect.accepted import Accepted, find_accepted, read_accepted
from contam.detect.labels import FLAGGED
from contam.detect.report import load_report
from contam.errors import ConfigError
from contam.facts import counted
from contam.tables import schemas

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.audit.facts import Facts, PolicyFacts
    from contam.audit.verify import Difference
    from contam.detect.accepted import Flag

    Row = Mapping[str, Any]


ALL: Final = "*"
_STRICT: Final = {"extra": "forbid"}
Percent = Annotated[float, Ge(0), Le(100)]
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What all rules have.

    name       what a report calls it; made of its keys when empty
    benchmark  the one it is about; "*" is each
    policy     the one that judges; "*" is each, None the first of the audit
    """

    __pydantic_config__: ClassVar = _STRICT

    name: str = ""
    benchmark: str = ALL
    policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedShare(Rule):
    """The share of flagged items, of all items, without flags that a person accepted.

    unchecked  "count": what could not be checked may be flagged; "ignore": it is left out
    """

    check: Literal["flagged_share"]
    most_percent: Percent
    corpus: str = TOGETHER
    unchecked: Literal["count", "ignore"] = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGap(Rule):
    """How far the score on all items is from that on clean items.

    most_points  hundredths of the metric, in either direction
    bound        whether the far end of the 95 % interval must lie within, not the estimate alone
    least_clean  clean items without which nothing is judged
    """

    check: Literal["gap"]
    most_points: Annotated[float, Ge(0)]
    models: Names = ()
    metric: str | None = None
    bound: bool = False
    least_clean: Annotated[int, Ge(1)] = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FullCoverage(Rule):
    """All shards of all corpora were read; the named corpora are among them."""

    check: Literal["coverage"]
    corpora: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leads(Rule):
    """No lead of these models on all items is gone on the clean ones; none named are `ours`."""

    check: Literal["leads"]
    models: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFlags(Rule):
    """Items that an earlier pack did not flag, and nobody accepted.

    baseline  that pack, relative to the rules
    """

    check: Literal["new_flags"]
    baseline: str
    most: Annotated[int, Ge(0)] = 0


AnyRule = FlaggedShare | ScoreGap | FullCoverage | Leads | NewFlags


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a file, the pack it names, and the file of what a person accepted."""

    __pydantic_config__: ClassVar = _STRICT

    rule: tuple[Annotated[AnyRule, Field(discriminator="check")], ...] = ()
    pack: str | None = None
    accept: str | None = None


def load_rules(path: str | Path) -> Rules:
    """Read RULES.toml; paths in it are relative to its folder.

    Raises ConfigError naming the file and the key; a file without a rule passes nothing.
    """
    path = Path(path)
    try:
        read = TypeAdapter(Rules).validate_python(read_toml(path, hint="give a file"))
    except ValidationError as error:
        first = first_wrong(error)
        name, *rest = map(str, first["loc"])
        if rest:
            name = f"{name} {int(rest.pop(0)) + 1}"
        place = ", ".join(filter(None, [name, ".".join(rest)]))
        hint = "docs/guides/audit.md names every key"
        raise spec_error(str(path), "{}: {}", place, describe_mistake(first), hint=hint) from error
    if not read.rule:
        raise ConfigError("{} has no rule", path, hint="add a [[rule]]")
    base = path.resolve().parent

    def whole(named: str) -> str:
        return os.path.normpath(base / named)

    return Rules(
        tuple(
            replace(rule, baseline=whole(rule.baseline)) if isinstance(rule, NewFlags) else rule
            for rule in read.rule
        ),
        read.pack and whole(read.pack),
        read.accept and whole(read.accept),
    )


HOLDS: Final = "pass"
FAILS: Final = "fail"
UNKNOWN: Final = "unknown"
_POINTS: Final = 100.0
_MOST_ITEMS: Final = 3


class RulePart(NamedTuple):
    """One thing that a rule was judged on.

    of       benchmark, policy, model: what it is about
    badness  how near to the limit it comes, or how far beyond; only for the order
    """

    status: str
    of: str
    said: str
    badness: float = 0.0

    @property
    def text(self) -> str:
        """The part on one line."""
        return f"{self.of}: {self.said}" if self.of else self.said


class AcceptedFlags(NamedTuple):
    """The flags of a pack that a person accepted, as flags and by benchmark, policy and corpus."""

    flags: frozenset[Flag] = frozenset()
    counts: Mapping[tuple[str, str, str], int] = MappingProxyType({})


NONE_ACCEPTED: Final = AcceptedFlags()


def flagged_share(
    rule: FlaggedShare, facts: Facts, accepted: AcceptedFlags = NONE_ACCEPTED
) -> list[RulePart]:
    """Flagged items over all items; what was not checked may be flagged unless it is ignored."""
    parts = []
    for bench, found, of in _policies(rule, facts, rule.corpus):
        if found is None:
            parts.append(RulePart(UNKNOWN, of, "not in this audit"))
            continue
        left_out = accepted.counts.get((bench.name, found.policy, found.corpus), 0)
        flagged = found.contaminated + found.suspect - left_out
        strict = rule.unchecked == "count"
        unchecked = found.not_checkable + bench.n_skipped if strict else 0
        n = found.n_items + (bench.n_skipped if strict else 0)
        if not n:
            parts.append(RulePart(UNKNOWN, of, "it has no items"))
            continue
        said = f"{_POINTS * flagged / n:.2f} % flagged ({flagged:,} of {n:,})"
        if left_out:
            said += f", {left_out:,} more accepted"
        status = FAILS if _POINTS * flagged > rule.most_percent * n else HOLDS
        if status == HOLDS and _POINTS * (flagged + unchecked) > rule.most_percent * n:
            status = UNKNOWN
            said += f", and {unchecked:,} could not be checked"
        parts.append(RulePart(status, of, said, flagged / n))
    return parts


def gap(rule: ScoreGap, facts: Facts) -> list[RulePart]:
    """Full against clean, for each model."""
    parts = []
    for bench, policy in _chosen(rule, facts):
        rows = [
            row
            for row in facts.scores
            if row["benchmark"] in facts.logged_as(bench)
            and row["policy"] == policy
            and rule.metric in (None, row["metric"])
        ]
        models = rule.models or tuple(dict.fromkeys(row["model"] for row in rows))
        if not models:
            parts.append(RulePart(UNKNOWN, f"{bench}, {policy}", "there are no scores"))
        for model in models:
            own = [row for row in rows if row["model"] == model]
            if not own:
                parts.append(RulePart(UNKNOWN, f"{bench}, {policy}, {model}", "it has no score"))
            parts += [_gap(rule, row) for row in own]
    # One log may hold the items of several benchmarks.
    return list(dict.fromkeys(parts))


def _gap(rule: ScoreGap, row: Row) -> RulePart:
    of = f"{row['benchmark']}, {row['policy']}, {row['model']}, {row['metric']}"
    full, clean = row["full"], row["clean"]
    if row["n_clean"] < rule.least_clean:
        few = f"too few to judge: {counted(row['n_clean'], 'clean item')}"
        return RulePart(UNKNOWN, of, few)
    if full is None or clean is None:
        return RulePart(UNKNOWN, of, "it has no clean score")
    if not (0 <= full <= 1 and 0 <= clean <= 1):
        return RulePart(UNKNOWN, of, "its metric does not lie within 0 and 1")
    apart = [abs(full - clean)]
    if row["n_not_checkable"] and row["clean_with_unchecked"] is not None:
        # What was not checked may be clean: the gap must hold either way.
        apart.append(abs(full - row["clean_with_unchecked"]))
    said = f"{_POINTS * full:.1f} on all items, {_POINTS * clean:.1f} on clean ones"
    if row["adjusted"] is not None:
        said += f"; {_POINTS * row['adjusted']:+.1f} on flagged ones beyond other models"
    if rule.bound:
        far = _far_end(row)
        if far is None:
            return RulePart(UNKNOWN, of, f"{said}; there is no interval of the difference")
        apart.append(far)
        said += f", up to {_POINTS * max(apart):.1f} points apart"
    # Sums of hundredths are not exact: 0.62 - 0.6 is a little more than 0.02.
    within = _POINTS * max(apart) <= rule.most_points + 1e-9
    return RulePart(HOLDS if within else FAILS, of, said, max(apart))


def _far_end(row: Row) -> float | None:
    """The largest |full - clean| that the 95 % limits of the gap allow."""
    if row["n_clean"] == row["n"]:
        return 0.0
    gap, low, high = row["gap"], row["gap_low"], row["gap_high"]
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return None
    # What could not be checked is part of the gain, and as unsure as what is flagged.
    share = 1 - row["n_clean"] / row["n"]
    low, high = (row["gain"] + share * (end - gap) for end in (low, high))
    return float(max(abs(low), abs(high)))


def coverage(rule: FullCoverage, facts: Facts) -> list[RulePart]:
    """Every corpus was read whole."""
    names = {corpus.name for corpus in facts.corpora}
    parts = [
        RulePart(UNKNOWN, name, "no corpus of this audit")
        for name in rule.corpora
        if name not in names
    ]
    for corpus in facts.corpora:
        read, expected = corpus.coverage["shards_read"], corpus.coverage["shards_expected"]
        whole = bool(corpus.coverage["complete"]) and read == expected
        said = f"{read:,} of {counted(expected, 'shard')} read"
        parts.append(RulePart(HOLDS if whole else FAILS, corpus.name, said, expected - read))
    return parts


def leads(rule: Leads, facts: Facts) -> list[RulePart]:
    """Leads on all items that are not there on clean ones."""
    models = rule.models or facts.ours
    if not models:
        return [RulePart(UNKNOWN, "", "the audit does not say which models are ours")]
    parts: list[RulePart] = []
    for bench, policy in _chosen(rule, facts):
        for name in facts.logged_as(bench):
            for model in models:
                parts += _leads_of(facts, model, name, policy)
    return list(dict.fromkeys(parts))


def _leads_of(facts: Facts, model: str, bench: str, policy: str) -> Iterator[RulePart]:
    of = f"{model} on {bench}, {policy}"
    ranked = [
        row
        for row in facts.rankings
        if (row["model"], row["benchmark"], row["policy"]) == (model, bench, policy)
    ]
    others = {row["model"] for row in facts.rankings if row["benchmark"] == bench} - {model}
    if not ranked or not others:
        yield RulePart(UNKNOWN, of, "it was not ranked beside others")
        return
    if any(row["rank_full"] is None for row in ranked):
        yield RulePart(UNKNOWN, of, str(next(row["note"] for row in ranked if row["note"])))
    own = [
        row
        for row in facts.leads
        if (row["first"], row["benchmark"], row["policy"]) == (model, bench, policy)
    ]
    if not own:
        yield RulePart(HOLDS, of, "no lead on all items")
    for row in own:
        yield _lead(row, of)


def _lead(row: Row, of: str) -> RulePart:
    full, clean = row["difference_full"], row["difference_clean"]
    way = 1 if row["higher_is_better"] else -1
    said = f"{_signed(full)} over {row['second']} on all items"
    if clean is None:
        return RulePart(UNKNOWN, of, f"{said}; clean ones say nothing ({row['note']})")
    said += f", {_signed(clean)} on clean ones"
    if row["lead_clean"]:
        return RulePart(HOLDS, of, said, -way * clean)
    if row["lead_falls"]:
        p = row["change_p_holm"]
        return RulePart(FAILS, of, f"{said}, a significant change (p {p:.3f})", -way * clean)
    least = row["detectable_clean"]
    if least is not None:
        said += f", where less than {_POINTS * least:.1f} points cannot be shown"
    return RulePart(UNKNOWN, of, said, -way * clean)


def _signed(difference: float) -> str:
    return f"{_POINTS * difference:+.1f} points"


def new_flags(
    rule: NewFlags,
    facts: Facts,
    difference: Difference,
    accepted: AcceptedFlags = NONE_ACCEPTED,
) -> list[RulePart]:
    """Items that are flagged now and were not in the baseline, new items among them."""
    parts = []
    for bench, policy in _chosen(rule, facts):
        of = f"{bench}, {policy}"
        if policy not in difference.policies_alike:
            parts.append(RulePart(UNKNOWN, of, "the baseline was not judged by this policy"))
            continue
        new = [
            item
            for item in difference.items
            if (item.benchmark, item.policy, item.change) == (bench, policy, "newly_flagged")
            and item.flag not in accepted.flags
        ]
        named = ", ".join(item.item_id for item in new[:_MOST_ITEMS])
        named += ", ..." if len(new) > _MOST_ITEMS else ""
        said = f"{len(new):,} newly flagged" + (f": {named}" if new else "")
        parts.append(RulePart(HOLDS if len(new) <= rule.most else FAILS, of, said, len(new)))
    return parts


def _policies(
    rule: Rule, facts: Facts, corpus: str
) -> Iterator[tuple[BenchmarkFacts, PolicyFacts | None, str]]:
    """What is said of every benchmark and policy of a rule; None where nothing is."""
    alone = [known.name for known in facts.corpora] == [corpus]
    where = TOGETHER if alone else corpus
    by_name = {benchmark.name: benchmark for benchmark in facts.benchmarks}
    absent = BenchmarkFacts(name="", n_items=0, n_skipped=0, released=None, policies=())
    for name, policy in _chosen(rule, facts):
        bench = by_name.get(name, absent)
        found = [
            result for result in bench.policies if (result.policy, result.corpus) == (policy, where)
        ]
        of = f"{name}, {policy}" + ("" if where == TOGETHER else f" in {corpus}")
        yield bench, found[0] if found else None, of


def _chosen(rule: Rule, facts: Facts) -> Iterable[tuple[str, str]]:
    """The benchmarks and policies that a rule is about, whether the audit has them or not."""
    policies = tuple(facts.policies)
    if rule.policy != ALL:
        policies = (rule.policy or facts.first_policy,)
    benchmarks = [rule.benchmark]
    if rule.benchmark == ALL:
        benchmarks = [benchmark.name for benchmark in facts.benchmarks]
    return [(bench, policy) for bench in benchmarks for policy in policies]


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
    """What became of all rules, and of which pack.

    accepted  the rows of the file of what a person accepted, each with its `state`
    """

    pack: str
    title: str
    digest: str
    outcomes: tuple[Outcome, ...]
    accepted: tuple[dict[str, str], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every rule was judged and held."""
        return all(outcome.status == HOLDS for outcome in self.outcomes)


def run_gate(rules: Rules, folder: Path, today: dt.date, digest: str | None = None) -> GateVerdict:
    """Judge a pack by rules.

    today   the day on which accepted rows must hold;  digest  of the pack that was signed off

    Raises OutputError when the pack, or that of a baseline, is not as it was published.
    """
    rows = read_accepted(Path(rules.accept)) if rules.accept else ()
    facts, manifest = checked_facts(folder, digest)
    found = Accepted()
    if rows:
        found = find_accepted(rows, load_report(folder / facts.verdicts), today)
    accepted = _counted(found, facts, folder)
    return GateVerdict(
        pack=str(folder),
        title=facts.title,
        digest=manifest["digest"],
        outcomes=tuple(_outcome(rule, facts, folder, accepted) for rule in rules.rule),
        accepted=found.rows,
    )


def _counted(found: Accepted, facts: Facts, folder: Path) -> AcceptedFlags:
    """The accepted flags, counted in all corpora together and in each."""
    counts: Counter[tuple[str, str, str]] = Counter()
    places = {TOGETHER: facts.verdicts}
    if len(facts.corpora) > 1:
        places |= {corpus.name: f"checks/{corpus.name}" for corpus in facts.corpora}
    for corpus, place in places.items() if found.flags else ():
        for row in schemas.iter_rows(load_report(folder / place).verdicts):
            if row["label"] in FLAGGED and (*ItemName.in_row(row), row["policy"]) in found.flags:
                counts[row["benchmark"], row["policy"], corpus] += 1
    return AcceptedFlags(found.flags, counts)


def _outcome(rule: AnyRule, facts: Facts, folder: Path, accepted: AcceptedFlags) -> Outcome:
    parts: Sequence[RulePart]
    if isinstance(rule, FlaggedShare):
        parts = flagged_share(rule, facts, accepted)
        limit = f"flagged share at most {rule.most_percent:g} %"
        limit += f" in {rule.corpus}" if rule.corpus != TOGETHER else ""
    elif isinstance(rule, ScoreGap):
        parts = gap(rule, facts)
        limit = f"clean score within {rule.most_points:g} points of full"
        limit += " by the interval's bound" if rule.bound else ""
    elif isinstance(rule, FullCoverage):
        parts, limit = coverage(rule, facts), "all of the corpora read"
    elif isinstance(rule, Leads):
        parts, limit = leads(rule, facts), "no lead rests on flagged items"
    else:
        difference = compare_packs(Path(rule.baseline), folder)
        parts = new_flags(rule, facts, difference, accepted)
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
