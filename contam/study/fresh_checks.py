"""Check a fresh set beside its line: admission, ConStat, and the log-likelihood link."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.stats.holdout import LEAST_REFERENCES, constat, equivalent
from contam.rescore.stats.multiple import adjust
from contam.rescore.stats.ranking import kendall
from contam.study.lines import LEAST_MODELS, fit_line
from contam.study.model import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.rescore.arrays import Floats, Row
    from contam.study.scored import Scores

CHECKS: Final[Mapping[str, Mapping[str, type]]] = {
    "admission": {
        "model": str, "difference": float, "margin": float, "p": float, "equivalent": bool,
    },
    "constat": {
        "model": str, "score": float, "expected": float, "delta": float, "error": float,
        "low": float, "p": float, "p_holm": float, "p_bh": float,
    },
    "link": {"statistic": str, "n": int, "value": float, "p": float, "p_one_sided": float},
}  # fmt: skip

SURE: Final = 0.05
_DRAWS: Final = 9_999
_HAIR: Final = 1e-12


def item_scores(scores: Scores, at: int, rng: np.random.Generator | None = None) -> Floats:
    """float64[n]: what the items of a model scored; of a total, as many right."""
    known = scores.items.get(scores.models[at])
    if known is not None:
        return known
    right, n = scores.count(at)
    found = (np.arange(n) < round(right)).astype(np.float64)
    return found if rng is None else rng.permutation(found)


def admission(
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
        first, second = item_scores(original, at), item_scores(fresh, at)
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


def constat_rows(
    original: Scores,
    fresh: Scores,
    references: Sequence[str],
    *,
    chance: float,
    draws: int,
    seed: int,
) -> tuple[list[Row], Refusal | None]:
    """ConStat of every other model against the references; see `contam.rescore.stats.holdout`."""
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
            [item_scores(side, side.models.index(name), rng) for name in (*tested, *references)]
        )
        for side in (original, fresh)
    )
    n = len(tested)
    tests, known = (first[:n], second[:n]), (first[n:], second[n:])
    found = constat(tests, known, chance=(chance, chance), draws=draws, seed=seed)
    if any(one.note for one in found):
        return [], Refusal("ConStat", next(one.note for one in found if one.note))
    rows = [{"model": model, **asdict(one)} for model, one in zip(tested, found, strict=True)]
    adjust(rows, ["p"], lambda _: "")
    return rows, None


def link_rows(
    likelihood: Floats | None, gap: Floats, seed: int
) -> tuple[list[Row], Refusal | None]:
    """How the gap goes with the log-likelihood of the public set, over models with both.

    likelihood  float64[models], mean log-likelihood of a character, nan where not given
    """
    if likelihood is None:
        return [], Refusal("the log-likelihood link", "no log-likelihoods are given")
    known = ~np.isnan(likelihood) & ~np.isnan(gap)
    x, y = likelihood[known], gap[known]
    if len(x) < LEAST_MODELS:
        reason = f"{len(x)} models with a log-likelihood, fewer than {LEAST_MODELS}"
        return [], Refusal("the log-likelihood link", reason)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return [], Refusal("the log-likelihood link", "all models have one value")
    # Imported here: it takes longer than all else of a study.
    from scipy.stats import pearsonr, spearmanr

    found = {
        name: (test(x, y).statistic, test(x, y).pvalue, test(x, y, alternative="greater").pvalue)
        for name, test in (("spearman", spearmanr), ("pearson_r", pearsonr))
    }
    r, *p_of_r = found["pearson_r"]
    found["pearson_r2"] = (r**2, *p_of_r)
    found["kendall_tau_b"] = _kendall(x, y, seed)
    found["slope"] = (fit_line(x, y).slope, *p_of_r)
    rows = [
        {"statistic": name, "n": len(x), "value": value, "p": p, "p_one_sided": one_sided}
        for name, (value, p, one_sided) in found.items()
    ]
    return rows, None


def _kendall(x: Floats, y: Floats, seed: int) -> tuple[float, float, float]:
    """Tau, its p, and that of none above 0: by permutation, as few models tie often."""
    shuffled = np.random.default_rng(seed).permuted(np.tile(y, (_DRAWS, 1)), axis=1)
    tau, *taus = kendall(x, np.stack([y, *shuffled]))
    beyond = np.abs(taus) >= abs(tau) - _HAIR, taus >= tau - _HAIR
    p, one_sided = ((1 + int(own.sum())) / (1 + _DRAWS) for own in beyond)
    return float(tau), p, one_sided
