"""Study a fresh test set: what models score on the original beside a new set of the same kind.

After Recht et al. 2019 (ImageNetV2), Zhang et al. 2024 (GSM1k), Dekoninck et al. 2024 (ConStat) and
Haimes et al. 2024 (retro-holdouts). Gaps are original - fresh, in shares.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri

from contam.detect.intervals import wilson
from contam.errors import Public, Statement, UsageError
from contam.rescore.holdouts import LEAST_REFERENCES, MARGIN, constat, equivalent, inflation
from contam.rescore.stats.clusters import SURE, newcombe
from contam.rescore.stats.gain import LEAST, two_proportions
from contam.rescore.stats.permutation import adjust
from contam.study.fresh_words import finding_of, pictures_of
from contam.study.inputs import GIVE_SHARES, families, read_scores, refuse_unknown_sides
from contam.study.lines import LEAST_MODELS, far_out, fit_line, freed_slope, residuals
from contam.study.model import Refusal, Study, rows_of, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.rescore import Bools, Floats, Ints, Row
    from contam.rescore.judging import Verdicts
    from contam.study.inputs import Scores

ORIGINAL, FRESH = "original", "fresh"
ALL, CLEAN = "all", "clean"
ACCURACY, PROBIT = "accuracy", "probit"

MODELS: Final = {
    "model": str, "items": str, "original": float, "fresh": float,
    "gap": float, "gap_low": float, "gap_high": float, "gap_p": float,
    "gap_p_holm": float, "gap_p_bh": float,
    "rise_p": float, "rise_p_holm": float, "rise_p_bh": float,
    "expected": float, "residual": float, "residual_low": float, "residual_high": float,
    "residual_p": float, "residual_p_holm": float, "residual_p_bh": float,
    "residual_probit": float, "residual_probit_p": float,
    "residual_probit_p_holm": float, "residual_probit_p_bh": float,
    "beyond_fit": bool, "falls": bool, "sampling_bound": float,
    "n_original": int, "n_fresh": int, "reference": bool, "interval": str,
}  # fmt: skip
SHOWN: Final = (
    "model", "items", "original", "fresh", "gap", "gap_low", "gap_high", "gap_p_holm",
    "residual", "residual_p_holm", "falls",
)  # fmt: skip
FITS: Final = {
    "fresh_set": str, "items": str, "scale": str, "models": str, "n": int,
    "slope": float, "slope_low": float, "slope_high": float,
    "slope_freed": float, "slope_freed_low": float, "slope_freed_high": float,
    "intercept": float, "intercept_low": float, "intercept_high": float, "r2": float,
    "region_low": float, "region_high": float, "left_out": str, "reading": str,
}  # fmt: skip
SETS: Final = {
    "fresh_set": str, "items": str, "n_models": int, "mean_gap": float, "sd_gap": float,
    "least_gap": float, "largest_gap": float, "share_of_gap": float,
}  # fmt: skip
CHECKS: Final[Mapping[str, Mapping[str, type]]] = {
    "admission": {
        "model": str, "difference": float, "margin": float, "p": float, "equivalent": bool,
    },
    "constat": {
        "model": str, "score": float, "expected": float, "delta": float, "error": float,
        "low": float, "p": float, "p_holm": float, "p_bh": float,
    },
}  # fmt: skip
TABLES: Final = {"models": MODELS, "fits": FITS, "sets": SETS, **CHECKS}

LEAST_FOR_SLOPE: Final = 20
"""Models without which a slope below 1 is not called diminishing returns."""

_TESTED: Final = ("gap_p", "rise_p", "residual_p", "residual_probit_p")


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshSettings:
    """What a study of a fresh set was asked for; run.json has it.

    references  models that cannot have seen the original set
    margin      how far apart equally hard sets may be
    chance      score of a guess
    least       clean items of the original set without which nothing is said of them
    """

    references: tuple[str, ...] = ()
    margin: float = MARGIN
    chance: float = 0.0
    least: int = LEAST
    draws: int = 2_000
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pair:
    """Scores of the same models on the original and on one fresh set."""

    original: Scores
    fresh: Scores
    items: str

    @property
    def models(self) -> tuple[str, ...]:
        """Those that both sets have."""
        return self.original.models

    @property
    def gap(self) -> Floats:
        """How much more the original gives; float64[models]."""
        return self.original.score - self.fresh.score

    @property
    def family(self) -> Ints:
        """int64[models], equal for models of one family."""
        known = self.original.family or self.fresh.family
        return families(known) if known else np.arange(len(self.models))

    @property
    def first_of_family(self) -> Bools:
        """bool[models]: the one model of each family that stands for it in a line."""
        first: Bools = np.zeros(len(self.models), np.bool_)
        first[np.unique(self.family, return_index=True)[1]] = True
        return first

    def on(self, scale: str) -> tuple[Floats, Floats, Floats]:
        """Original and fresh scores on a scale, and the sampling variance of the first.

        float64[models] each, nan on the probit scale where all is right or wrong on a set.
        """
        x, y = self.original.score, self.fresh.score
        noise = x * (1 - x) / self.original.n
        if scale == ACCURACY:
            return x, y, noise
        inside = (x > 0) & (x < 1) & (y > 0) & (y < 1)
        x, y = (ndtri(np.where(inside, one, np.nan)) for one in (x, y))
        # The delta method: the slope of the quantile is one over the normal density.
        return x, y, noise * 2 * np.pi * np.exp(x**2)


def fresh(
    original: Source,
    fresh: Source,
    *,
    easier: Mapping[str, Source] | None = None,
    columns: Mapping[str, str] | None = None,
    verdicts: Verdicts | None = None,
    policy: str = "",
    metric: str = "",
    settings: FreshSettings | None = None,
) -> Study:
    """Compare scores on an original test set with those on a fresh one.

    original, fresh  a table with `model`, `n` and `correct` or `score`, or logs with item scores;
              models of one base have one name in a column `family` of either table
    easier    further fresh sets by name, of items that people agree on more: if the gap closes on
              them, the fresh set is harder, and nothing was memorised
    columns   ROLE -> column of a table, or INPUT.ROLE for one input alone; INPUT is original, fresh
              or a name of `easier`
    verdicts  what a scan says of the original items: everything is then shown on the clean ones too
    policy, metric  of the verdicts and of the logs, where they have several

    Raises LogError or UsageError for inputs that are no scores; what cannot be estimated from
    scores that can be read is among the refusals.
    """
    asked = settings or FreshSettings()
    _check(asked)
    sides = {FRESH: fresh, **(easier or {})}
    if len(sides) < 1 + len(easier or {}) or ORIGINAL in sides:
        raise UsageError("an easier set needs a name of its own", hint="rename one")
    refuse_unknown_sides(columns, [ORIGINAL, *sides])
    read = partial(read_scores, columns=columns, metric=metric)
    public = read(original, ORIGINAL, verdicts=verdicts, policy=policy)
    new = {name: read(given, name) for name, given in sides.items()}
    notes = [note for one in (public, *new.values()) for note in one.notes]
    refusals: list[Refusal] = []
    subsets = [(ALL, public)]
    if verdicts is not None:
        n_clean = 0 if public.clean is None else int(public.clean.n.min())
        if public.clean is not None and n_clean >= asked.least:
            subsets.append((CLEAN, public.clean))
        else:
            reason = f"a model has {n_clean} clean items, fewer than {asked.least}"
            refusals.append(Refusal("scores on clean items", reason))
    pairs = {
        (items, name): _paired(one, other, items, notes)
        for items, one in subsets
        for name, other in new.items()
    }
    main, names = pairs[ALL, FRESH], asked.references
    if unknown := [name for name in names if name not in main.models]:
        said = "the reference model {} has no scores on both sets"
        hint = Statement("models: {}", ", ".join(main.models))
        raise UsageError(said, unknown[0], hint=hint)
    rows: dict[str, list[Row]] = {"models": [], "fits": [], "sets": _set_rows(pairs)}
    for (_, name), pair in pairs.items():
        if name == FRESH:
            rows["models"] += _model_rows(pair, names, refusals)
    for pair in pairs.values():
        rows["fits"] += _fit_rows(pair, refusals)
    both = main.original, main.fresh
    rows["admission"], not_admitted = _admission(*both, names, asked.margin)
    rows["constat"], no_constat = _constat_rows(
        *both, names, chance=asked.chance, draws=asked.draws, seed=asked.seed
    )
    refusals += [one for one in (not_admitted, no_constat) if one is not None]
    return Study(
        name=FRESH,
        finding=finding_of(rows, admitted=bool(names) and not_admitted is None),
        tables={name: table_of(rows[name], columns) for name, columns in TABLES.items()},
        refusals=list(dict.fromkeys(refusals)),
        pictures=pictures_of(rows),
        columns=SHOWN,
        run={
            "parameters": {
                **asdict(asked),
                "columns": dict(columns) if columns else None,
                "policy": policy,
                "metric": metric,
            },
            "inputs": [dict(source) for one in (public, *new.values()) for source in one.sources],
            "coverage": dict(public.coverage),
            "notes": list(dict.fromkeys(notes)),
        },
    )


def _check(asked: FreshSettings) -> None:
    if not 0 < asked.margin < 1:
        said = "the margin {} is no share between 0 and 1"
        raise UsageError(said, asked.margin, hint=GIVE_SHARES)
    if not 0 <= asked.chance < 1:
        raise UsageError("chance is a share from 0 to below 1", hint=GIVE_SHARES)
    if len(set(asked.references)) < len(asked.references):
        raise UsageError("a reference model is named twice", hint="rename one")


def _paired(original: Scores, other: Scores, items: str, notes: list[str]) -> Pair:
    """The models that both sets have. Raises UsageError where there is none."""
    both = [name for name in original.models if name in other.models]
    if not both:
        said = "no model is in both the original and the {} set"
        hint = Statement("models: {}", ", ".join(original.models))
        raise UsageError(said, Public(other.name), hint=hint)
    for one, rest in ((original, other), (other, original)):
        if absent := sorted(set(one.models) - set(rest.models)):
            notes.append(f"not compared, {one.name} set only: {', '.join(absent)}")
    return Pair(original=original.only(both), fresh=other.only(both), items=items)


def _model_rows(pair: Pair, references: Sequence[str], refusals: list[Refusal]) -> list[Row]:
    """The gap of each model with its interval, and its residual from the line of the others."""
    known = np.array([name in references for name in pair.models])
    line = pair.first_of_family
    if (known & line).sum() >= LEAST_MODELS:
        line &= known
    family = pair.family
    (x, y, _), (far_x, far_y, _) = pair.on(ACCURACY), pair.on(PROBIT)
    plain = residuals(x, y, line, family)
    probit = residuals(far_x, far_y, line & ~np.isnan(far_x), family)
    if np.isnan(plain.residual_p).all():
        reason = "all models have one score on the original set"
        if len(pair.models) <= LEAST_MODELS:
            reason = f"{len(pair.models)} models; a line of the others needs {LEAST_MODELS + 1}"
        refusals.append(
            Refusal(f"residuals from the line of the others, {pair.items} items", reason)
        )
    every = range(len(pair.models))
    low, high, p, interval = zip(*(_gap(pair, at) for at in every), strict=True)
    rows = rows_of(
        {
            "model": pair.models,
            "items": [pair.items for _ in every],
            "original": x,
            "fresh": y,
            "gap": pair.gap,
            "gap_low": low,
            "gap_high": high,
            "gap_p": p,
            # One-sided either way: of a model that has no gap, or none below 0.
            "rise_p": 1 - np.array(p),
            **asdict(plain),
            "residual_probit": probit.residual,
            "residual_probit_p": probit.residual_p,
            "sampling_bound": [_sampling_bound(pair.fresh, at) for at in every],
            "n_original": pair.original.n,
            "n_fresh": pair.fresh.n,
            "reference": known,
            "interval": interval,
        }
    )
    for row in rows:
        row.update({f"{name}_{by}": np.nan for name in _TESTED for by in ("holm", "bh")})
    adjust([row for row in rows if not row["reference"]] or rows, _TESTED, lambda row: row["items"])
    for row in rows:
        # Both scales: a line that is straight on one of them is not on the other.
        row["falls"] = row["residual_p_holm"] < SURE and not row["residual_probit_p_holm"] >= SURE
    return rows


def _gap(pair: Pair, at: int) -> tuple[float, float, float, str]:
    """Limits of a gap, the one-sided p of no gap, and how the limits were made."""
    model = pair.original.models[at]
    public, new = pair.original.items.get(model), pair.fresh.items.get(model)
    if public is not None and new is not None:
        found = inflation(public, new)
        binary = pair.original.binary(at) and pair.fresh.binary(at)
        return found.low, found.high, found.p, "Newcombe" if binary else "Welch"
    counts = pair.original.count(at), pair.fresh.count(at)
    both = pair.original.binary(at) and pair.fresh.binary(at)
    # A mean of shares varies at most as much as right and wrong answers with that mean do.
    how = "Newcombe" if both else "Newcombe, at most"
    return *newcombe(*counts), two_proportions(*counts)[1], how


def _sampling_bound(scores: Scores, at: int) -> float:
    """How far sampling of the fresh items alone may have moved a score, at most, with 95 %.

    The third term of Recht et al.'s decomposition, L_D' - L_S': half of a Wilson interval, the
    longer half.
    """
    right, n = scores.count(at)
    low, high = wilson(right, n)
    return max(right / n - low, high - right / n)


def _fit_rows(pair: Pair, refusals: list[Refusal]) -> list[Row]:
    """The line over models on both scales, with and without models far out at its ends.

    Of a family the first model is in it.
    """
    what = f"the line of the {pair.fresh.name} set, {pair.items} items"
    rows: list[Row] = []
    for scale in (ACCURACY, PROBIT):
        x, y, noise = pair.on(scale)
        inside = ~np.isnan(x) & pair.first_of_family
        n = int(inside.sum())
        if n < LEAST_MODELS or np.ptp(x[inside]) == 0:
            few = f"{n} models, fewer than {LEAST_MODELS}"
            reason = few if n < LEAST_MODELS else "all models have one score on the original set"
            refusals.append(Refusal(f"{what}, {scale} scale", reason))
            continue
        groups = {"all": inside}
        near = inside.copy()
        near[inside] = ~far_out(x[inside])
        if LEAST_MODELS <= near.sum() < n and np.ptp(x[near]) > 0:
            groups["without far ones"] = near
        rows += [
            {
                "fresh_set": pair.fresh.name,
                "items": pair.items,
                "scale": scale,
                "models": models,
                "left_out": ", ".join(np.array(pair.models)[inside & ~kept]),
                **_fit_row(x[kept], y[kept], noise[kept]),
            }
            for models, kept in groups.items()
        ]
    return rows


def _fit_row(x: Floats, y: Floats, noise: Floats) -> Row:
    fit = fit_line(x, y)
    slope, low, high = freed_slope(fit, x, noise)
    reading = "1 within the limits"
    if np.isnan(low):
        reading = "unknown: the models are too much alike to tell the slope from sampling noise"
    elif high < 1 and len(x) < LEAST_FOR_SLOPE:
        reading = f"unknown: it takes {LEAST_FOR_SLOPE} models or more"
    elif high < 1 or low > 1:
        reading = "below 1" if high < 1 else "above 1"
    return {
        **asdict(fit),
        "slope_freed": slope,
        "slope_freed_low": low,
        "slope_freed_high": high,
        "reading": reading,
    }


def _set_rows(pairs: Mapping[tuple[str, str], Pair]) -> list[Row]:
    """The mean gap of every fresh set, and what share of the first one's is left."""
    rows = []
    for (items, name), pair in pairs.items():
        gap, first = pair.gap, pairs[items, FRESH]
        of_model = dict(zip(first.models, first.gap, strict=True))
        whole = float(np.mean([of_model.get(model, np.nan) for model in pair.models]))
        rows.append(
            {
                "fresh_set": name,
                "items": items,
                "n_models": len(gap),
                "mean_gap": float(gap.mean()),
                "sd_gap": float(gap.std(ddof=1)) if len(gap) > 1 else np.nan,
                "least_gap": float(gap.min()),
                "largest_gap": float(gap.max()),
                "share_of_gap": float(gap.mean()) / whole if whole > 0 else np.nan,
            }
        )
    return rows


