"""The table of scores: full, clean and flagged, for all items and for subsets of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.rescore.gain import (
    LEAST,
    bounds,
    gain,
    llama2_subsets,
    not_estimable,
    plain_relative_difference,
    relative_difference,
)
from contam.rescore.intervals import Interval, interval_of
from contam.rescore.multiple import benjamini_hochberg, holm
from contam.rescore.panel import ALL, Split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contam.rescore.panel import Flags, Series

    Bools = NDArray[np.bool_]
    Row = dict[str, Any]

_NAN: Final = float("nan")
_NOTHING: Final = Interval(_NAN, _NAN, _NAN, "")


def score_rows(
    series: Sequence[Series],
    flags: Sequence[Flags],
    *,
    least: int = LEAST,
    permutations: int = 10_000,
    seed: int = 0,
) -> list[Row]:
    """One row per model, benchmark, metric, policy and subset; adjusted p over the family."""
    rows = [
        row
        for one in sorted(series, key=lambda one: (one.benchmark, one.metric, one.model))
        for policy in flags
        for row in _rows_of(one, policy, least, permutations, seed)
    ]
    whole = [row for row in rows if row["subset_by"] == ALL]
    for name in {row["policy"] for row in whole}:
        family = [row for row in whole if row["policy"] == name]
        p = np.array([row["epg_p"] for row in family])
        for row, first, second in zip(family, holm(p), benjamini_hochberg(p), strict=True):
            row["epg_p_holm"], row["epg_p_bh"] = float(first), float(second)
    return rows


def _rows_of(one: Series, flags: Flags, least: int, draws: int, seed: int) -> Iterator[Row]:
    labels = one.labels(flags)
    everything = np.ones(len(labels), np.bool_)
    yield _row(one, flags, (ALL, ALL), everything, least, draws, seed)
    known = one.item >= 0
    for by, names in flags.groups.items():
        mine = np.full(len(labels), "", object)
        mine[known] = names[one.item[known]]
        split = Split.of(labels)
        for name in sorted(set(mine.tolist()) - {""}):
            # Each kind of leak is set against all clean items.
            inside = mine == name
            if by != "subject":
                inside = (inside & split.flagged) | split.clean
                if not (inside & split.flagged).any():
                    continue
            yield _row(one, flags, (by, name), inside, least, draws, seed)


def _row(
    one: Series,
    flags: Flags,
    subset: tuple[str, str],
    inside: Bools,
    least: int,
    draws: int,
    seed: int,
) -> Row:
    split = Split.of(one.labels(flags))
    clean, flagged = split.clean & inside, split.flagged & inside
    unchecked = split.unchecked & inside
    cluster = _cluster(one, flags)
    row: Row = {
        "model": one.model,
        "benchmark": one.benchmark,
        "metric": one.metric,
        "policy": flags.policy,
        "subset_by": subset[0],
        "subset": subset[1],
        "n": int(inside.sum()),
        "n_clean": int(clean.sum()),
        "n_flagged": int(flagged.sum()),
        "n_not_checkable": int(unchecked.sum()),
    }
    methods = []
    for name, mask in (("full", inside), ("clean", clean), ("flagged", flagged)):
        found = _score(one, mask, cluster, seed)
        row[name], row[f"{name}_lo"], row[f"{name}_hi"] = found.estimate, found.low, found.high
        if found.method:
            methods.append(found.method)
    notes = [*one.notes]
    judged = clean | flagged
    found_gain = _gain(one, judged, flagged, cluster, least, draws, seed)
    # Items that could not be checked belong to neither side; the gain is over the others.
    row |= found_gain
    if found_gain["note"]:
        notes.append(found_gain["note"])
    if unchecked.any():
        notes.append(f"{int(unchecked.sum())} not checkable, counted in full, not in clean")
    row["clean_with_unchecked"] = _score(one, clean | unchecked, cluster, seed).estimate
    row["bound_low"], row["bound_high"] = (
        bounds(one.score[inside], clean[inside])
        if one.additive and _is_share(one)
        else (_NAN, _NAN)
    )
    row["relative_difference"] = relative_difference(row["full"], row["clean"])
    row["plain_relative_difference"] = plain_relative_difference(row["full"], row["clean"])
    row |= _llama2(one, flags, inside)
    row["epg_p_holm"] = row["epg_p_bh"] = _NAN
    row["interval"] = "; ".join(dict.fromkeys(methods))
    row["note"] = "; ".join(dict.fromkeys(notes))
    return row


def _is_share(one: Series) -> bool:
    """Whether every item's score lies within 0 and 1, so that right and wrong are its ends."""
    return bool(len(one.score)) and 0 <= float(one.score.min()) <= float(one.score.max()) <= 1


def _cluster(one: Series, flags: Flags) -> NDArray[np.int64]:
    """Clusters of the scored items; one that is not among the items is its own."""
    own = -1 - np.arange(len(one.item))
    return np.where(one.item >= 0, flags.cluster[np.maximum(one.item, 0)], own)


def _score(one: Series, mask: Bools, cluster: NDArray[np.int64], seed: int) -> Interval:
    if not mask.any():
        return _NOTHING
    if one.additive:
        return interval_of(one.score[mask], cluster[mask], seed=seed)
    return Interval(one.aggregate(mask), _NAN, _NAN, "none: not a mean of items")


def _gain(
    one: Series,
    judged: Bools,
    flagged: Bools,
    cluster: NDArray[np.int64],
    least: int,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    del cluster
    n_flagged, n_clean = int(flagged.sum()), int((judged & ~flagged).sum())
    if one.additive:
        found = gain(one.score[judged], flagged[judged], least=least, permutations=draws, seed=seed)
        values = (found.epg, found.z, found.z_nested, found.p, found.note)
    else:
        note = not_estimable(n_flagged, n_clean, least)
        epg = one.aggregate(judged) - one.aggregate(judged & ~flagged) if not note else _NAN
        values = (epg, _NAN, _NAN, _NAN, note or "no test: not a mean of items")
    return dict(zip(("epg", "epg_z", "epg_z_nested", "epg_p", "note"), values, strict=True))


def _llama2(one: Series, flags: Flags, inside: Bools) -> dict[str, Any]:
    """Llama 2's four Z and its rule, where the policy's score is a share."""
    names = ("clean", "not_clean", "not_dirty", "dirty")
    nothing = {f"llama2_z_{name}": _NAN for name in names} | {"llama2_rule": None}
    if not one.additive:
        return nothing
    share = np.full(len(one.item), np.nan)
    known = one.item >= 0
    share[known] = flags.contamination[one.item[known]]
    usable = inside & ~np.isnan(share)
    if not usable.any() or share[usable].max() > 1:
        return nothing
    subsets, rule = llama2_subsets(one.score[usable], share[usable])
    values: dict[str, Any] = {
        f"llama2_z_{name}": found.z for name, found in zip(names, subsets, strict=True)
    }
    return values | {"llama2_rule": rule}
