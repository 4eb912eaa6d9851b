"""Check a fresh set beside its line: admission, ConStat, and the log-likelihood link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import betainc, stdtr

from contam.rescore.stats.average_ranks import average_ranks
from contam.rescore.stats.holdout import LEAST_REFERENCES, constat, equivalent
from contam.rescore.stats.multiple import adjust
from contam.study.lines import LEAST_MODELS, fit_line
from contam.study.model import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.study.scored import Scores

    Floats = NDArray[np.float64]
    Row = dict[str, Any]

ADMISSION: Final = {
    "model": str, "difference": float, "margin": float, "p": float, "equivalent": bool,
}  # fmt: skip
CONSTAT: Final = {
    "model": str, "score": float, "expected": float, "delta": float, "error": float,
    "low": float, "p": float, "p_holm": float, "p_bh": float,
}  # fmt: skip
LINK: Final = {"statistic": str, "n": int, "value": float, "p": float, "p_one_sided": float}

SURE: Final = 0.05
_TWO: Final = 2
_DRAWS: Final = 9_999


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
        sides = item_scores(original, at), item_scores(fresh, at)
        p = equivalent(*sides, margin)
        rows.append(
            {
                "model": model,
                "difference": float(sides[0].mean() - sides[1].mean()),
                "margin": margin,
                "p": p,
                "equivalent": p < SURE,
            }
        )
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
    chance: tuple[float, float],
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
    order = [*tested, *references]
    sides = [
        np.array([item_scores(side, side.models.index(name), rng) for name in order])
        for side in (original, fresh)
    ]
    n = len(tested)
    found = constat(
        (sides[0][:n], sides[1][:n]),
        (sides[0][n:], sides[1][n:]),
        chance=chance,
        draws=draws,
        seed=seed,
    )
    if any(one.note for one in found):
        return [], Refusal("ConStat", next(one.note for one in found if one.note))
    rows = [
        {
            "model": model,
            "score": one.score,
            "expected": one.expected,
            "delta": one.delta,
            "error": one.error,
            "low": one.low,
            "p": one.p,
        }
        for model, one in zip(tested, found, strict=True)
    ]
    adjust(rows, ["p"], lambda _: "")
    return rows, None


def link_rows(likelihood: Floats, gap: Floats, seed: int) -> tuple[list[Row], Refusal | None]:
    """How the gap goes with the log-likelihood of the public set, over models with both.

    likelihood  float64[models], mean log-likelihood of a character, nan where not given
    """
    known = ~np.isnan(likelihood) & ~np.isnan(gap)
    x, y = likelihood[known], gap[known]
    n = len(x)
    if n < LEAST_MODELS:
        reason = f"{n} models with a log-likelihood, fewer than {LEAST_MODELS}"
        return [], Refusal("the log-likelihood link", reason)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return [], Refusal("the log-likelihood link", "all models have one value")
    spearman = float(np.corrcoef(average_ranks(x), average_ranks(y))[0, 1])
    pearson = float(np.corrcoef(x, y)[0, 1])
    tau = _tau(x, y)
    rng = np.random.default_rng(seed)
    taus = np.array([_tau(x, rng.permutation(y)) for _ in range(_DRAWS)])
    beyond = np.array([np.count_nonzero(np.abs(taus) >= abs(tau) - 1e-12),
                       np.count_nonzero(taus >= tau - 1e-12)])  # fmt: skip
    by_tau = (1 + beyond) / (1 + _DRAWS)
    fit = fit_line(x, y)
    rows = [
        ("spearman", spearman, *_p_of(spearman, n)),
        ("pearson_r", pearson, *_p_of(pearson, n)),
        ("pearson_r2", pearson**2, *_p_of(pearson, n)),
        ("kendall_tau_b", tau, *map(float, by_tau)),
        ("slope", fit.slope, *_p_of(pearson, n)),
    ]
    names = ("statistic", "value", "p", "p_one_sided")
    return [{**dict(zip(names, row, strict=True)), "n": n} for row in rows], None


def _p_of(r: float, n: int) -> tuple[float, float]:
    """Two-sided p of a correlation by Student's t, and one-sided for one above 0."""
    if abs(r) >= 1:
        return 0.0, 0.0 if r > 0 else 1.0
    t = r * float(np.sqrt((n - _TWO) / (1 - r * r)))
    # The tail of t by the incomplete beta function keeps its digits where it is tiny.
    both = float(betainc((n - _TWO) / 2, 0.5, (n - _TWO) / (n - _TWO + t * t)))
    return both, float(stdtr(n - _TWO, -t))


def _tau(x: Floats, y: Floats) -> float:
    """Kendall's tau-b."""
    signs = np.sign(x[:, None] - x[None, :]), np.sign(y[:, None] - y[None, :])
    agree = float((signs[0] * signs[1]).sum())
    return agree / float(np.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum()))
