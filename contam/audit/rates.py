"""Estimate precision, a lower bound on recall, and the rate of leaks from reviews.

Formulas: prediction-powered inference (Angelopoulos et al. 2023) and its tuned form, PPI++; the
limit of what a judge can save (Dorner, Nastl, Hardt 2025); kappa (Cohen 1960).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from itertools import combinations
from math import ceil, inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from scipy.special import ndtri

from contam.detect.intervals import LEVEL, wilson
from contam.errors import ConfigError, Plain
from contam.files.single import read_file, reading, whole_file
from contam.rescore.stats.clusters import Interval, clopper_pearson
from contam.tables import schemas
from contam.tables.score_schemas import JUDGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.audit.sample import Case, Judged, Label

    Row = dict[str, Any]
    Floats = NDArray[np.float64]


_ANSWERS_OF_JUDGE: Final = (
    "a row has benchmark, split, item_id, pair, model, and an answer: yes, no or no answer"
)


YES: Final = "yes"
NO: Final = "no"
NO_ANSWER: Final = "no answer"
ANSWERS: Final = (YES, NO, NO_ANSWER)


@dataclass(frozen=True, slots=True)
class _Judgment:
    """A line of a JSONL file."""

    benchmark: str
    split: str
    item_id: str
    pair: str
    model: str
    answer: Literal["yes", "no", "no answer"]


def read_judged(paths: Sequence[str | Path]) -> list[Row]:
    """The rows of these files.

    Raises ConfigError naming a file that is none, or not whole, and where one model has answered
    twice about one pair.
    """
    found: dict[tuple[str, str], Row] = {}
    for path in map(Path, paths):
        read = _parquet_rows if path.suffix == ".parquet" else _json_rows
        for row in read(path):
            if row["answer"] not in ANSWERS:
                raise ConfigError(
                    "{}: {!r} is no answer of a judge", path, row["answer"],
                    hint=_ANSWERS_OF_JUDGE,
                )  # fmt: skip
            if (row["pair"], row["model"]) in found:
                raise ConfigError(
                    "{}: {!r} has two answers about item {}", path, row["model"], row["item_id"],
                    hint=_ANSWERS_OF_JUDGE,
                )  # fmt: skip
            found[row["pair"], row["model"]] = row
    return list(found.values())


def _parquet_rows(path: Path) -> list[Row]:
    try:
        return schemas.rows(schemas.read_parquet(path, JUDGED))
    except (OSError, ValueError) as error:
        raise ConfigError(
            "cannot read {}: {}", path, Plain(error), hint=_ANSWERS_OF_JUDGE
        ) from error


def _json_rows(path: Path) -> Iterator[Row]:
    from pydantic import TypeAdapter, ValidationError

    known = TypeAdapter(_Judgment)
    with reading(path, ConfigError):
        lines = read_file(path).splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            yield asdict(known.validate_json(line, strict=True))
        except ValidationError as error:
            raise ConfigError(
                "{}:{} is no answer of a judge", path, number, hint=_ANSWERS_OF_JUDGE
            ) from error


def write_judged(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as one Parquet file. Raises OutputError."""
    columns = {name: [row[name] for row in rows] for name in JUDGED.names}
    with whole_file(path, overwrite=True) as file:
        schemas.write_parquet(schemas.table_of(columns, JUDGED), file)


def tally(rows: Sequence[Row]) -> list[Row]:
    """How often each judge gave each answer."""
    counts = Counter((row["model"], row["answer"]) for row in rows)
    return [
        {"model": name, **{f"n_{said.replace(' ', '_')}": counts[name, said] for said in ANSWERS}}
        for name in sorted({name for name, _ in counts})
    ]


def mean_answers(rows: Sequence[Row]) -> dict[str, float]:
    """Pair -> 1 for yes and 0 for no, of several judges the mean; none where there is no answer."""
    said: dict[str, list[float]] = {}
    for row in rows:
        if row["answer"] != NO_ANSWER:
            said.setdefault(row["pair"], []).append(float(row["answer"] == YES))
    return {pair: sum(answers) / len(answers) for pair, answers in said.items()}


LEAST: Final = 2
"""Labels without which no variance is known, so nothing is estimated."""


@dataclass(frozen=True, slots=True)
class Powered:
    """A mean that labels and a proxy give together.

    weight   lambda, how much the proxy is listened to: 0 is the labels alone
    saving   tau_max = 1 / (1 - rho^2), how many times fewer labels the proxy can save at the most
    error    standard error of the mean
    """

    interval: Interval
    weight: float
    saving: float
    error: float


