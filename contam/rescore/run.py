"""Run a re-scoring: read, check, join, compute, and write as a whole or not at all."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from contam.detect.notebook import table_html
from contam.errors import LogError, Place, Public, Statement, UsageError
from contam.extras import require
from contam.facts import counted
from contam.rescore.folder import Tables, write_folder
from contam.rescore.holdouts import item_numbers
from contam.rescore.join import refuse_partial
from contam.rescore.judging import LabelOptions, join_logs, open_verdicts, policies_of
from contam.rescore.logs.model import find_groups
from contam.rescore.logs.read import LogFiles, whole_logs
from contam.rescore.metrics import directed, main_metrics
from contam.rescore.panel import RescoreSettings, Series, group_series
from contam.rescore.summary import figure, gap_of, is_shown, left_out, markdown, planned
from contam.rescore.tables import make_tables
from contam.tables.score_schemas import RESCORE_FORMAT, SUMMARY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from contam.rescore import Bools, Ints
    from contam.rescore.join import Joined
    from contam.rescore.judging import Verdicts
    from contam.rescore.logs.model import Log, ScoreColumn

    PathLike = str | Path


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rescore(Tables):
    """A finished re-scoring: its tables by name, the summary, and how it was made."""

    summary: str
    run: dict[str, Any]

    def _repr_html_(self) -> str:
        """The scores with and without the flagged items, for notebooks."""
        kept = [row for row in self.rows("scores") if row["subset_by"] in ("all", "group")]
        of, figures = ("model", "benchmark", "metric", "policy"), ("full", "clean", "gain")
        cells = (
            (
                *(row[name] for name in of),
                f"{row['n_clean']} / {row['n']}",
                *(figure(row[name]) for name in figures),
                gap_of(row),
            )
            for row in kept
            if is_shown(row, self.run)
        )
        return table_html((*of, "clean of all", *figures, "gap"), cells)


def rescore(
    verdicts: Verdicts,
    logs: PathLike | Sequence[PathLike],
    *,
    policies: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    benchmark_as: Mapping[str, str] | None = None,
    allow_unmatched: bool = False,
    allow_partial: bool = False,
    separate_runs: bool = False,
    skip_damaged: bool = False,
    field: PathLike | Sequence[PathLike] = (),
    settings: RescoreSettings | None = None,
    **labels: Unpack[LabelOptions],
) -> Rescore:
    """Score every model in the logs with and without the items that the verdicts flag.

    verdicts         the result of a scan or a query, or the folder it was written to; or a file of
                     labels: one's own annotations (CSV, TSV, JSON, Parquet), decon's report, a
                     published list; or labels as dictionaries or a table
    policies         judge by these only; all that the verdicts hold when empty
    columns          names of the columns of plain tables, where they are ambiguous
    benchmark_as     a log's name of its benchmark -> that of the verdicts, where they differ
    allow_unmatched  go on although more than 1 % of a log's items are not among the items judged
    allow_partial    go on although a log without a reported number to check it by lacks scores for
                     more than 1 % of a benchmark's items
    separate_runs    two runs of one model are two models, told apart by their run
    skip_damaged     leave out logs that are cut off, cancelled or damaged, or do not give their
                     tool's number; `run` names them under `inputs.damaged`, as it does files that
                     are no logs under `inputs.skipped`
    field            logs of other models, public ones say, that show how hard the items are: gains
                     are compared with theirs, and they have no rows of their own
    labels           verdict_columns, threshold, unlisted: of a file of labels, see `LabelOptions`

    Raises LogError for a log that is damaged, does not add up to its own reported score or does not
    belong to the items judged, and for a file of labels that is no such thing; OutputError for a
    folder of verdicts, UsageError for an unknown policy, MissingExtraError without what draws and
    fits.
    """
    require("scores")
    started = time.time()
    settings = settings or RescoreSettings()
    opened = open_verdicts(verdicts, **labels)
    chosen = policies_of(opened, policies)
    whole = partial(whole_logs, columns=columns, skip_damaged=skip_damaged)
    own, public = (
        whole(_paths(logs)),
        whole(of_field) if (of_field := _paths(field)) else LogFiles(),
    )
    damaged, skipped = own.damaged + public.damaged, own.skipped + public.skipped
    ways = {"lower": settings.lower_is_better, "higher": settings.higher_is_better}
    every = directed([*_renamed(own.logs, benchmark_as or {}), *public.logs], **ways)
    every, runs = _separated(every) if separate_runs else (every, {})
    found, field_logs = every[: len(own.logs)], every[len(own.logs) :]
    beside = {name for _, name in settings.reference_benchmarks}
    second_logs = [log for log in found if log.benchmark in beside]
    own_logs = [log for log in found if log.benchmark not in beside]
    judging = join_logs(
        opened,
        own_logs,
        chosen,
        unlisted=labels.get("unlisted"),
        allow_unmatched=allow_unmatched,
        field=field_logs,
    )
    pairs = [*zip(own_logs, judging.joined[: len(own_logs)], strict=True)]
    if not allow_partial:
        for log, joined in pairs:
            refuse_partial(log, joined.index, judging.judged)
    joined_logs, field_joined = (
        [_JoinedLog(_named(log, joined), joined) for log, joined in some]
        for some in (pairs, zip(field_logs, judging.joined[len(own_logs) :], strict=True))
    )
    refuse_two_logs([*(own.log for own in joined_logs), *second_logs])
    field_joined, beside_field = _in_field(field_joined, {own.log.model for own in joined_logs})
    series, field_series = (
        [run for own in some for run in own.series(runs)] for some in (joined_logs, field_joined)
    )
    unscored = [said for own in joined_logs for said in own.unscored()]
    unscored += [
        f"group {group.name}: {group.metric}: {group.note}"
        for group in find_groups(own.log for own in joined_logs)
        if group.weighting == "unknown"
    ]
    if not series:
        said, way_out = "no metric can be scored again", "`contam logs` has the reasons"
        raise own_logs[0].fault(said, hint=way_out)
    unknown = set(settings.references) - {run.model for run in series}
    if unknown:
        known = ", ".join(sorted({run.model for run in series}))
        hint = Statement("models: {}", known)
        raise UsageError("no log of reference model {}", min(unknown), hint=hint)
    series += group_series({own.log: own.joined.index for own in joined_logs})
    main = main_metrics(series, settings.metrics)
    notes = [
        *(f"bad log, left out: {reason}" for _, reason in damaged),
        *(f"not a log: {reason}" for _, reason in skipped),
        *judging.notes,
        *(note for own in joined_logs for note in own.notes()),
        *unscored,
        *(f"{log.path}: a reference benchmark, not joined to verdicts" for log in second_logs),
        *(f"{own.why}; {own.shown} is shown" for own in main.values() if own.metric is None),
        *beside_field,
    ]
    cluster = _clustered(judging.flags[0].cluster, joined_logs)
    flags = [replace(policy, cluster=cluster) for policy in judging.flags]
    second = _second_series(second_logs)
    tables, families = make_tables(series, flags, settings, main, second, field_series)
    sources = [_source(own.log, own.joined) for own in joined_logs]
    sources += [_source(log, None) for log in second_logs]
    run = {
        "tool": "contam",
        "format": RESCORE_FORMAT,
        "parameters": {
            **asdict(settings),
            "policies": [flag.policy for flag in judging.flags],
            "columns": dict(columns) if columns else None,
            "benchmark_as": dict(benchmark_as) if benchmark_as else None,
            "allow_unmatched": allow_unmatched,
            "allow_partial": allow_partial,
            "separate_runs": separate_runs,
            "skip_damaged": skip_damaged,
            "not_checkable": "in full, in neither clean nor flagged",
        },
        "inputs": {
            "verdicts": judging.source,
            "logs": sources,
            "field": [_source(own.log, own.joined) for own in field_joined],
            "damaged": [{"path": path, "reason": reason} for path, reason in damaged],
            "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
        },
        "runs": runs,
        "metrics": {name: asdict(metric) for name, metric in sorted(main.items())},
        "families": families,
        "coverage": judging.coverage,
        "notes": list(dict.fromkeys(notes)),
        "timings": {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(time.time() - started, 3),
        },
    }
    lost = [*(reason for _, reason in (*damaged, *skipped)), *unscored]
    summary = markdown(tables, planned(tables, run), runs) + left_out(lost)
    return Rescore(tables=tables, summary=summary, run=run)


def write_rescore(
    result: Rescore, out: PathLike, *, overwrite: bool = False, plots: bool = True
) -> Path:
    """Write tables, summary, plots and run.json into a folder, whole or not at all."""
    drawn = planned(result.tables, result.run) if plots else []

    def write(folder: Path) -> None:
        # Imported here: it takes longer than all else of re-scoring.
        from contam.rescore.figures import DRAWN, save

        (folder / SUMMARY).write_text(result.summary, encoding="utf-8")
        save(((plot.name, DRAWN[plot.kind](plot.rows)) for plot in drawn), folder)

    others = [SUMMARY, *(f"{plot.name}.svg" for plot in drawn)]
    return write_folder(out, result, others, write, result.run, overwrite=overwrite)


def _in_field(
    joined: Sequence[_JoinedLog], models: Collection[str]
) -> tuple[list[_JoinedLog], list[str]]:
    """The logs that make the field, and what run.json says of those that do not.

    models  under test. Raises LogError where no log of a field holds an item that was judged.
    """
    notes = []
    kept = []
    for own in joined:
        if not own.joined.n_matched:
            why = f"none of its {len(own.log.items)} items was judged"
        elif own.log.model in models:
            why = f"{own.log.model} is tested itself"
        else:
            kept.append(own)
            continue
        notes.append(f"{own.log.path}: left out of the field: {why}")
    if joined and not any(own.joined.n_matched for own in joined):
        first, hint = joined[0].log, "are they logs of the same benchmarks, with their questions?"
        raise first.fault("none of its {} items was judged", len(first.items), hint=hint)
    refuse_two_logs([own.log for own in kept])
    return kept, notes


def _paths(given: PathLike | Sequence[PathLike]) -> list[PathLike]:
    return [given] if isinstance(given, (str, Path)) else list(given)


@dataclass(frozen=True, slots=True, eq=False)
class _JoinedLog:
    """A log, and where its items are in the result."""

    log: Log
    joined: Joined

    def notes(self) -> Iterator[str]:
        """What run.json says of it."""
        for note in (*self.log.notes, *self.joined.notes()):
            yield f"{self.log.path}: {note}"

    def series(self, runs: Mapping[str, Collection[str]]) -> Iterator[Series]:
        """The metrics that can be scored again; runs  model -> the names of its several runs."""
        n_missing = self.joined.n_missing
        notes = (f"{n_missing} items of the benchmark are not in the log",) if n_missing else ()
        family = next((model for model, names in runs.items() if self.log.model in names), "")
        for run in series_of(self.log, self.joined.index, notes):
            yield replace(run, family=family)

    def unscored(self) -> Iterator[str]:
        """The metrics that cannot be scored again, with the reason."""
        for column in self.log.columns:
            if column.kind == "none" or not column.scored.any():
                reason = column.note or "no item has a score"
                yield f"{self.log.path}: {column.metric}: {reason}"


def series_of(log: Log, index: Ints, notes: tuple[str, ...] = ()) -> Iterator[Series]:
    """The metrics of a log that can be scored again; index  int64[n], where its items are."""
    for column in log.columns:
        scored = np.flatnonzero(column.scored)
        if column.kind == "none" or not len(scored):
            continue
        lost = len(column.score) - len(scored)
        yield Series(
            model=log.model,
            benchmark=log.benchmark,
            metric=column.metric,
            score=column.score[scored],
            answers=column.repeats[scored].astype(np.int64),
            item=index[scored],
            aggregate=partial(_aggregate, column, scored),
            additive=column.kind == "mean",
            notes=(
                *notes,
                *((f"{counted(lost, 'item')} not scored by the tool",) if lost else ()),
                *((column.note,) if column.note else ()),
            ),
            higher_is_better=column.higher_is_better is not False,
            setup=log.setup,
            named_main=log.primary,
        )


def _second_series(logs: Sequence[Log]) -> list[Series]:
    """Of reference benchmarks: their items are numbered among themselves."""
    found: list[Series] = []
    for name in sorted({log.benchmark for log in logs}):
        own = [log for log in logs if log.benchmark == name]
        for log, numbers in zip(own, item_numbers(own), strict=True):
            found += series_of(log, numbers)
    return found


def _renamed(logs: Sequence[Log], names: Mapping[str, str]) -> list[Log]:
    """The logs under the verdicts' names of their benchmarks."""
    known = sorted({log.benchmark for log in logs})
    for name in names:
        if name not in known:
            hint = Statement("known: {}", Public(", ".join(known)))
            raise UsageError("no log is of benchmark {!r}", name, hint=hint)
    return [replace(log, benchmark=names.get(log.benchmark, log.benchmark)) for log in logs]