def _item_scores(scores: Scores, at: int, rng: np.random.Generator | None = None) -> Floats:
    """float64[n]: what the items of a model scored; of a total, as many right."""
    known = scores.items.get(scores.models[at])
    if known is not None:
        return known
    right, n = scores.count(at)
    found = (np.arange(n) < round(right)).astype(np.float64)
    return found if rng is None else rng.permutation(found)


def _admission(
    original: Scores, fresh: Scores, references: Sequence[str], margin: float
) -> tuple[list[Row], Refusal | None]:
    """TOST of each reference model: whether the fresh set is as hard as the original one.

    The set is admitted when every reference model scores within the margin on both (an
    intersection-union test, so no p is adjusted). A test that finds no difference admits nothing.
    """
    what = "inflation against the fresh set as the same test"
    if not references:
        return [], Refusal(
            what,
            "no reference models, which cannot have seen the original set, are named: nothing"
            " shows that the two sets are equally hard",
        )
    rows: list[Row] = []
    for model in references:
        at = original.models.index(model)
        if not (original.binary(at) and fresh.binary(at)):
            return [], Refusal(what, f"{model} has no right or wrong answers, only a mean")
        first, second = _item_scores(original, at), _item_scores(fresh, at)
        p, difference = equivalent(first, second, margin), float(first.mean() - second.mean())
        figures = {"difference": difference, "margin": margin, "p": p, "equivalent": p < SURE}
        rows.append({"model": model, **figures})
    failed = [row["model"] for row in rows if not row["equivalent"]]
    if not failed:
        return rows, None
    return rows, Refusal(
        what,
        f"{', '.join(failed)}: not shown to score within {margin:g} on both sets, so the sets are"
        " not shown to be equally hard",
    )


