"""Make the tables of a re-scoring from series and flags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.across import Across, aggregate_rows, diversity_rows
from contam.rescore.holdouts import holdout_rows
from contam.rescore.metrics import main_metrics
from contam.rescore.panel import Split, oriented
from contam.rescore.rankings import judged_items, matrices, ranking_rows, rows_at
from contam.rescore.scores import score_rows
from contam.rescore.stats.clusters import several
from contam.rescore.stats.difficulty import against_references, bins, crossed, stratified
from contam.rescore.stats.gain import LEAST, not_estimable
from contam.rescore.stats.multiple import adjust, in_threads
from contam.rescore.stats.sweep import sweep
from contam.tables import score_schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from contam.rescore.arrays import Bools, Floats, Ints, Row
    from contam.rescore.metrics import MainMetric
    from contam.rescore.panel import Flags, Series
    from contam.rescore.rankings import Matrix
    from contam.tables.schemas import Table


_LENGTH_BINS: Final = 4
_DIFFICULTY_BINS: Final = 3
#: Pass rates over fewer models are so noisy that the flag takes over what difficulty explains.
_LOGIT_REFERENCES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreSettings:
    """What decides the figures, apart from scores and verdicts.

    least         items a subset needs before a gain or a ranking is estimated
    permutations  of a permutation test at first; draws  of random deletions at first. More are
                  made where p is small beside the number of tests it is adjusted over
    references    models that cannot have seen the corpus
    reference_benchmarks  a benchmark and one like it that nobody can have seen, pair by pair
    metrics       METRIC or BENCHMARK=METRIC: the main metrics, where the logs do not name them
    lower_is_better, higher_is_better  metrics by name whose direction is not what the log or the
                  name says
    all_metrics   pictures and the terminal show every metric, not the main ones only
    mixed_setups  runs with other examples, prompts or versions stand in one ranking
    """

    least: int = LEAST
    permutations: int = 10_000
    draws: int = 1_000
    sweep_permutations: int = 1_000
    seed: int = 0
    references: tuple[str, ...] = ()
    reference_benchmarks: tuple[tuple[str, str], ...] = ()
    metrics: tuple[str, ...] = ()
    lower_is_better: tuple[str, ...] = ()
    higher_is_better: tuple[str, ...] = ()
    all_metrics: bool = False
    mixed_setups: bool = False


def make_tables(
    series: Sequence[Series],
    flags: Sequence[Flags],
    settings: RescoreSettings,
    second: Sequence[Series] = (),
    main: Mapping[str, MainMetric] | None = None,
) -> dict[str, Table]:
    """All tables by file name, without suffix.

    second  scores on the reference benchmarks of `settings`
    main    by benchmark; as its logs and the settings say where it is not given
    """
    # From here on a higher score is better; the series' `units` show figures as they were logged.
    every = oriented(series)
    own, grouped = ([run for run in every if run.kind == kind] for kind in ("log", "group"))
    main = main or main_metrics([*own, *grouped], settings.metrics)
    primary = {benchmark: metric.shown for benchmark, metric in main.items()}
    lined_up = matrices(own, mixed_setups=settings.mixed_setups)
    ranked = [*lined_up, *matrices(grouped, mixed_setups=settings.mixed_setups)]
    # A model's own adjustment needs no other run of the same set-up.
    alone = [*matrices(own, mixed_setups=True), *matrices(grouped, mixed_setups=True)]
    rankings: list[Row] = []
    pairs: list[Row] = []
    aggregates: list[Row] = []
    diversities: list[Row] = []
    adjusted: list[Row] = []
    for policy in flags:
        for matrix in ranked:
            found, paired = ranking_rows(
                matrix,
                policy,
                least=settings.least,
                draws=settings.draws,
                family=len(primary),
                seed=settings.seed,
            )
            rankings += found
            pairs += paired
        for matrix in alone:
            adjusted += _adjusted_rows(matrix, policy, settings)
            adjusted += _short_adjusted(matrix, policy, settings)
        across = Across.of(lined_up, policy, main, settings.least)
        aggregates += aggregate_rows(across, policy.policy)
        diversities += diversity_rows(across, policy.policy, seed=settings.seed)
    scores = score_rows(
        every,
        flags,
        least=settings.least,
        permutations=settings.permutations,
        seed=settings.seed,
        primary=primary,
    )
    for row in scores:
        row["shown"] = settings.all_metrics or row["primary"] or row["benchmark"] not in primary
    family = sum(primary[run.benchmark] == run.metric for run in own)
    swept = in_threads(
        lambda task: list(_sweep_rows(*task, settings, family)),
        [(run, policy) for run in own for policy in flags],
    )
    sweeps = [row for own in swept for row in own]

    def together(row: Row) -> tuple[object, ...]:
        """Tests of one kind under one policy, those of primary metrics apart from the others."""
        first = primary.get(row["benchmark"]) == row["metric"]
        return row["policy"], row.get("method"), row["benchmark"] in groups_named, first

    groups_named = {group.benchmark for group in grouped}
    adjust(sweeps, ("best_p",), together)
    adjust(adjusted, ("p",), together)
    _adjust_deletions(rankings, together)
    return {
        "scores": score_schemas.table_of(scores, score_schemas.SCORES),
        "rankings": score_schemas.table_of(rankings, score_schemas.RANKINGS),
        "sweep": score_schemas.table_of(sweeps, score_schemas.SWEEP),
        "pairs": score_schemas.table_of(pairs, score_schemas.PAIRS),
        "aggregate": score_schemas.table_of(aggregates, score_schemas.AGGREGATE),
        "adjusted": score_schemas.table_of(adjusted, score_schemas.ADJUSTED),
        "diversity": score_schemas.table_of(diversities, score_schemas.DIVERSITY),
        "holdout": score_schemas.table_of(
            holdout_rows(
                [run for run in series if run.kind == "log"],
                second,
                dict(settings.reference_benchmarks),
                settings.references,
                flags[0].cluster,
                least=settings.least,
                seed=settings.seed,
            ),
            score_schemas.HOLDOUT,
        ),
    }


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


def _adjusted_rows(matrix: Matrix, flags: Flags, settings: RescoreSettings) -> Iterator[Row]:
    """The gap flagged - clean, raw and adjusted, over the items that could be checked."""
    split = Split.of(flags.label[matrix.items])
    judged = split.clean | split.flagged
    flagged = split.flagged[judged]
    note = not_estimable(int(flagged.sum()), int((~flagged).sum()), settings.least)
    scores = matrix.scores[:, judged]
    items = matrix.items[judged]
    cluster = several(flags.cluster[items])
    reference = [at for at, name in enumerate(matrix.models) if name in settings.references]
    length = bins(flags.length[items], _LENGTH_BINS)
    subjects = flags.groups["subject"][items].astype(str)
    labels = [length, np.unique(subjects, return_inverse=True)[1].astype(np.int64)]
    name = "strata: length, subject"
    if reference and not note:
        labels.append(bins(scores[reference].mean(axis=0), _DIFFICULTY_BINS))
        name += ", difficulty"
    strata = crossed(*labels)
    for at, model in enumerate(matrix.models):
        head = {**matrix.head, "model": model, "policy": flags.policy}
        if note:
            yield head | {"method": name, "note": note}
            continue
        rows = [_stratified_row(scores[at], flagged, strata, cluster, name)]
        if reference and at not in reference:
            rows += _reference_rows(scores[at], scores[reference], flagged, cluster)
        for row in rows:
            limits = [row.get(f"adjusted_{end}", np.nan) for end in ("low", "high")]
            low, high = matrix.units.gains(*limits)
            signed = {key: matrix.units.gain(row.get(key, np.nan)) for key in ("raw", "adjusted")}
            yield head | row | signed | {"adjusted_low": low, "adjusted_high": high}


def _short_adjusted(matrix: Matrix, flags: Flags, settings: RescoreSettings) -> Iterator[Row]:
    """The same for runs over fewer items, each on what it shares with the reference models."""
    references = [series for series in matrix.series if series.model in settings.references]
    for series in matrix.short:
        items = (
            np.intersect1d(judged_items(series), matrix.items)
            if references
            else judged_items(series)
        )
        group = [series, *references]
        alone = replace(
            matrix,
            models=tuple(each.model for each in group),
            scores=np.array(rows_at(group, items)).reshape(len(group), len(items)),
            items=items,
        )
        yield from (
            row for row in _adjusted_rows(alone, flags, settings) if row["model"] == series.model
        )


def _reference_rows(
    scores: Floats, references: Floats, flagged: Bools, cluster: Ints | None
) -> Iterator[Row]:
    found = against_references(scores, references, flagged, cluster)
    yield {
        "method": "difference in differences",
        "raw": found.raw,
        "adjusted": found.difference,
        "adjusted_low": found.low,
        "adjusted_high": found.high,
        "error": found.error,
        "p": found.p,
        "note": "",
    }
    if len(references) < _LOGIT_REFERENCES:
        return
    logit: Row = {"method": "logit of the flag", "note": "not estimable: no converging fit"}
    if np.isfinite(found.logit):
        figures = {"adjusted": found.logit, "error": found.logit_error, "p": found.logit_p}
        logit |= {"raw": found.raw, "note": "", **figures}
    yield logit


def _stratified_row(
    scores: Floats, flagged: Bools, strata: Ints, cluster: Ints | None, name: str
) -> Row:
    found = stratified(scores, flagged, strata, cluster)
    notes = []
    if found.lost:
        notes.append(f"{found.lost:.1%} of the items are in strata without a clean one")
    if found.flagged_lost:
        notes.append(f"{found.flagged_lost:.1%} of the flagged items are left out with them")
    if np.isnan(found.gain):
        notes.append("not estimable: no stratum holds a flagged and a clean item")
    return {
        "method": name,
        # Full minus clean, as EPG has it, with the clean items weighted to the flagged make-up.
        "raw": float(scores.mean() - scores[~flagged].mean()),
        "adjusted": found.gain,
        "adjusted_low": found.low,
        "adjusted_high": found.high,
        "error": found.error,
        "p": found.p,
        "share_lost": found.lost,
        "share_flagged_lost": found.flagged_lost,
        "note": "; ".join(notes),
    }
