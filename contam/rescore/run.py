"""Verdicts and logs -> a re-scoring: read, check, join, compute, write whole or not at all."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.detect.report import RUN_FILE, load_report
from contam.errors import LogError, UsageError
from contam.rescore.grouped import group_series
from contam.rescore.holdouts import item_numbers
from contam.rescore.join import Joiner
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import read_logs
from contam.rescore.names import SUMMARY, TABLES
from contam.rescore.panel import Series, flags_of
from contam.rescore.plots import draw, plot_names
from contam.rescore.summary import markdown
from contam.rescore.tables import Settings, make_tables
from contam.tables import schemas
from contam.tables.publish import output_errors, publishing
from contam.tables.score_schemas import RESCORE_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.detect.report import Report
    from contam.rescore.logs.model import Log, ScoreColumn
    from contam.rescore.panel import Flags
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

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of one table as dictionaries."""
        return schemas.rows(self.tables[name])


def rescore(
    verdicts: PathLike,
    logs: PathLike | Sequence[PathLike],
    *,
    policies: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    allow_unmatched: bool = False,
    separate_runs: bool = False,
    settings: Settings | None = None,
) -> Rescore:
    """Score every model in the logs with and without the items that the verdicts flag.

    verdicts         the folder that a scan or a query wrote
    policies         judge by these only; all that the verdicts hold when empty
    columns          names of the columns of plain tables, where they are ambiguous
    allow_unmatched  go on although more than 1 % of a log's items are not among the items judged
    separate_runs    two runs of one model are two models, told apart by their run

    Raises LogError for a log that is damaged, does not add up to its own reported score or does not
    belong to the items judged, OutputError for the verdicts, UsageError for an unknown policy.
    """
    started = time.time()
    settings = settings or Settings()
    report = load_report(verdicts)
    flags = _flags(report, policies)
    paths = [logs] if isinstance(logs, (str, Path)) else list(logs)
    found = read_logs(paths, columns=columns)
    series: list[Series] = []
    sources = []
    notes: list[str] = []
    joiner = Joiner(report.items)
    indices: dict[int, Ints] = {}
    unjoined = {name for _, name in settings.reference_benchmarks}
    for log in found:
        self_check(log)
        if log.benchmark in unjoined:
            continue
        joined = joiner.join(log, allow_unmatched=allow_unmatched)
        notes += [f"{log.path}: {note}" for note in (*log.notes, *joined.notes())]
        notes += [
            f"{log.path}: {column.metric}: {column.note}" for column in log.columns if column.note
        ]
        indices[id(log)] = joined.index
        sources.append(_source(log, joined.index))
        # A plain table reports no number that half of it would contradict.
        n_missing = joined.n_missing
        missing = (f"{n_missing} items of the benchmark are not in the log",) if n_missing else ()
        series += _series_of(log, joined.index, separate_runs=separate_runs, notes=missing)
    second_logs = [log for log in found if log.benchmark in unjoined]
    second = list(_second_series(second_logs, separate_runs=separate_runs))
    sources += [_source(log, None) for log in second_logs]
    notes += [f"{log.path}: a reference benchmark, not joined to verdicts" for log in second_logs]
    _refuse_doubles([*series, *second])
    unknown = set(settings.references) - {one.model for one in series}
    if unknown:
        names = ", ".join(sorted({one.model for one in series}))
        raise UsageError(f"no log of reference model {min(unknown)}", hint=f"models: {names}")
    joinable = [log for log in found if log.benchmark not in unjoined]
    groups = list(
        group_series(joinable, indices, lambda log: _model(log, separate_runs=separate_runs))
    )
    tables = make_tables(series, flags, settings, groups, second)
    run = {
        "tool": "contam",
        "format": RESCORE_FORMAT,
        "parameters": {
            **asdict(settings),
            "policies": [one.policy for one in flags],
            "columns": dict(columns) if columns else None,
            "allow_unmatched": allow_unmatched,
            "separate_runs": separate_runs,
            "not_checkable": "in full, in neither clean nor flagged",
        },
        "inputs": {"verdicts": _verdict_source(report), "logs": sources},
        "coverage": report.run.get("coverage", {}),
        "notes": list(dict.fromkeys(notes)),
        "timings": {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(time.time() - started, 3),
        },
    }
    return Rescore(tables=tables, summary=markdown(tables), run=run)


def write_rescore(result: Rescore, out: PathLike, *, overwrite: bool = False) -> Path:
    """Write tables, summary, plots and run.json into a folder, whole or not at all."""
    names = [f"{name}.parquet" for name in TABLES]
    names += [SUMMARY, *plot_names(result.tables), RUN_FILE]
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
        draw(result.tables, folder)
        run = {**result.run, "outputs": {name: _fingerprint(folder / name) for name in names[:-1]}}
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


def _flags(report: Report, policies: Sequence[str]) -> list[Flags]:
    definitions = report.run["parameters"]["policy_definitions"]
    thresholds = {
        name: min(definition["thresholds"].values()) for name, definition in definitions.items()
    }
    known = flags_of(report.verdicts, report.items, report.evidence, thresholds)
    for name in policies:
        if name not in known:
            raise UsageError(
                f"the verdicts hold no policy {name}", hint=f"they hold: {', '.join(known)}"
            )
    return [known[name] for name in policies or known]


def _series_of(
    log: Log, index: Ints, *, separate_runs: bool, notes: tuple[str, ...] = ()
) -> Iterator[Series]:
    model = _model(log, separate_runs=separate_runs)
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
            notes=(*notes, *((f"{lost} items not scored by the tool",) if lost else ())),
            higher_is_better=column.higher_is_better is not False,
        )


def _second_series(logs: Sequence[Log], *, separate_runs: bool) -> Iterator[Series]:
    """Of reference benchmarks: their items are numbered among themselves."""
    for name in sorted({log.benchmark for log in logs}):
        own = [log for log in logs if log.benchmark == name]
        for log, numbers in zip(own, item_numbers(own), strict=True):
            yield from _series_of(log, numbers, separate_runs=separate_runs)


def _model(log: Log, *, separate_runs: bool) -> str:
    return f"{log.model} ({log.run_id})" if separate_runs and log.run_id else log.model


def _aggregate_of(column: ScoreColumn, scored: Ints) -> Callable[[Bools], float]:
    """The metric over a mask of the scored items."""

    def aggregate(mask: Bools) -> float:
        whole = np.zeros(len(column.score), np.bool_)
        whole[scored[mask]] = True
        return column.aggregate(whole)

    return aggregate


def _refuse_doubles(series: Sequence[Series]) -> None:
    seen: set[tuple[str, str, str]] = set()
    for one in series:
        key = (one.model, one.benchmark, one.metric)
        if key in seen:
            raise LogError(
                f"two logs hold {one.model} on {one.benchmark} by {one.metric}",
                hint="give one of them, or keep the runs apart with --separate-runs",
            )
        seen.add(key)


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


def _verdict_source(report: Report) -> dict[str, Any]:
    return {
        "folder": str(report.folder),
        "outputs": report.run.get("outputs", {}),
        "policies": {
            name: definition.get("fingerprint")
            for name, definition in report.run["parameters"]["policy_definitions"].items()
        },
    }


def _fingerprint(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
