"""Search for decoys, and estimate from them how many flags are chance.

Decoys are items that look like the benchmark's to the detector and cannot be in the corpus: a
decoy's score says what chance overlap gives. A false discovery is a flag of an overlap that came by
chance; it is not a flag of an item that helped no model. From their competition come false
discovery rates, and q-values per item.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from contam.audit.checks import digest_of
from contam.audit.combine import combine
from contam.audit.decoys import JOIN, MAKER, SWAP, make_decoys
from contam.audit.facts import ask
from contam.audit.verify import REPORT
from contam.benchmark.items import ItemName
from contam.detect.labels import FLAGGED
from contam.detect.report import load_report
from contam.files.disk import output_errors
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.audit.checks import Checker, Items, StageCache
    from contam.audit.decoys import Decoys
    from contam.audit.facts import PolicyFacts
    from contam.audit.spec import AuditSpec
    from contam.detect.report import Report
    from contam.detect.result import ScanResult

    Result = Report | ScanResult
    Row = dict[str, Any]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


DECOYS: Final = "decoys"
CALIBRATION: Final = "calibration"
TABLE: Final = "calibration.parquet"
SUMMARY: Final = "calibration.json"
_LEVEL: Final = 0.95


def wanted(spec: AuditSpec) -> bool:
    """Whether the audit has decoys, made or given."""
    return bool(spec.decoys) or any(benchmark.decoys for benchmark in spec.benchmarks)


@dataclass(frozen=True, slots=True)
class Searched:
    """Decoys, and the stages that say what was found of them, by the corpus's name."""

    decoys: tuple[Decoys, ...]
    stages: dict[str, str]


def search_decoys(spec: AuditSpec, items: Items, checker: Checker) -> Searched | None:
    """Look for the audit's decoys in every corpus; None when it has none.

    Decoys are searched for by themselves, so that no verdict depends on them.
    """
    if not wanted(spec):
        return None
    decoys = [
        make_decoys(benchmark, draw=draw, seed=spec.seed)
        for benchmark in items.benchmarks
        for draw in range(1, spec.decoys + 1)
    ]
    searched = [decoy.benchmark for decoy in decoys if decoy.benchmark.items] + list(items.natural)
    stages = {}
    for corpus in spec.corpora:
        # Nobody reads the texts of decoys, and they must not be taken for the benchmark's.
        hidden = replace(spec, no_text=True)
        key = checker.make_key(hidden, corpus, searched)
        name = stages[corpus.name] = f"{DECOYS}/{corpus.name}"
        made_so = digest_of([key, MAKER, [decoy.digest() for decoy in decoys]])
        checker.check(name, made_so, hidden, corpus, searched)
    return Searched(tuple(decoys), stages)