def _constat_rows(
    original: Scores,
    fresh: Scores,
    references: Sequence[str],
    *,
    chance: float,
    draws: int,
    seed: int,
) -> tuple[list[Row], Refusal | None]:
    """ConStat of every other model against the references; see `contam.rescore.holdouts`."""
    if len(references) < LEAST_REFERENCES:
        reason = f"{len(references)} reference models, fewer than {LEAST_REFERENCES}"
        return [], Refusal("ConStat", reason)
    for side in (original, fresh):
        alike = side.same_items and len(set(side.n.tolist())) == 1
        if not (alike and all(map(side.binary, range(len(side.models))))):
            return [], Refusal(
                "ConStat",
                f"the models have different items of the {side.name} set, or some that are not"
                " right or wrong",
            )
    rng = np.random.default_rng(seed)
    tested = [name for name in original.models if name not in references]
    first, second = (
        np.array(
            [_item_scores(side, side.models.index(name), rng) for name in (*tested, *references)]
        )
        for side in (original, fresh)
    )
    n = len(tested)
    tests, known = (first[:n], second[:n]), (first[n:], second[n:])
    found = constat(tests, known, chance=(chance, chance), draws=draws, family=n, seed=seed)
    if any(one.note for one in found):
        return [], Refusal("ConStat", next(one.note for one in found if one.note))
    rows = [{"model": model, **asdict(one)} for model, one in zip(tested, found, strict=True)]
    adjust(rows, ["p"], lambda _: "")
    return rows, None