def _named(log: Log, joined: Joined) -> Log:
    """The log under the benchmark of the items it holds, where it does not name its own."""
    if (log.benchmark and log.names_benchmark) or len(joined.benchmarks) != 1:
        return log
    return replace(log, benchmark=joined.benchmarks[0] or log.benchmark)


def _separated(logs: Sequence[Log]) -> tuple[tuple[Log, ...], dict[str, list[str]]]:
    """The logs with their run in the model's name, its own or the digest of its file; the runs."""
    known = Counter((log.model, log.benchmark) for log in logs)
    names = []
    runs: dict[str, dict[str, None]] = {}
    for log in logs:
        run = log.run_id or (log.digest[:8] if known[log.model, log.benchmark] > 1 else "")
        names.append(f"{log.model} ({run})" if run else log.model)
        runs.setdefault(log.model, {})[names[-1]] = None
    apart = tuple(replace(log, model=name) for log, name in zip(logs, names, strict=True))
    return apart, {model: [*own] for model, own in runs.items() if len(own) > 1}


def _aggregate(column: ScoreColumn, scored: Ints, mask: Bools) -> float:
    """The metric over a mask of the scored items."""
    whole = np.zeros(len(column.score), np.bool_)
    whole[scored[mask]] = True
    return column.aggregate(whole)