def powered(
    gold: Floats,
    proxy: Floats,
    rest: Floats,
    *,
    weight: float | None = None,
    level: float = LEVEL,
) -> Powered:
    """Mean of gold over all items, of which only some were read.

    gold    float64[n], what the reader said
    proxy   float64[n], what the detector said of the same items
    rest    float64[N], what the detector said of items nobody read
    weight  lambda; None takes the best one, clipped to 0..1

    theta = lambda mean(rest) + mean(gold - lambda proxy), with
    Var = lambda^2 Var(rest)/N + Var(gold - lambda proxy)/n.

    Raises ValueError below `LEAST` labels or when the lengths differ.
    """
    n, n_rest = len(gold), len(rest)
    if n < LEAST or len(proxy) != n:
        raise ValueError(f"{n} labels for {len(proxy)} answers of the detector")
    if weight is None:
        weight = _best_weight(gold, proxy, rest) if n_rest else 0.0
    mean = float(np.mean(gold - weight * proxy)) + (weight * float(np.mean(rest)) if weight else 0)
    variance = float(np.var(gold - weight * proxy)) / n
    if weight:
        variance += weight * weight * float(np.var(rest)) / n_rest
    half = float(ndtri(0.5 + level / 2)) * float(np.sqrt(variance))
    name = "labels alone" if weight == 0 else "prediction-powered"
    rho2 = _squared_correlation(gold, proxy)
    return Powered(
        Interval(mean, max(0.0, mean - half), min(1.0, mean + half), name),
        weight,
        1.0 / (1.0 - rho2) if rho2 < 1 else inf,
        float(np.sqrt(variance)),
    )


def labels_needed(
    variance: float, rho2: float, half_width: float, n_rest: float = inf, level: float = LEVEL
) -> float:
    """Labels for an interval of this half width: z^2 Var = w^2 with the best weight.

    Var = (variance / n) (1 - rho2 N / (N + n)); `n_rest` is N.
    """
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    scale = z2 * variance / half_width**2
    if n_rest == inf:
        return scale * (1 - rho2)
    # n^2 + n (N - scale) - scale N (1 - rho2) = 0
    b = n_rest - scale
    return (-b + float(np.sqrt(b * b + 4 * scale * n_rest * (1 - rho2)))) / 2


