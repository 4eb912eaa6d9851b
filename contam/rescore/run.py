"""Run a re-scoring: read, check, join, compute, and write as a whole or not at all."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.detect.notebook import table_html
from contam.detect.report import RUN_FILE
from contam.errors import LogError, Place, Public, Remedy, UsageError
from contam.extras import require
from contam.files.publish import output_errors, publishing
from contam.files.single import fingerprint
from contam.rescore.direction import directed
from contam.rescore.export.plots import draw, plot_names, score_figure
from contam.rescore.export.summary import figure, gain_of, markdown
from contam.rescore.grouped import group_series
from contam.rescore.holdouts import item_numbers
from contam.rescore.judging import FileOptions, join_logs, open_verdicts, policies_of
from contam.rescore.main_metric import main_metrics
from contam.rescore.panel import Series
from contam.rescore.partial import refuse_partial
from contam.rescore.tables import RescoreSettings, make_tables
from contam.rescore.whole import left_out, whole_logs
from contam.tables import schemas
from contam.tables.frames import to_pandas, to_polars
from contam.tables.score_schemas import RESCORE_FORMAT, SUMMARY, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from contam.rescore.join import Joined
    from contam.rescore.judging import Verdicts
    from contam.rescore.logs.model import Log, ScoreColumn
    from contam.tables.schemas import Table

    PathLike = str | Path
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class Rescore:
    """A finished re-scoring: the tables by name, the summary, and how it was made."""

    tables: Mapping[str, Table]
    summary: str
    run: dict[str, Any]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {table.num_rows}" for name, table in self.tables.items())
        return f"<{type(self).__name__}: rows of {sizes}>"

    def _repr_html_(self) -> str:
        """The scores with and without the flagged items, for notebooks."""
        kept = [row for row in self.rows("scores") if row["subset_by"] in ("all", "group")]
        cells = (
            (
                *(row[name] for name in ("model", "benchmark", "metric", "policy")),
                f"{row['n_clean']} / {row['n']}",
                *(figure(row[name]) for name in ("full", "clean")),
                gain_of(row),
            )
            for row in kept
            if row["shown"]
        )
        head = ("model", "benchmark", "metric", "policy", "clean of all", "full", "clean", "gain")
        return table_html(head, cells)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of one table as dictionaries."""
        return schemas.rows(self.tables[name])

    def to_pandas(self, table: str = "scores") -> Any:  # noqa: ANN401 - pandas may be missing
        """One of `tables` as a pandas DataFrame. Raises MissingExtraError without pandas."""
        return to_pandas(self._named(table))

    def to_polars(self, table: str = "scores") -> Any:  # noqa: ANN401 - Polars may be missing
        """One of `tables` as a Polars DataFrame. Raises MissingExtraError without Polars."""
        return to_polars(self._named(table))

    def plot(
        self, *, benchmark: str | None = None, metric: str | None = None, policy: str | None = None
    ) -> Figure:
        """A figure of each model's scores on all and on clean items, with their intervals.

        benchmark, metric, policy  of these only; a plot for each is drawn below the other

        Raises UsageError for names without scores, MissingExtraError without matplotlib.
        """
        require("scores", "matplotlib")
        return score_figure(
            self.rows("scores"),
            self.run["parameters"]["least"],
            benchmark=benchmark,
            metric=metric,
            policy=policy,
        )

    def _named(self, table: str) -> Table:
        if table not in self.tables:
            known = ", ".join(self.tables)
            raise UsageError(
                "a re-scoring has no table {!r}", table, remedy=Remedy.CHOOSE_KNOWN(known=known)
            )
        return self.tables[table]