def calibrated(
    spec: AuditSpec,
    items: Items,
    stage_cache: StageCache,
    searched: Searched,
    counted: tuple[str, Report],
) -> dict[str, Any]:
    """What decoys say of the audit's flags.

    counted  the stage whose verdicts count, and what it says
    """
    verdicts, report = counted

    def make(draft: Path) -> dict[str, Any]:
        natural = [benchmark.name for benchmark in items.natural]
        found = {
            name: load_report(stage_cache.folder / stage) for name, stage in searched.stages.items()
        }
        per_corpus = combine(found) if len(found) > 1 else next(iter(found.values()))
        columns, rows = estimate(report, per_corpus, searched.decoys, natural)
        summary = {
            "seed": spec.seed,
            "decoys_per_item": spec.decoys,
            "maker": MAKER,
            "without_decoy": {
                decoy.benchmark.name: decoy.n_items - len(decoy.kinds) for decoy in searched.decoys
            },
            "policies": rows,
        }
        with output_errors(draft):
            draft.mkdir(parents=True)
            table = schemas.table_of(columns, schemas.CALIBRATION)
            schemas.write_parquet(table, draft / TABLE)
            (draft / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n", "ascii")
        return {}

    keys = [stage_cache.keys[stage] for stage in (verdicts, *searched.stages.values())]
    folder = stage_cache.stage(CALIBRATION, digest_of([keys, VERSION]), make)
    summary: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
    return summary


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the decoys say of each target, in the order in which the targets were given.

    fdr  float64[n], share of chance among targets that score at least this, capped at 1
    q    float64[n], the least `fdr` of any threshold that accepts the target
    p    float64[n], (1 + decoys that score at least this) / (1 + decoys)
    """

    fdr: Floats
    q: Floats
    p: Floats


def calibrate(
    targets: Floats,
    decoys: Floats,
    *,
    cautious: bool = True,
    n_decoys: int | None = None,
) -> Calibration:
    """FDR(t) = min(1, (D(t) + 1) (n_T / n_D) / T(t)); q is its running minimum from below.

    targets, decoys  scores, higher for more overlap
    cautious         counts one decoy more than was seen: without it no claim holds in small sets
    n_decoys         how many decoys the scores speak for (see `compete`); None: one each

    Raises ValueError without targets or decoys.
    """
    n_decoys = len(decoys) if n_decoys is None else n_decoys
    if not len(targets) or not n_decoys:
        raise ValueError("calibration needs targets and decoys")
    above = _at_least(targets, decoys)
    accepted = _at_least(targets, targets)
    scale = len(targets) / n_decoys
    fdr = np.minimum(1.0, (above + int(cautious)) * scale / accepted)
    order = np.argsort(targets, kind="stable")
    # Equal scores are accepted together, so they must share one value before the minimum runs.
    q = np.empty_like(fdr)
    q[order] = np.minimum.accumulate(fdr[order])
    _, first = np.unique(targets[order], return_index=True)
    last = np.append(first[1:], len(order)) - 1
    q[order] = np.repeat(q[order][last], last - first + 1)
    return Calibration(fdr, q, np.minimum(1.0, (1 + above) / (1 + n_decoys)))


def compete(items: Floats, clones: Floats, closer: Floats, second: Floats) -> Floats:
    """The scores that chance gives, of items beside their own clones: float64[any].

    A clone of an item that is in the corpus is found there, too, and not by chance. So only a
    clone that beats its item counts, and it stands for both: its own score and its item's. Where an
    item is not in the corpus either wins as often as the other, so that this gives one score for
    each clone on average; an item that is there wins. A clone of two items must beat both, and
    stands for three. A draw gives one.

    items   score of the item, or of the better one of two;  second  of the other; NaN without one
    clones  score of the clone
    closer  which stands closer to the corpus where scores are equal: above 0 the item, below 0 the
            clone
    """
    lead = _lead(items, clones, closer)
    lesser = second[lead < 0]
    return np.concatenate([clones[lead <= 0], items[lead < 0], lesser[~np.isnan(lesser)]])


def _lead(items: Floats, clones: Floats, closer: Floats) -> Floats:
    """Above 0 where the item wins, below 0 where its clone does, 0 for a draw."""
    return np.where(items == clones, np.sign(closer), np.sign(items - clones))


def at_most(n_found: int, n_scores: float, n_decoys: int, n_targets: int) -> float:
    """The most targets that chance flags, at 95 %: the upper limit of a Poisson count.

    n_found   decoys flagged by chance;  n_scores  the scores they stand for (see `compete`)
    n_decoys  all decoys searched for, which may be more or fewer than the targets
    """
    from scipy.special import gammaincinv

    most = float(gammaincinv(n_found + 1, _LEVEL)) * (n_scores / n_found if n_found else 1.0)
    return most * n_targets / n_decoys


def smallest_claim(n_accepted: int, n_targets: int, n_decoys: int) -> float:
    """The least q that so many accepted targets can get with no decoy among them."""
    if n_accepted < 1 or n_decoys < 1:
        raise ValueError("a claim needs an accepted target and decoys")
    return min(1.0, n_targets / n_decoys / n_accepted)


@dataclass(frozen=True, slots=True)
class Entrapment:
    """Held-out decoys among what a claimed q accepts: the check of the claim.

    expected  the most held-out decoys that the claim allows among the accepted
    holds     whether what was seen is no more than the claim, at the level of the test
    p         chance of as many or more if the claim were true
    """

    claimed: float
    n_accepted: int
    n_held_out: int
    expected: float
    p: float
    holds: bool


def entrap(
    targets: Floats,
    decoys: Floats,
    held_out: Floats,
    *,
    claimed: float,
    level: float = 0.05,
    n_decoys: int | None = None,
) -> Entrapment:
    """Put held-out decoys among the targets, calibrate on the others, and count who gets in.

    The number that gets in is compared with a Poisson count of mean claimed x accepted.
    """
    from scipy.special import pdtrc

    mixed = np.concatenate([targets, held_out])
    accepted = calibrate(mixed, decoys, n_decoys=n_decoys).q <= claimed
    inside = int(accepted[len(targets) :].sum())
    n = int(accepted.sum())
    expected = claimed * n
    p = float(pdtrc(inside - 1, expected)) if inside else 1.0
    return Entrapment(claimed, n, inside, expected, p, p >= level)


def _at_least(scores: Floats, among: Floats) -> NDArray[np.int64]:
    ordered = np.sort(among)
    return (len(among) - np.searchsorted(ordered, scores, side="left")).astype(np.int64)


VERSION: Final = 2
"""Version of the estimate; a stage that holds another one is made again."""

LEAST: Final = 20
"""Decoys without which nothing is estimated."""

MADE: Final = "made"
NATURAL: Final = "natural"

ASSUMPTIONS: Final = {
    MADE: (
        "An item that is not in the corpora and its decoy, which has other numbers, names or words"
        " or another item's choices and answer, are found as easily the one as the other."
    ),
    NATURAL: (
        "Items that are not in the corpora and the items given as decoys, which are younger than"
        " the corpora, have scores of one distribution."
    ),
}
_TOKENS: Final = """
SELECT benchmark, split, item_id, max(n) FROM (
  SELECT benchmark, split, item_id, sum(n_tokens) AS n FROM evidence
  GROUP BY benchmark, split, item_id, shard, row
) GROUP BY ALL
"""
INCOMPLETE: Final = "not all of the corpora was read"
NOTHING: Final = "nothing is flagged"


class _Found(NamedTuple):
    """What was found of one item by one policy, in the order of how much; tokens in one place."""

    flagged: bool
    score: float
    tokens: int

    @property
    def rank(self) -> tuple[bool, float]:
        return self.flagged, self.score


Figures = tuple[float, float, float]
Judged = dict[tuple[str, str], dict[tuple[str, str], _Found]]
"""(benchmark, policy) -> (split, item id) -> what was found; not checkable ones are left out."""


def estimate(
    verdicts: Result, per_corpus: Result, decoys: Sequence[Decoys], natural: Iterable[str]
) -> tuple[dict[str, list[Any]], list[Row]]:
    """The share of chance among the flags of each benchmark and policy.

    Columns of `contam.tables.schemas.CALIBRATION`, and a row for each benchmark and policy.

    verdicts    the result that counts;  per_corpus  what the same search found of decoys
    natural     names of the benchmarks in `per_corpus` whose items are younger than the corpora
    """
    targets, others = _judged(verdicts), _judged(per_corpus)
    complete = verdicts.run["coverage"]["complete"] and per_corpus.run["coverage"]["complete"]
    of: defaultdict[str, list[Decoys]] = defaultdict(list)
    for made in decoys:
        of[made.of].append(made)
    values: dict[tuple[str, str, str, str], Figures] = {}
    rows = []
    for (name, policy), items in targets.items():
        pairs = [
            _Pair(made.kinds[key], clone, _parents(items, made, key))
            for made in of[name]
            for key, clone in others.get((made.benchmark.name, policy), {}).items()
            if key in items
        ]
        young = [match for source in natural for match in others.get((source, policy), {}).values()]
        row, figures = _World(items, pairs, young).row(complete=complete)
        rows.append({"benchmark": name, "policy": policy, **row})
        for key, found in figures.items():
            values[name, *key, policy] = found
    return _columns(verdicts, values), rows


def with_chance(
    tallies: Mapping[tuple[str, str], PolicyFacts], calibration: Mapping[str, Any] | None
) -> dict[tuple[str, str], PolicyFacts]:
    """The facts of each (benchmark, policy) with the share of chance among its flags."""
    rows = calibration["policies"] if calibration else ()
    shares = {(row["benchmark"], row["policy"]): row["fdr"] for row in rows}
    return {key: replace(tally, fdr=shares.get(key)) for key, tally in tallies.items()}


class _Pair(NamedTuple):
    """A decoy beside the item it was made of, or both items, the better one first."""

    kind: str
    clone: _Found
    parents: tuple[_Found, ...]


def _parents(
    items: Mapping[tuple[str, str], _Found], made: Decoys, key: tuple[str, str]
) -> tuple[_Found, ...]:
    names = (key, made.donors.get(key, key))
    return tuple(
        sorted((items[name] for name in dict.fromkeys(names) if name in items), reverse=True)
    )


class _World:
    """The items of one benchmark under one policy, beside their decoys, on one scale."""

    def __init__(
        self,
        items: Mapping[tuple[str, str], _Found],
        pairs: Sequence[_Pair],
        natural: Sequence[_Found],
    ) -> None:
        self._keys = list(items)
        self._items = list(items.values())
        self._pairs = pairs
        # Only the order of scores matters, and a flag outweighs any score.
        everyone = [*self._items, *(pair.clone for pair in pairs), *natural]
        ranks = sorted({match.rank for match in everyone})
        self._scale = {rank: at for at, rank in enumerate(ranks)}
        self.targets = self._on_scale(self._items)
        self.own = self._on_scale(pair.parents[0] for pair in pairs)
        seconds = (pair.parents[1:] for pair in pairs)
        self.second = np.array(
            [self._scale[rest[0].rank] if rest else np.nan for rest in seconds], np.float64
        )
        self.clones = self._on_scale(pair.clone for pair in pairs)
        self.closer = np.array([float(p.parents[0].tokens - p.clone.tokens) for p in pairs])
        self.lead = _lead(self.own, self.clones, self.closer)
        self.natural = self._on_scale(natural)
        self.flagged = np.array([item.flagged for item in self._items], np.bool_)

    def row(self, *, complete: bool) -> tuple[Row, dict[tuple[str, str], Figures]]:
        """The figures of the report, and (fdr, q, p) of every item, none where not estimable."""
        kinds = Counter(pair.kind for pair in self._pairs)
        made = len(self._pairs) >= LEAST
        decoys = MADE if made else NATURAL
        found: Row = {
            "estimable": False,
            "reason": "",
            "decoys": decoys,
            "n_items": len(self._items),
            "n_flagged": int(self.flagged.sum()),
            "n_decoys": len(self._pairs),
            "n_swapped": kinds[SWAP],
            "n_joined": kinds[JOIN],
            "n_natural": len(self.natural),
            "n_decoys_flagged": int(self._flags(self.clones).sum()),
            "n_natural_flagged": int(self._flags(self.natural).sum()),
            "n_draws": int(((self.lead == 0) & self._flags(self.clones)).sum()),
            **dict.fromkeys(("fdr", "n_chance", "smallest_q", "check")),
            "assumption": ASSUMPTIONS[decoys],
        }
        if problem := self._problem(complete=complete):
            return {**found, "reason": problem}, {}
        scores = self._compete() if made else self.natural
        n_decoys = len(self._pairs) if made else len(self.natural)
        result = calibrate(self.targets, scores, n_decoys=n_decoys)
        n_scores = float(self._flags(scores).sum())
        found["estimable"] = True
        found["n_chance"] = n_scores * len(self._items) / n_decoys
        if n_accepted := found["n_flagged"]:
            by_chance = self.clones[self.lead <= 0] if made else self.natural
            n_found = int(self._flags(by_chance).sum())
            most = at_most(n_found, n_scores, n_decoys, len(self._items))
            found["fdr"] = min(1.0, most / n_accepted)
            found["smallest_q"] = smallest_claim(n_accepted, len(self._items), n_decoys)
            found["check"] = self._check(scores, made=made)
        else:
            found["reason"] = NOTHING
        figures = zip(result.fdr.tolist(), result.q.tolist(), result.p.tolist(), strict=True)
        return found, dict(zip(self._keys, figures, strict=True))

    def _problem(self, *, complete: bool) -> str:
        if not complete:
            return INCOMPLETE
        if not self._items:
            return "no item is checkable"
        best = max(len(self._pairs), len(self.natural))
        return f"{best} decoys, and {LEAST} are needed" if best < LEAST else ""

    def _compete(self, at: Bools | slice = slice(None)) -> Floats:
        return compete(self.own[at], self.clones[at], self.closer[at], self.second[at])

    def _check(self, scores: Floats, *, made: bool) -> Row:
        """Held-out decoys among what the claim accepts: natural ones, or half of those made."""
        n_decoys = len(self.clones if made else self.natural)
        # Neighbours are alike: they come from one passage, or leaked together.
        first = np.random.default_rng(0).permutation(n_decoys) % 2 == 0
        kind = "held-out"
        if made and len(self.natural) >= LEAST:
            kind, known, held_out, n_known = NATURAL, scores, self.natural, len(self._pairs)
        elif made:
            # A clone that its item beats says nothing of chance.
            won = np.where(self.lead < 0, self.clones, -1.0)
            known, held_out, n_known = self._compete(first), won[~first], int(first.sum())
        else:
            known, held_out = self.natural[first], self.natural[~first]
            n_known = len(known)
        mixed = calibrate(np.concatenate([self.targets, held_out]), known, n_decoys=n_known)
        claimed = float(mixed.q[: len(self.targets)][self.flagged].max())
        if claimed >= 1:
            return {"kind": kind, "holds": None, "reason": "all flags may be chance: no claim"}
        seen = entrap(self.targets, known, held_out, claimed=claimed, n_decoys=n_known)
        return {"kind": kind, **asdict(seen), "reason": ""}

    def _on_scale(self, found: Iterable[_Found]) -> Floats:
        return np.array([self._scale[match.rank] for match in found], np.float64)

    def _flags(self, scores: Floats) -> Bools:
        first = min((at for rank, at in self._scale.items() if rank[0]), default=np.inf)
        result: Bools = scores >= first
        return result


def _judged(report: Result) -> Judged:
    # How many tokens of an item are in the document that has most of them.
    tokens = {ItemName(*name): int(n) for *name, n in ask(report, _TOKENS)}
    found: Judged = {}
    for row in schemas.iter_rows(report.verdicts):
        group = found.setdefault((row["benchmark"], row["policy"]), {})
        if row["score"] is not None:
            name = ItemName.in_row(row)
            group[row["split"], row["item_id"]] = _Found(
                row["label"] in FLAGGED, row["score"], tokens.get(name, 0)
            )
    return found


def _columns(
    verdicts: Result, values: Mapping[tuple[str, str, str, str], Figures]
) -> dict[str, list[Any]]:
    names = ("benchmark", "split", "item_id", "policy", "label", "score")
    columns = {name: schemas.column(verdicts.verdicts, name) for name in names}
    keys = zip(*(columns[name] for name in names[:4]), strict=True)
    none = (None, None, None)
    figures = [values.get(key, none) for key in keys]
    for at, name in enumerate(("fdr", "q_value", "p_value")):
        columns[name] = [figure[at] for figure in figures]
    return columns


@dataclass(frozen=True, slots=True)
class QValues:
    """What decoys say of single items.

    values   (benchmark, split, item id, policy) -> q-value, None where none was estimated
    reasons  (benchmark, policy) -> why nothing was estimated
    """

    values: dict[tuple[str, str, str, str], float | None]
    reasons: dict[tuple[str, str], str]

    def of(self, benchmark: str, split: str, item_id: str, policy: str) -> float | None:
        """The q-value of an item's verdict, None where none was estimated."""
        return self.values.get((benchmark, split, item_id, policy))

    def describe(self, benchmark: str, split: str, item_id: str, policy: str) -> str:
        """The q-value in words."""
        q = self.of(benchmark, split, item_id, policy)
        if q is not None:
            return f"q {q:.3g}"
        reason = self.reasons.get((benchmark, policy)) or (
            "not checkable" if self.values else "no decoys were searched for"
        )
        return f"q not estimated: {reason}"


def chance_of(folder: Path) -> QValues | None:
    """The q-values of a pack; None for a result that is no pack."""
    return q_values(folder) if (folder / REPORT).exists() else None


def q_values(pack: Path) -> QValues:
    """The q-values of a pack, or of a draft of one; none where no decoys were searched for."""
    folder = pack / CALIBRATION
    if not (folder / SUMMARY).exists():
        return QValues({}, {})
    summary = json.loads((folder / SUMMARY).read_bytes())
    table = schemas.read_parquet(folder / TABLE, schemas.CALIBRATION)
    names = ("benchmark", "split", "item_id", "policy", "q_value")
    return QValues(
        {
            tuple(key): q
            for *key, q in zip(*(schemas.column(table, name) for name in names), strict=True)
        },
        {
            (row["benchmark"], row["policy"]): row["reason"]
            for row in summary["policies"]
            if not row["estimable"]
        },
    )