def kappa(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Agreement of two readers beyond chance; not a number when both always say one thing.

    Raises ValueError without items or when the lengths differ.
    """
    a, b = np.asarray(first, np.bool_), np.asarray(second, np.bool_)
    if not len(a) or len(a) != len(b):
        raise ValueError(f"{len(a)} labels beside {len(b)}")
    seen = float(np.mean(a == b))
    chance = float(a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean()))
    return (seen - chance) / (1 - chance) if chance < 1 else float("nan")


def _best_weight(gold: Floats, proxy: Floats, rest: Floats) -> float:
    n, n_rest = len(gold), len(rest)
    spread = float(np.var(np.concatenate([proxy, rest]), ddof=1))
    if spread == 0:
        return 0.0
    shared = float(np.mean((gold - gold.mean()) * (proxy - proxy.mean())))
    return float(np.clip(shared / ((1 + n / n_rest) * spread), 0.0, 1.0))


def _squared_correlation(gold: Floats, proxy: Floats) -> float:
    if np.ptp(gold) == 0 or np.ptp(proxy) == 0:
        return 0.0
    return float(np.corrcoef(gold, proxy)[0, 1] ** 2)


HALF_WIDTH: Final = 0.05
NO_LABELS: Final = "no labels"


def reviewed(cases: Sequence[Case], labels: Sequence[Label], judged: Sequence[Row] = ()) -> Row:
    """What the labels give for each benchmark and policy, and how far every two readers agree.

    cases   every checkable item under every policy
    judged  what a judge said of flagged items (`contam.audit.rates`), a better proxy than
            the score where it was asked; without labels it gives nothing

    A label whose item is gone, or whose evidence is not what was seen, is counted and not used.
    Where one reader answered twice the later answer counts; readers who disagree count half each.
    """
    known = {case.judged: case for case in cases}
    answers: defaultdict[Judged, dict[str, bool]] = defaultdict(dict)
    stale = 0
    for label in labels:
        case = known.get(label.judged)
        if case is None or case.digest != label.evidence:
            stale += 1
        elif label.label is None:
            answers[label.judged].pop(label.reader, None)
        else:
            answers[label.judged][label.reader] = label.label
    gold = {
        judged: sum(by_reader.values()) / len(by_reader)
        for judged, by_reader in answers.items()
        if by_reader
    }
    groups: defaultdict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.judged[0], case.judged[3]].append(case)
    pairs = {case.pair for case in cases if case.pair}
    current = [row for row in judged if row["pair"] in pairs]
    said = mean_answers(current)
    return {
        "n_labels": len(labels),
        "n_read": len(gold),
        "n_stale": stale,
        "readers": sorted({label.reader for label in labels}),
        "agreement": _agreement(answers.values()),
        "policies": [
            {
                "benchmark": benchmark,
                "policy": policy,
                **_Sample(members, gold, said).row(),
                **({"n_judged": sum(case.pair in said for case in members)} if judged else {}),
            }
            for (benchmark, policy), members in groups.items()
        ],
        **(
            {"judges": tally(current), "n_stale_judged": len(judged) - len(current)}
            if judged
            else {}
        ),
    }


def _agreement(answers: Iterable[Mapping[str, bool]]) -> list[Row]:
    """Cohen's kappa of every two readers, on the items that both read."""
    shared: defaultdict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for by_reader in answers:
        for first, second in combinations(sorted(by_reader), 2):
            shared[first, second].append((by_reader[first], by_reader[second]))
    rows = []
    for readers, said in sorted(shared.items()):
        value = kappa([a for a, _ in said], [b for _, b in said])
        reason = "both always say the same one thing" if np.isnan(value) else ""
        if len(said) < LEAST:
            reason = "fewer than two items"
        known = None if reason else value
        rows.append({"readers": list(readers), "n": len(said), "kappa": known, "reason": reason})
    return rows


@dataclass(frozen=True, slots=True)
class _Stratum:
    """A stratum of N items, n of them read: their mean, and the variance of that mean.

    told  what the judge, or else the flag, says of those that were read
    """

    flagged: bool
    n_items: int
    gold: list[float]
    told: list[float]
    mean: float
    variance: float


class _Sample:
    """The items of one benchmark under one policy, some of them read."""

    def __init__(
        self, cases: Sequence[Case], gold: dict[Judged, float], said: Mapping[str, float]
    ) -> None:
        self._cases = cases
        self._gold = gold
        self._said = said
        self._strata: defaultdict[tuple[str, str, str], list[Case]] = defaultdict(list)
        for case in cases:
            self._strata[case.stratum].append(case)

    def row(self) -> Row:
        read = [case for case in self._cases if case.judged in self._gold]
        n_flagged = sum(case.flagged for case in self._cases)
        found: Row = {
            "n_items": len(self._cases),
            "n_flagged": n_flagged,
            "n_read_flagged": sum(case.flagged for case in read),
            "n_read_clean": sum(not case.flagged for case in read),
            **dict.fromkeys(("precision", "precision_lo", "precision_hi", "recall_lo")),
            **dict.fromkeys(("rate", "rate_lo", "rate_hi", "saving_most", "labels_needed")),
            "estimable": False,
            "reason": "",
        }
        if not read:
            return {**found, "reason": NO_LABELS}
        thin = [
            f"{label}, {exposure}"
            for (_, label, exposure), members in sorted(self._strata.items())
            if sum(case.judged in self._gold for case in members) < min(LEAST, len(members))
        ]
        if thin:
            return {**found, "reason": f"fewer than two labels of: {'; '.join(thin)}"}
        strata = [self._stratum(members) for members in self._strata.values()]
        if flagged := [stratum for stratum in strata if stratum.flagged]:
            found |= _precision(flagged, n_flagged)
        found |= self._recall(found, n_flagged)
        found |= self._rate(strata)
        return {**found, "estimable": True}

    def _stratum(self, members: Sequence[Case]) -> _Stratum:
        flagged = members[0].flagged
        judged = self._judged(members)
        proxies = judged or {case.judged: case.score for case in members}
        read = [case for case in members if case.judged in self._gold]
        rest = [proxies[case.judged] for case in members if case.judged not in self._gold]
        gold = [self._gold[case.judged] for case in read]
        own = [proxies[case.judged] for case in read]
        told = own if judged else [float(flagged)] * len(read)
        n = len(read)
        if not rest:
            return _Stratum(flagged, n, gold, told, float(np.mean(gold)), 0.0)
        found = powered(np.array(gold), np.array(own, np.float64), np.array(rest, np.float64))
        # Readers who all say one thing leave no spread, and yet the next one may say another.
        half = (sum(gold) + 0.5) / (n + 1)
        variance = found.error**2 or half * (1 - half) / n
        if judged:
            # Nor do a judge and readers who never differed: the next one may be where they do.
            differing = (float(np.abs(np.subtract(gold, own)).sum()) + 0.5) / (n + 1)
            variance = max(variance, found.weight**2 * differing * (1 - differing) / n)
        mean = min(1.0, max(0.0, found.interval.estimate))
        return _Stratum(flagged, len(members), gold, told, mean, variance)

    def _judged(self, members: Sequence[Case]) -> dict[Judged, float]:
        """What the judge says of the items of a stratum; nothing where it said nothing of any.

        Where it was not asked, or gave no answer, its mean of the others says nothing either way.
        It need not be right: labels correct it.
        """
        answers = [self._said[case.pair] for case in members if case.pair in self._said]
        if not answers:
            return {}
        unknown = sum(answers) / len(answers)
        return {case.judged: self._said.get(case.pair, unknown) for case in members}

    def _recall(self, found: Row, n_flagged: int) -> Row:
        clean = [case for case in self._cases if not case.flagged]
        if not n_flagged:
            return {}
        if not clean:
            return {"recall_lo": 1.0}
        read = [self._gold[case.judged] for case in clean if case.judged in self._gold]
        missed = clopper_pearson(ceil(sum(read)), len(read))[1] * len(clean)
        right = found["precision_lo"] * n_flagged
        return {"recall_lo": right / (right + missed) if right else 0.0}

    def _rate(self, strata: Sequence[_Stratum]) -> Row:
        total = sum(stratum.n_items for stratum in strata)
        rate = sum(stratum.n_items / total * stratum.mean for stratum in strata)
        error = sqrt(sum((stratum.n_items / total) ** 2 * stratum.variance for stratum in strata))
        half = float(ndtri(0.5 + LEVEL / 2)) * error
        gold = np.concatenate([stratum.gold for stratum in strata])
        weight = np.concatenate(
            [[stratum.n_items / len(stratum.gold)] * len(stratum.gold) for stratum in strata]
        )
        rho2 = _rho2(gold, np.concatenate([stratum.told for stratum in strata]), weight)
        spread = rate * (1 - rate)
        return {
            "rate": rate,
            "rate_lo": max(0.0, rate - half),
            "rate_hi": min(1.0, rate + half),
            # Without end where flags, or the judge, and readers never differ.
            "saving_most": 1 / (1 - rho2) if rho2 < 1 else None,
            "labels_needed": min(
                total, max(2, ceil(labels_needed(spread, rho2, HALF_WIDTH, total)))
            ),
        }


def _precision(flagged: Sequence[_Stratum], n_flagged: int) -> Row:
    """Share of true flags: strata by their weight, Wilson's limits for the labels they come to."""
    share = sum(stratum.n_items / n_flagged * float(np.mean(stratum.gold)) for stratum in flagged)
    unread = [stratum for stratum in flagged if len(stratum.gold) < stratum.n_items]
    if not unread:
        return {"precision": share, "precision_lo": share, "precision_hi": share}
    n = int(1 / sum((stratum.n_items / n_flagged) ** 2 / len(stratum.gold) for stratum in flagged))
    low, high = wilson(share * max(n, 1), max(n, 1))
    return {"precision": share, "precision_lo": low, "precision_hi": high}


def with_precision(row: Row, rates: Iterable[Row]) -> Row:
    """A row of scores with `gap_true`, its gap over the precision of the flags, and limits.

    rates  rows of the review for the benchmark and policy of the row; none or several: no figure

    Wrong flags are as clean items, and make the gap of those that leaked look smaller. Limits of
    the ratio from those of both sides (Donner and Zou 2012).
    """
    found = [rate for rate in rates if rate["precision"]]
    true: tuple[float | None, float | None, float | None] = (None, None, None)
    if len(found) == 1 and row["gap_low"] is not None and row["gap_high"] is not None:
        precision = [found[0][f"precision{end}"] for end in ("", "_lo", "_hi")]
        true = ratio([row["gap"], row["gap_low"], row["gap_high"]], precision)
    return row | dict(zip(("gap_true", "gap_true_low", "gap_true_high"), true, strict=True))


def ratio(
    first: Sequence[float], second: Sequence[float]
) -> tuple[float | None, float | None, float | None]:
    """The ratio of two independent estimates, each with its limits; no limits next to 0."""
    (a, low_a, high_a), (b, low_b, high_b) = first, second
    ends: list[float | None] = []
    for sign, near_a, near_b in ((-1, low_a, high_b), (1, high_a, low_b)):
        under = near_b * (2 * b - near_b)
        inside = (a * b) ** 2 - near_a * (2 * a - near_a) * under
        ends.append((a * b + sign * sqrt(max(0.0, inside))) / under if under > 0 else None)
    low, high = ends
    return (a / b, low, high) if low is not None and high is not None else (a / b, None, None)


def _rho2(gold: np.ndarray, told: np.ndarray, weight: np.ndarray) -> float:
    if np.ptp(gold) == 0 or np.ptp(told) == 0:
        return 0.0
    cov = np.cov(gold, told, aweights=weight)
    return float(cov[0, 1] ** 2 / (cov[0, 0] * cov[1, 1]))