def rescore(  # noqa: PLR0913 - the options of a re-scoring, all but two of them by name
    verdicts: Verdicts,
    logs: PathLike | Sequence[PathLike],
    *,
    policies: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    allow_unmatched: bool = False,
    allow_partial: bool = False,
    separate_runs: bool = False,
    skip_damaged: bool = False,
    threshold: float | None = None,
    unlisted: str | None = None,
    verdict_columns: Mapping[str, str] | None = None,
    lower_is_better: Sequence[str] = (),
    higher_is_better: Sequence[str] = (),
    settings: RescoreSettings | None = None,
) -> Rescore:
    """Score every model in the logs with and without the items that the verdicts flag.

    verdicts         the result of a scan or a query, or the folder it was written to; or a file of
                     labels: one's own annotations (CSV, TSV, JSON, Parquet), decon's report, a
                     published list; or labels as dictionaries or a table
    policies         judge by these only; all that the verdicts hold when empty
    columns          names of the columns of plain tables, where they are ambiguous
    allow_unmatched  go on although more than 1 % of a log's items are not among the items judged
    allow_partial    go on although a log without a reported number to check it by lacks scores for
                     more than 1 % of a benchmark's items
    separate_runs    two runs of one model are two models, told apart by their run
    skip_damaged     leave out logs that are cut off, cancelled or damaged, or do not give their
                     tool's number; `run` names them under `inputs.damaged`
    threshold        of a file of labels: an item with at least this score is contaminated
    unlisted         of a file of labels: what items are that it does not name, "clean" or
                     "not_checkable"
    verdict_columns  of a file of labels: role -> column, where the usual names do not fit
    lower_is_better, higher_is_better  metrics by name whose direction is not what the log or the
                     name says

    Raises LogError for a log that is damaged, does not add up to its own reported score or does not
    belong to the items judged, and for a file of labels that is no such thing; OutputError for a
    folder of verdicts, UsageError for an unknown policy, MissingExtraError without what draws and
    fits.
    """
    require("scores")
    started = time.time()
    settings = settings or RescoreSettings()
    options = FileOptions(columns=verdict_columns, threshold=threshold, unlisted=unlisted)
    opened = open_verdicts(verdicts, options)
    chosen = policies_of(opened, policies)
    paths = [logs] if isinstance(logs, (str, Path)) else list(logs)
    readable, damaged = whole_logs(paths, columns, skip_damaged=skip_damaged)
    found = directed(readable, lower=lower_is_better, higher=higher_is_better)
    unjoined = {name for _, name in settings.reference_benchmarks}
    names = _model_names(found, separate_runs=separate_runs)
    second_logs = [log for log in found if log.benchmark in unjoined]
    own_logs = [log for log in found if log.benchmark not in unjoined]
    judging = join_logs(opened, own_logs, chosen, options, allow_unmatched=allow_unmatched)
    joined_logs: list[_JoinedLog] = []
    for log in own_logs:
        joined = judging.joined[id(log)]
        if not allow_partial:
            refuse_partial(log, joined.index, judging.judged)
        joined_logs.append(_JoinedLog(_named(log, joined), names[id(log)], joined))
    refuse_two_logs(
        [(joined_log.log, joined_log.model) for joined_log in joined_logs]
        + [(log, names[id(log)]) for log in second_logs]
    )
    series = [own for joined in joined_logs for own in joined.series()]
    unscored = [own for joined in joined_logs for own in joined.unscored()]
    second = list(_second_series(second_logs, names))
    sources = [_source(joined_log.log, joined_log.joined.index) for joined_log in joined_logs]
    sources += [_source(log, None) for log in second_logs]
    notes = [f"bad log, left out: {reason}" for _, reason in damaged]
    notes += [*judging.notes, *(note for joined_log in joined_logs for note in joined_log.notes())]
    notes += [f"{log.path}: a reference benchmark, not joined to verdicts" for log in second_logs]
    unknown = set(settings.references) - {own.model for own in series}
    if unknown:
        known = ", ".join(sorted({own.model for own in series}))
        raise UsageError(
            "no log of reference model {}", min(unknown), remedy=Remedy.CHOOSE_MODEL(known=known)
        )
    models = {id(joined_log.log): joined_log.model for joined_log in joined_logs}
    groups = list(
        group_series(
            [joined_log.log for joined_log in joined_logs],
            {id(joined_log.log): joined_log.joined.index for joined_log in joined_logs},
            lambda log: models[id(log)],
        )
    )
    main = main_metrics([*series, *(group for _, group in groups)], settings.metrics)
    notes += [
        f"{metric.why}; {metric.shown} is shown"
        for metric in main.values()
        if metric.metric is None
    ]
    tables = make_tables(series, judging.flags, settings, groups, second, unscored)
    run = {
        "tool": "contam",
        "format": RESCORE_FORMAT,
        "parameters": {
            **asdict(settings),
            "policies": [flag.policy for flag in judging.flags],
            "columns": dict(columns) if columns else None,
            "allow_unmatched": allow_unmatched,
            "allow_partial": allow_partial,
            "separate_runs": separate_runs,
            "skip_damaged": skip_damaged,
            "lower_is_better": list(lower_is_better),
            "higher_is_better": list(higher_is_better),
            "not_checkable": "in full, in neither clean nor flagged",
        },
        "inputs": {
            "verdicts": judging.source,
            "logs": sources,
            "damaged": [{"path": path, "reason": reason} for path, reason in damaged],
        },
        "metrics": {name: asdict(metric) for name, metric in sorted(main.items())},
        "coverage": judging.coverage,
        "notes": list(dict.fromkeys(notes)),
        "timings": {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(time.time() - started, 3),
        },
    }
    summary = markdown(tables, settings.least) + left_out(damaged)
    return Rescore(tables=tables, summary=summary, run=run)


def write_rescore(
    result: Rescore, out: PathLike, *, overwrite: bool = False, plots: bool = True
) -> Path:
    """Write tables, summary, plots and run.json into a folder, whole or not at all."""
    names = [f"{name}.parquet" for name in TABLES]
    least = result.run["parameters"]["least"]
    names += [SUMMARY, *(plot_names(result.tables, least) if plots else ()), RUN_FILE]
    with (
        publishing(
            out,
            names=names,
            last=RUN_FILE,
            overwrite=overwrite,
            earlier=_earlier(Path(out), names),
        ) as folder,
        output_errors(Path(out)),
    ):
        for name in TABLES:
            schemas.write_parquet(result.tables[name], folder / f"{name}.parquet")
        (folder / SUMMARY).write_text(result.summary, encoding="utf-8")
        if plots:
            draw(result.tables, folder, least)
        run = {**result.run, "outputs": {name: fingerprint(folder / name) for name in names[:-1]}}
        # The only section that differs between equal runs stands last.
        run["timings"] = run.pop("timings")
        (folder / RUN_FILE).write_text(json.dumps(run, indent=2) + "\n", "ascii")
    return Path(out)


