"""Make the table of scores: full, clean and flagged, for all items and for subsets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.rescore.panel import ALL, GROUP, Split
from contam.rescore.stats.clusters import several
from contam.rescore.stats.gain import (
    LEAST,
    Gain,
    bounds,
    gain,
    llama2_subsets,
    not_estimable,
    plain_relative_difference,
    relative_difference,
)
from contam.rescore.stats.intervals import Interval, gain_interval, interval_of, jackknife_gain
from contam.rescore.stats.multiple import adjust, in_threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.rescore.arrays import Bools, Floats, Ints, Row
    from contam.rescore.panel import Flags, Series


_NOTHING: Final = Interval(np.nan, np.nan, np.nan, "")


def score_rows(
    series: Sequence[Series],
    flags: Sequence[Flags],
    *,
    least: int = LEAST,
    permutations: int = 10_000,
    seed: int = 0,
    primary: Mapping[str, str],
) -> list[Row]:
    """One row per model, benchmark, metric, policy and subset; adjusted p over the family.

    primary   benchmark -> the metric whose tests are one family
    """
    own = [run for run in series if run.kind == "log"]
    size = sum(primary[run.benchmark] == run.metric for run in own)
    how = _How(least, permutations, seed, size)
    own.sort(key=lambda run: (run.benchmark, run.metric, run.model))
    tasks = [(run, policy) for run in own for policy in flags]
    found = in_threads(lambda task: list(_rows_of(*task, how)), tasks)
    rows = [row for of_run in found for row in of_run]
    for kind in ("unscored", "group"):
        for run in (run for run in series if run.kind == kind):
            subset = (GROUP, run.weighting) if kind == "group" else (ALL, ALL)
            whole = np.ones(len(run.item), np.bool_)
            rows += [_row(_View.of(run, policy), subset, whole, how) for policy in flags]
    for row in rows:
        row["primary"] = primary.get(row["benchmark"]) == row["metric"]
    # Over all models, benchmarks and subsets of one kind. Tests of a benchmark's other metrics are
    # a family of their own: they repeat the claims of the primary one.
    adjust(rows, ("gain_p", "epg_p"), _family)
    tests = Counter(_family(row) for row in rows if not np.isnan(row["gain_p"]))
    for row in rows:
        row["family"] = tests[_family(row)]
    return rows


def _family(row: Row) -> tuple[str, str, bool]:
    return row["policy"], row["subset_by"], row["primary"]


@dataclass(frozen=True, slots=True)
class _How:
    """How the tests are made; family: primary tests over whole benchmarks, under one policy."""

    least: int
    permutations: int
    seed: int
    family: int


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """One series under one policy: what is the same for every subset of its n items.

    cluster        int64[n]; an item that is not among those judged is a cluster of its own; None
                   where no two items share a cluster
    contamination  float64[n], the policy's score of each item, nan where it gave none
    """

    series: Series
    flags: Flags
    split: Split
    cluster: Ints | None
    contamination: Floats

    @classmethod
    def of(cls, series: Series, flags: Flags) -> _View:
        known, at = series.item >= 0, np.maximum(series.item, 0)
        return cls(
            series,
            flags,
            Split.of(series.labels(flags)),
            several(_clusters(series, flags)),
            np.where(known, flags.contamination[at], np.nan),
        )

    def score(self, mask: Bools, seed: int) -> Interval:
        """The metric over some of the items, with its interval."""
        if not mask.any():
            return _NOTHING
        if self.series.additive:
            cluster = None if self.cluster is None else self.cluster[mask]
            return interval_of(self.series.score[mask], cluster, seed=seed)
        return Interval(self.series.aggregate(mask), np.nan, np.nan, "none: not a mean of items")

    def gain(self, inside: Bools, seed: int) -> Interval:
        """The metric over the items inside less that over the clean ones of them."""
        clean = self.split.clean[inside]
        if self.series.additive:
            cluster = None if self.cluster is None else self.cluster[inside]
            return gain_interval(self.series.score[inside], clean, cluster, seed=seed)
        own = inside & self.split.clean
        return jackknife_gain(self.series.aggregate, inside, own, self.cluster, seed=seed)


def _clusters(series: Series, flags: Flags) -> Ints:
    """int64[n], none below 0."""
    known = series.item >= 0
    beyond = int(flags.cluster.max(initial=-1)) + 1
    own = beyond + np.arange(len(series.item))
    return np.where(known, flags.cluster[np.maximum(series.item, 0)], own) if known.any() else own


def _rows_of(series: Series, flags: Flags, how: _How) -> Iterator[Row]:
    view = _View.of(series, flags)
    split = view.split
    yield _row(view, (ALL, ALL), np.ones(len(series.item), np.bool_), how)
    for by, names in flags.groups.items():
        mine = np.where(series.item >= 0, names[np.maximum(series.item, 0)], "")
        chosen = sorted(set(mine.tolist()) - {""})
        within = replace(how, family=how.family * max(1, len(chosen)))
        for name in chosen:
            inside = mine == name
            if by != "subject":
                # Each kind of leak is set against all clean items.
                inside = (inside & split.flagged) | split.clean
                if not (inside & split.flagged).any():
                    continue
            yield _row(view, (by, name), inside, within)


def _row(view: _View, subset: tuple[str, str], inside: Bools, how: _How) -> Row:
    series, split = view.series, view.split
    clean, flagged = split.clean & inside, split.flagged & inside
    unchecked = split.unchecked & inside
    row: Row = {
        **series.head,
        "policy": view.flags.policy,
        "subset_by": subset[0],
        "subset": subset[1],
        "n": int(inside.sum()),
        "n_clean": int(clean.sum()),
        "n_flagged": int(flagged.sum()),
        "n_not_checkable": int(unchecked.sum()),
    }
    units = series.units
    methods = []
    for name, mask in (("full", inside), ("clean", clean), ("flagged", flagged)):
        found = view.score(mask, how.seed)
        row[name] = units.level(found.estimate)
        row[f"{name}_lo"], row[f"{name}_hi"] = units.levels(found.low, found.high)
        if found.method:
            methods.append(found.method)
    gained = view.gain(inside, how.seed)
    row["gain"] = units.gain(gained.estimate)
    row["gain_low"], row["gain_high"] = units.gains(gained.low, gained.high)
    notes = [*series.notes]
    # The published gain is over the items that could be checked; full - clean is over all.
    tested = _test(view, clean | flagged, clean, how)
    row |= {
        "epg": units.gain(tested.epg),
        "epg_z": units.gain(tested.z),
        "epg_z_nested": units.gain(tested.z_nested),
        "epg_p": tested.p,
    }
    if unchecked.any() and not tested.note:
        tested = _test(view, inside, clean, how)
    row["gain_p"], row["gain_test"] = tested.p, tested.how
    if tested.note and not any(note.startswith("not estimable") for note in notes):
        notes.append(tested.note)
    if unchecked.any():
        notes.append(f"{int(unchecked.sum())} not checkable, counted in full, not in clean")
    row["clean_with_unchecked"] = units.level(view.score(clean | unchecked, how.seed).estimate)
    row["bound_low"], row["bound_high"] = (
        units.levels(*bounds(series.score[inside], clean[inside]))
        if len(series.score) and series.is_share
        else (np.nan, np.nan)
    )
    row["relative_difference"] = relative_difference(row["full"], row["clean"])
    row["plain_relative_difference"] = plain_relative_difference(row["full"], row["clean"])
    row |= _llama2(view, inside)
    row["n_clusters"] = row["n"] if view.cluster is None else len(np.unique(view.cluster[inside]))
    row["interval"] = "; ".join(dict.fromkeys(methods))
    row["note"] = "; ".join(dict.fromkeys(notes))
    return row


def _test(view: _View, judged: Bools, clean: Bools, how: _How) -> Gain:
    """The gain over the items judged, and the test of those that are not clean."""
    series = view.series
    left_out = ~clean[judged]
    if series.additive:
        return gain(
            series.score[judged],
            left_out,
            least=how.least,
            permutations=how.permutations,
            seed=how.seed,
            family=how.family,
            strata=None if series.strata is None else series.strata[judged],
            cluster=None if view.cluster is None else several(view.cluster[judged]),
        )
    n_left_out = int(left_out.sum())
    note = not_estimable(n_left_out, len(left_out) - n_left_out, how.least)
    epg = np.nan
    if not note:
        epg = series.aggregate(judged) - series.aggregate(clean)
        test = "no test: not a mean of items"
        note = test if np.isfinite(epg) else "not estimable: a part has no clean item"
    return Gain(epg=epg, z=np.nan, z_nested=np.nan, p=np.nan, how="", note=note)


def _llama2(view: _View, inside: Bools) -> dict[str, Any]:
    """Llama 2's four Z and its rule, where the policy's score is a share."""
    series, share = view.series, view.contamination
    usable = inside & ~np.isnan(share)
    if not series.additive or not usable.any() or share[usable].max() > 1:
        return {}
    subsets, rule = llama2_subsets(series.score[usable], share[usable])
    names = (f"llama2_z_{one.name.replace(' ', '_')}" for one in subsets)
    values = (series.units.gain(one.z) for one in subsets)
    return {**dict(zip(names, values, strict=True)), "llama2_rule": rule}