def refuse_two_logs(logs: Sequence[Log]) -> None:
    """Raise LogError for two logs of one model by one metric of one benchmark."""
    seen: dict[tuple[str, str, str], Log] = {}
    for log in logs:
        for column in log.columns:
            known = seen.setdefault((log.model, log.benchmark, column.metric), log)
            if known is not log:
                names = map(Public, (log.model, log.benchmark, column.metric))
                hint = "give one of them, or keep the runs apart with --separate-runs"
                said, places = "two logs hold {} on {} by {}: {} and {}", (known.path, log.path)
                raise LogError(said, *names, *map(Place, places), hint=hint)


def _clustered(cluster: Ints, joined_logs: Sequence[_JoinedLog]) -> Ints:
    """The clusters of the items, as one where a log's column `cluster` puts items together."""
    together: dict[tuple[str, str], list[int]] = {}
    for one in joined_logs:
        for row, item in zip(one.joined.index.tolist(), one.log.items, strict=True):
            if row >= 0 and item.cluster:
                together.setdefault((one.log.benchmark, item.cluster), []).append(row)
    for rows in together.values():
        known = np.unique(cluster[rows])
        if len(known) > 1:
            cluster = np.where(np.isin(cluster, known), known[0], cluster)
    return cluster


def _source(log: Log, joined: Joined | None) -> dict[str, Any]:
    return {
        "path": log.path,
        "digest": log.digest,
        "tool": log.tool,
        "tool_version": log.tool_version,
        "model": log.model,
        "benchmark": log.benchmark,
        "items": len(log.items),
        "matched": None if joined is None else int(np.count_nonzero(joined.index >= 0)),
        "items_of": [] if joined is None else list(joined.benchmarks),
    }