def _earlier(out: Path, names: Sequence[str]) -> list[str]:
    """Plots of an earlier re-scoring in the folder: which there are depends on what was scored."""
    try:
        outputs = json.loads((out / RUN_FILE).read_bytes())["outputs"]
        return [name for name in outputs if name not in names]
    except (OSError, ValueError, KeyError, TypeError):
        return []


@dataclass(frozen=True, slots=True, eq=False)
class _JoinedLog:
    """A log, the name its model goes by, and where its items are in the result."""

    log: Log
    model: str
    joined: Joined

    def notes(self) -> Iterator[str]:
        """What run.json says of it."""
        for note in (*self.log.notes, *self.joined.notes()):
            yield f"{self.log.path}: {note}"

    def series(self) -> Iterator[Series]:
        """The metrics that can be scored again."""
        n_missing = self.joined.n_missing
        notes = (f"{n_missing} items of the benchmark are not in the log",) if n_missing else ()
        return series_of(self.log, self.model, self.joined.index, notes)

    def unscored(self) -> Iterator[Series]:
        """The other metrics, with the reason."""
        for column in self.log.columns:
            if column.kind != "none" and column.scored.any():
                continue
            reason = column.note if column.kind == "none" else "no item has a score"
            yield Series.unscored(
                self.model,
                self.log.benchmark,
                column.metric,
                self.joined.index,
                reason,
                higher=column.higher_is_better is not False,
            )


def series_of(log: Log, model: str, index: Ints, notes: tuple[str, ...] = ()) -> Iterator[Series]:
    """The metrics of a log that can be scored again; index  int64[n], where its items are."""
    for column in log.columns:
        scored = np.flatnonzero(column.scored)
        if column.kind == "none" or not len(scored):
            continue
        lost = len(column.score) - len(scored)
        yield Series(
            model=model,
            benchmark=log.benchmark,
            metric=column.metric,
            score=column.score[scored],
            item=index[scored],
            aggregate=_aggregate_of(column, scored),
            additive=column.kind == "mean",
            notes=(
                *notes,
                *((f"{lost} items not scored by the tool",) if lost else ()),
                *((column.note,) if column.note else ()),
            ),
            higher_is_better=column.higher_is_better is not False,
            setup=log.setup,
            named_main=log.primary,
        )


def _second_series(logs: Sequence[Log], names: Mapping[int, str]) -> Iterator[Series]:
    """Of reference benchmarks: their items are numbered among themselves."""
    for name in sorted({log.benchmark for log in logs}):
        own = [log for log in logs if log.benchmark == name]
        for log, numbers in zip(own, item_numbers(own), strict=True):
            yield from series_of(log, names[id(log)], numbers)


def _named(log: Log, joined: Joined) -> Log:
    """The log under the benchmark of the items it holds, where it does not name its own."""
    if log.benchmark or len(joined.benchmarks) != 1:
        return log
    return replace(log, benchmark=joined.benchmarks[0])


def _model_names(logs: Sequence[Log], *, separate_runs: bool) -> dict[int, str]:
    """By id of a log. A run without a name of its own goes by the digest of its file."""
    if not separate_runs:
        return {id(log): log.model for log in logs}
    runs = Counter((log.model, log.benchmark) for log in logs)
    names = {}
    for log in logs:
        run = log.run_id or (log.digest[:8] if runs[log.model, log.benchmark] > 1 else "")
        names[id(log)] = f"{log.model} ({run})" if run else log.model
    return names


def _aggregate_of(column: ScoreColumn, scored: Ints) -> Callable[[Bools], float]:
    """The metric over a mask of the scored items."""

    def aggregate(mask: Bools) -> float:
        whole = np.zeros(len(column.score), np.bool_)
        whole[scored[mask]] = True
        return column.aggregate(whole)

    return aggregate


def refuse_two_logs(logs: Sequence[tuple[Log, str]]) -> None:
    """Raise LogError for two logs of one model by one metric of one benchmark; (log, model)."""
    seen: dict[tuple[str, str, str], Log] = {}
    for log, model in logs:
        for column in log.columns:
            known = seen.setdefault((model, log.benchmark, column.metric), log)
            if known is not log:
                raise LogError(
                    "two logs hold {} on {} by {}: {} and {}", Public(model), Public(log.benchmark),
                    Public(column.metric), Place(known.path), Place(log.path),
                    remedy=Remedy.SEPARATE_RUNS,
                )  # fmt: skip


def _source(log: Log, index: Ints | None) -> dict[str, Any]:
    return {
        "path": log.path,
        "digest": log.digest,
        "tool": log.tool,
        "tool_version": log.tool_version,
        "model": log.model,
        "benchmark": log.benchmark,
        "items": len(log.items),
        "matched": None if index is None else int(np.count_nonzero(index >= 0)),
    }
