"""Make the tables of a re-scoring from series and flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.rescore.field import adjusted_figures
from contam.rescore.holdouts import holdout_rows
from contam.rescore.panel import ALL, GROUP, Split, labels_at, oriented
from contam.rescore.rankings import (
    aggregate_rows,
    dose_rows,
    matrices,
    ranking_rows,
)
from contam.rescore.stats.clusters import (
    Interval,
    interval_of,
    jackknife,
    samples_note,
    several,
)
from contam.rescore.stats.gain import (
    Gain,
    bounds,
    gain,
    llama2_subsets,
    not_estimable,
    plain_relative_difference,
    relative_difference,
    sweep,
)
from contam.rescore.stats.permutation import adjust, in_threads
from contam.tables import score_schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from contam.rescore import Bools, Floats, Ints, Row
    from contam.rescore.metrics import MainMetric
    from contam.rescore.panel import Flags, RescoreSettings, Series
    from contam.tables.schemas import Table


_NOTHING: Final = Interval(np.nan, np.nan, np.nan, "")


def score_rows(
    series: Sequence[Series],
    flags: Sequence[Flags],
    settings: RescoreSettings,
    primary: Mapping[str, str],
    field: Sequence[Series] = (),
) -> list[Row]:
    """One row per model, benchmark, metric, policy and subset; adjusted p over the family.

    primary   benchmark -> the metric whose tests are one family
    field     series of the models that show how hard items are, where these are no series of rows

    A row has the columns of the tables "scores" and "as_published", and what `families` tells.
    """
    own = [run for run in series if run.kind == "log"]
    size = sum(primary[run.benchmark] == run.metric for run in own)
    own.sort(key=lambda run: (run.benchmark, run.metric, run.model))
    tasks = [(run, policy) for run in own for policy in flags]
    found = in_threads(lambda task: list(_rows_of(*task, settings, size)), tasks)
    rows = [row for of_run in found for row in of_run]
    for run in (run for run in series if run.kind == "group"):
        whole = np.ones(len(run.item), np.bool_)
        rows += [
            _row(_View.of(run, policy), (GROUP, run.weighting), whole, settings, size)
            for policy in flags
        ]
    beyond = adjusted_figures(own, flags, settings.references, settings.least, field)
    for row in rows:
        row["adjusted_by"] = ""
        if row["subset_by"] == ALL:
            row.update(
                beyond.get((row["model"], row["benchmark"], row["metric"], row["policy"]), {})
            )
        row["primary"] = primary.get(row["benchmark"]) == row["metric"]
    # Over all models, benchmarks and subsets of one kind. Tests of a benchmark's other metrics are
    # a family of their own: they repeat the claims of the primary one.
    adjust(rows, ("gap_p",), _family)
    adjust(rows, ("adjusted_p",), _family, by=("holm",))
    return rows


def _family(row: Row) -> tuple[str, str, bool]:
    return row["policy"], row["subset_by"], row["primary"]


def families(rows: Sequence[Row]) -> list[Row]:
    """What run.json says of rows of scores: tests adjusted together, how these and limits are made.

    primary  whether the tests are of the metrics shown
    """
    together: dict[tuple[str, str, bool], list[Row]] = {}
    for row in rows:
        together.setdefault(_family(row), []).append(row)
    return [
        {
            **dict(zip(("policy", "subset_by", "primary"), key, strict=True)),
            "tests": sum(not np.isnan(row["gap_p"]) for row in own),
            "gap_tests": sorted({row["gap_test"] for row in own} - {""}),
            "intervals": sorted({method for row in own for method in row["intervals"]}),
        }
        for key, own in together.items()
    ]


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
        alone = int(flags.cluster.max(initial=-1)) + 1 + np.arange(len(series.item))
        cluster = np.where(known, flags.cluster[at], alone) if known.any() else alone
        return cls(
            series,
            flags,
            Split.of(labels_at(flags, series.item)),
            several(cluster),
            np.where(known, flags.contamination[at], np.nan),
        )

    def score(self, mask: Bools, seed: int) -> Interval:
        """The metric over some of the items, with its interval."""
        if not mask.any():
            return _NOTHING
        if self.series.plain:
            cluster = None if self.cluster is None else self.cluster[mask]
            return interval_of(self.series.score[mask], cluster, seed=seed)
        found = jackknife(self.series.aggregate, mask, self.cluster, seed=seed)
        low, high = found.limits()
        if abs(found.value) > 1:
            # What is no share, a perplexity say, is skewed: its limits are those of its logarithm.
            far = (high - low) / 2 / abs(found.value)
            low, high = sorted(found.value * np.exp([-far, far]))
        return Interval(found.value, low, high, "jackknife" if found.error > 0 else "none")


def _rows_of(series: Series, flags: Flags, settings: RescoreSettings, family: int) -> Iterator[Row]:
    """Rows of all items and of each part; family  how many tests of the whole there are."""
    view = _View.of(series, flags)
    split = view.split
    yield _row(view, (ALL, ALL), np.ones(len(series.item), np.bool_), settings, family)
    for by, names in flags.groups.items():
        mine = np.where(series.item >= 0, names[np.maximum(series.item, 0)], "")
        chosen = sorted(set(mine.tolist()) - {""})
        for name in chosen:
            inside = mine == name
            if by != "subject":
                # Each kind of leak is set against all clean items.
                inside = (inside & split.flagged) | split.clean
                if not (inside & split.flagged).any():
                    continue
            yield _row(view, (by, name), inside, settings, family * len(chosen))


def _row(
    view: _View, subset: tuple[str, str], inside: Bools, settings: RescoreSettings, family: int
) -> Row:
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
        found = view.score(mask, settings.seed)
        row[name] = units.level(found.estimate)
        row[f"{name}_lo"], row[f"{name}_hi"] = units.levels(found.low, found.high)
        if found.method:
            methods.append(found.method)
    notes = [*series.notes]
    if series.plain and series.answers is not None and subset == (ALL, ALL):
        shares = series.score if series.units.offset is None else series.units.offset - series.score
        notes += filter(None, [samples_note(shares, series.answers, view.cluster)])
    row["gain"] = row["full"] - row["clean"]
    # The test, as the published gain, is of the items that could be checked.
    tested = _test(view, clean | flagged, clean, settings, family)
    row |= {
        "epg": units.gain(tested.epg) if tested.estimable else np.nan,
        "epg_z": units.gain(tested.z),
        "epg_z_nested": units.gain(tested.z_nested),
        "gap_p": tested.p,
        "gap_test": tested.how,
    }
    if row["n_flagged"]:
        share = row["n_flagged"] / (row["n_flagged"] + row["n_clean"])
        row["gap"] = units.gain(tested.epg / share)
        row["gap_low"], row["gap_high"] = units.gains(tested.low / share, tested.high / share)
    if tested.note:
        notes.append(tested.note)
    if unchecked.any():
        notes.append(f"{int(unchecked.sum())} not checkable, counted in full, not in clean")
    unsure = view.score(clean | unchecked, settings.seed)
    row["clean_with_unchecked"] = units.level(unsure.estimate)
    row["bound_low"], row["bound_high"] = (
        units.levels(*bounds(series.score[inside], clean[inside]))
        if len(series.score) and series.is_share
        else (np.nan, np.nan)
    )
    row["relative_difference"] = relative_difference(row["full"], row["clean"])
    row["plain_relative_difference"] = plain_relative_difference(row["full"], row["clean"])
    row |= _llama2(view, inside)
    row["n_clusters"] = row["n"] if view.cluster is None else len(np.unique(view.cluster[inside]))
    row["intervals"] = methods
    row["note"] = "; ".join(dict.fromkeys(notes))
    return row


def _test(view: _View, judged: Bools, clean: Bools, settings: RescoreSettings, family: int) -> Gain:
    """The gain over the items judged, and the test of those that are not clean."""
    series = view.series
    left_out = ~clean[judged]
    if series.plain:
        return gain(
            series.score[judged],
            left_out,
            least=settings.least,
            permutations=settings.permutations,
            seed=settings.seed,
            family=family,
            cluster=None if view.cluster is None else several(view.cluster[judged]),
        )

    def gained(mask: Bools) -> float:
        rest = mask & clean
        return series.aggregate(mask) - series.aggregate(rest) if rest.any() else np.nan

    n_left_out = int(left_out.sum())
    note = not_estimable(n_left_out, len(left_out) - n_left_out, settings.least)
    if not clean.any():
        return Gain(epg=np.nan, note=note)
    if not n_left_out:
        return Gain(epg=0.0, low=0.0, high=0.0, note=note)
    found = jackknife(gained, judged, view.cluster, seed=settings.seed)
    low, high = found.limits()
    if not note and np.isnan(found.value):
        note = "not estimable: a part has no clean item"
    p, how = (np.nan, "") if note else (found.p, "jackknife")
    return Gain(epg=found.value, low=low, high=high, p=p, how=how, note=note)


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


def make_tables(
    series: Sequence[Series],
    flags: Sequence[Flags],
    settings: RescoreSettings,
    main: Mapping[str, MainMetric],
    second: Sequence[Series] = (),
    field: Sequence[Series] = (),
) -> tuple[dict[str, Table], list[Row]]:
    """All tables by file name, without suffix, and the `families` of the tests of scores.

    main    by benchmark;  second  scores on the reference benchmarks of `settings`
    field   see `score_rows`
    """
    # From here on a higher score is better; the series' `units` show figures as they were logged.
    every = oriented(series)
    own, grouped = ([run for run in every if run.kind == kind] for kind in ("log", "group"))
    primary = {benchmark: metric.shown for benchmark, metric in main.items()}
    lined_up = matrices(own, mixed_setups=settings.mixed_setups)
    ranked = [*lined_up, *matrices(grouped, mixed_setups=settings.mixed_setups)]
    rows: dict[str, list[Row]] = {name: [] for name in score_schemas.TABLES}
    for policy in flags:
        for matrix in ranked:
            found, paired = ranking_rows(matrix, policy, settings, len(primary))
            rows["rankings"] += found
            if matrix.metric == primary[matrix.benchmark] and len(matrix.items) >= settings.least:
                rows["dose"] += dose_rows(matrix, policy)
            rows["pairs"] += paired
        rows["aggregate"] += aggregate_rows(lined_up, policy, main, settings.least)
    scores = score_rows(every, flags, settings, primary, oriented(field))
    for name in ("scores", "as_published"):
        columns = score_schemas.TABLES[name].names
        rows[name] = [{column: row.get(column) for column in columns} for row in scores]
    family = sum(primary[run.benchmark] == run.metric for run in own)
    swept = in_threads(
        lambda task: list(_sweep_rows(*task, settings, family)),
        [(run, policy) for run in own for policy in flags],
    )
    rows["sweep"] = [row for own in swept for row in own]
    single = [run for run in series if run.kind == "log"]
    rows["holdout"] = holdout_rows(single, second, settings, flags[0].cluster)

    def together(row: Row) -> tuple[object, ...]:
        """Tests of one kind under one policy, those of primary metrics apart from the others."""
        first = primary.get(row["benchmark"]) == row["metric"]
        return row["policy"], row.get("method"), row["benchmark"] in groups_named, first

    groups_named = {group.benchmark for group in grouped}
    adjust(rows["sweep"], ("best_p",), together)
    _adjust_deletions(rows["rankings"], together)
    adjust(rows["dose"], ("p",), lambda row: row["policy"], by=("holm",))
    schemas = score_schemas.TABLES.items()
    tables = {name: score_schemas.table_of(rows[name], schema) for name, schema in schemas}
    return tables, families(scores)


def _adjust_deletions(rankings: Sequence[Row], together: Callable[[Row], Hashable]) -> None:
    """All models of a ranking share one test of it."""

    def ranking(row: Row) -> tuple[str, ...]:
        return row["policy"], row["benchmark"], row["metric"], row["setup"]

    # Short runs stand behind the models of their ranking, and have no test.
    tests = {ranking(row): {**row} for row in reversed(rankings)}
    adjust(list(tests.values()), ("deletion_p",), together)
    for row in rankings:
        for name in ("deletion_p_holm", "deletion_p_bh"):
            row[name] = tests[ranking(row)][name] if "rank_full" in row else np.nan


def _sweep_rows(
    series: Series, flags: Flags, settings: RescoreSettings, family: int
) -> Iterator[Row]:
    known = np.flatnonzero(series.item >= 0)
    contamination = flags.contamination[series.item[known]]
    judged = ~np.isnan(contamination)
    if not series.additive or not judged.any():
        return
    cluster = flags.cluster[series.item[known]][judged]
    found = sweep(
        series.score[known][judged],
        contamination[judged],
        least=settings.least,
        permutations=settings.sweep_permutations,
        family=family,
        seed=settings.seed,
        cluster=several(cluster),
    )
    n = int(judged.sum())
    for at, threshold in enumerate(found.threshold.tolist()):
        yield {
            **series.head,
            "policy": flags.policy,
            "threshold": threshold,
            "n_flagged": int(found.flagged[at]),
            "share_flagged": int(found.flagged[at]) / n,
            "epg": series.units.gain(float(found.epg[at])),
            "epg_z": series.units.gain(float(found.z[at])),
            "epg_z_nested": series.units.gain(float(found.z_nested[at])),
            "best": at == found.best,
            "best_p": found.p if at == found.best else np.nan,
            "policy_threshold": np.nan if flags.threshold is None else flags.threshold,
        }
