"""Read a board of models and tasks: a wide or a long table, or what a re-scoring found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from contam.benchmark.mapping import plain
from contam.detect.report import RUN_FILE
from contam.errors import LogError, Names, OutputError, Public, Statement, UsageError
from contam.files.single import fingerprint
from contam.rescore.logs.plain_tables import DIRECTIONS
from contam.rescore.metrics import sounds_lower
from contam.rescore.panel import ALL
from contam.study.inputs import (
    FAMILY,
    USUAL,
    Rows,
    columns_of,
    families,
    refuse_unknown_sides,
)
from contam.study.model import Refusal
from contam.tables import schemas
from contam.tables.score_schemas import RESCORE_FORMAT, SCORES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.detect.given import Source
    from contam.rescore import Bools, Floats, Ints, Row
    from contam.rescore.run import Rescore

_SCORES: Final = "scores.parquet"
_ROLES: Final[Mapping[str, Sequence[str]]] = {
    "model": (*USUAL["model"], "models"),
    "task": ("task", "benchmark", "dataset"),
    "score": USUAL["score"],
    "metric": ("metric", "metric_name"),
    **{name: (name,) for name in DIRECTIONS},
    **FAMILY,
}
#: A column of this name beside the tasks is a board's own summary of them.
_SUMMARIES: Final = frozenset(
    plain(name)
    for name in (
        *("rank", "place", "position", "average", "avg", "mean", "overall", "total", "score"),
        *("win rate", "mean win rate", "win", "elo", "average score", "mean score"),
    )
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Given:
    """A board as it was given.

    scores  float64[models, tasks], nan for a gap, a higher one is better: those of tasks that count
            downwards are negated;  clean  the same on clean items, None without them
    down    bool[tasks], those on which less is better
    family  int64[models], equal for models of one base
    no_mean  why a mean over tasks means nothing, "" where it does
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    scores: Floats
    down: Bools
    family: Ints
    clean: Floats | None = None
    no_mean: str = ""
    policy: str = ""
    refusals: tuple[Refusal, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    coverage: Mapping[str, Any] = field(default_factory=dict)


class _Told(NamedTuple):
    """What a long table says of a task: its metric, "" without one, and whether more is better."""

    metric: str
    up: bool | None


class _Table(NamedTuple):
    """A table of scores, float64[models, tasks].

    source  what run.json says of it;  told  what a long one says of its tasks
    family  of each model, "" for none
    """

    models: list[str]
    tasks: list[str]
    scores: Floats
    source: Mapping[str, Any]
    told: dict[str, _Told]
    family: list[str]


def read_tables(
    scores: Source,
    clean: Source | None,
    tasks: Sequence[str],
    columns: Mapping[str, str] | None,
    *,
    lower: Sequence[str] = (),
    higher: Sequence[str] = (),
) -> Given:
    """A board of one table, or of two; see `contam.study.boards.board`.

    lower, higher  tasks whose scores count down and up, by the user's own word
    """
    refuse_unknown_sides(columns, ("scores", "clean"))
    full = _table(scores, "scores", tasks, columns)
    models, names = full.models, full.tasks
    tables, second = [full], None
    if clean is not None:
        own = _table(clean, "clean", names, columns)
        tables.append(own)
        if odd := sorted(set(own.models) ^ set(models)):
            said = "scores and clean scores are not of the same models: {}"
            raise LogError(said, Names(odd[:5]), hint="remove one of the two, or name them apart")
        at, at_task = map(own.models.index, models), map(own.tasks.index, names)
        second = own.scores[np.ix_([*at], [*at_task])]
    if unknown := {*lower, *higher} - set(names):
        hint = Statement("known: {}", Names(names))
        raise UsageError("there is no task {!r}", min(unknown), hint=hint)
    if both := {*lower} & {*higher}:
        raise UsageError("{} cannot count both ways", min(both), hint="name it once")
    notes: list[str] = []
    down = np.array([_is_down(name, tables, lower, higher, notes) for name in names])
    return _given(
        full.source["path"],
        models,
        names,
        full.scores,
        second,
        down,
        notes,
        family=families(full.family),
        sources=tuple(table.source for table in tables),
    )


def _is_down(
    task: str,
    tables: Sequence[_Table],
    lower: Sequence[str],
    higher: Sequence[str],
    notes: list[str],
) -> bool:
    """Whether less is better: the user's word, then that of a table; a name is only asked about.

    notes  gains what a table says against the user's word

    Raises LogError for tables that contradict each other, UsageError where a name sounds otherwise.
    """
    told = [table.told[task] for table in tables if task in table.told]
    where = [table.source["path"] for table in tables]
    metrics = list(dict.fromkeys(one.metric for one in told if one.metric))
    if len(metrics) > 1:
        said = "{}: the scores of {!r} are {!r}, and those of {} are {!r}"
        facts = (where[1], task, metrics[1], where[0], metrics[0])
        raise LogError(said, *facts, hint="give scores by one metric")
    ways = {one.up for one in told if one.up is not None}
    ask = Statement("--lower-is-better {}, or --higher-is-better {}", task, task)
    if task in (*lower, *higher):
        against = "lower" if task in higher else "higher"
        if (against == "higher") in ways:
            notes.append(f"{task}: a table says that {against} is better")
        return task in lower
    if len(ways) > 1:
        said = "{}: is a higher {!r} better? It says otherwise than {}"
        raise LogError(said, where[1], task, where[0], hint=ask)
    if ways:
        return ways == {False}
    for name in (task, *metrics):
        if sounds_lower(name):
            said = "{}: is less better on {!r}? {!r} sounds so, and the table does not say"
            raise UsageError(said, where[0], task, name, hint=ask)
    return False


def _given(
    where: str,
    models: Sequence[str],
    tasks: Sequence[str],
    scores: Floats,
    clean: Floats | None,
    down: Bools,
    notes: Sequence[str] = (),
    **others: Any,  # noqa: ANN401 - further fields of the result
) -> Given:
    """A board of scores as they are. Raises LogError for what is none: nothing ranks models."""
    for number, what in ((len(models), "model"), (len(tasks), "task")):
        if number <= 1:
            raise LogError("{}: a board needs two {}s, and has {}", where, Public(what), number)
    for axis, names, what in ((1, models, "model"), (0, tasks, "task")):
        for at in np.flatnonzero(np.isnan(scores).all(axis=axis))[:1].tolist():
            said, hint = "{}: the {} {!r} has no score", "is the file whole?"
            raise LogError(said, where, Public(what), names[at], hint=hint)
    if not (np.nanmax(scores, axis=0) > np.nanmin(scores, axis=0)).any():
        raise LogError("{}: all models have equal scores on every task: nothing ranks them", where)
    return Given(
        models=tuple(models),
        tasks=tuple(tasks),
        scores=np.where(down, -scores, scores),
        down=down,
        clean=None if clean is None else np.where(down, -clean, clean),
        no_mean=_no_mean(scores, tasks, down),
        notes=(*notes, *_strangers(scores, models)),
        **others,
    )


def _strangers(table: Floats, models: Sequence[str]) -> Iterator[str]:
    """Pairs of models that no task compares; neither of two such models wins."""
    known = (~np.isnan(table)).astype(np.int64)
    first, second = np.nonzero(np.triu(known @ known.T == 0, 1))
    if len(first):
        pair = f"{models[int(first[0])]} and {models[int(second[0])]}"
        yield f"{len(first)} pairs of models share no task, such as {pair}: neither wins"


def _no_mean(table: Floats, tasks: Sequence[str], down: Bools) -> str:
    if down.any() and not down.all():
        return "less is better on some tasks, more on others"
    share = np.nanmax(np.abs(table), axis=0) <= 1
    if share.any() and not share.all():
        first, second = (tasks[int(np.flatnonzero(own)[0])] for own in (share, ~share))
        return f"scores of {first} stay within 1, those of {second} do not: not one scale"
    return ""


def _pivot(
    cells: Iterable[tuple[str, str, float | None]], models: Sequence[str], tasks: Sequence[str]
) -> Floats:
    """float64[models, tasks] of cells with model, task and score; nan for a gap."""
    at = {name: place for place, name in enumerate(models)}
    column = {name: place for place, name in enumerate(tasks)}
    table = np.full((len(models), len(tasks)), np.nan)
    for model, task, score in cells:
        if task in column and score is not None:
            table[at[model], column[task]] = score
    return table


def _table(
    given: Source, called: str, tasks: Sequence[str], columns: Mapping[str, str] | None
) -> _Table:
    rows = Rows(given, called, usual=_ROLES, columns=columns_of(columns, called))
    models, source = rows.texts("model"), {"set": called, **rows.source}
    bases = rows.texts_or_none("family")
    if rows.has("task") and rows.has("score") and not (set(tasks) & set(rows.columns)):
        names = rows.texts("task")
        if unknown := sorted(set(tasks) - set(names)):
            raise rows.fault("no score on the task {!r}", unknown[0])
        rows.refuse_doubles(list(zip(models, names, strict=True)), "model and task")
        cells = zip(models, names, rows.numbers("score", empty=True).tolist(), strict=True)
        known, kinds = list(dict.fromkeys(models)), list(tasks or dict.fromkeys(names))
        told, family = _told(rows, names, kinds), dict(zip(models, bases, strict=True))
        for row, (model, base) in enumerate(zip(models, bases, strict=True)):
            if family[model] != base:
                said, hint = "{!r} has two families", "write one of them in all of its rows"
                raise rows.fault(said, model, row=row, hint=hint)
        scores = _pivot(cells, known, kinds)
        return _Table(known, kinds, scores, source, told, [family[model] for model in known])
    rows.refuse_doubles(models, "model")
    no_tasks = {source["columns"].get(role) for role in ("model", "family")}
    others = [name for name in rows.columns if name not in no_tasks]
    kinds = list(tasks) or others
    for role in DIRECTIONS:
        if rows.has(role):
            said, hint = "{}: {!r} says nothing of a column", "--lower-is-better TASK instead"
            raise UsageError(said, rows.file.path, source["columns"][role], hint=hint)
    if len(set(kinds)) < len(kinds):
        raise UsageError("a task is named twice")
    for name in kinds:
        if name not in rows.columns:
            raise rows.fault("no column {!r}", name, hint=rows.there)
        if not tasks and plain(name) in _SUMMARIES:
            said = "{}: {!r} looks like a summary of the tasks: name the tasks"
            raise UsageError(said, rows.file.path, name, hint=rows.there)
    table = np.stack([rows.numbers_in(name, empty=True) for name in kinds], axis=1)
    return _Table(models, kinds, table, source, {}, bases)


def _told(rows: Rows, tasks: Sequence[str], asked: Sequence[str]) -> dict[str, _Told]:
    """What is said of each task asked for. Raises LogError for scores by several metrics."""
    metrics = rows.texts_or_none("metric")
    places: dict[str, list[int]] = {task: [] for task in asked}
    for row, task in enumerate(tasks):
        if task not in places:
            continue
        own = places[task]
        own.append(row)
        if metrics[row] != metrics[own[0]]:
            said = "{!r} has scores by {!r} and by {!r}"
            hint = "remove those of one, or give the tasks two names"
            raise rows.fault(said, task, metrics[own[0]], metrics[row], row=row, hint=hint)
    return {task: _Told(metrics[own[0]], rows.direction(own)) for task, own in places.items()}


def read_rescored(rescored: str | Path | Rescore, policy: str) -> Given:
    """The main metric of each benchmark, as `contam rescore` compares models across benchmarks."""
    if isinstance(rescored, str | Path):
        where = str(rescored)
        found, run = _read(Path(rescored))
        source = {"set": "rescored", "path": where, "sha256": run["outputs"][_SCORES]}
    else:
        where = "the re-scoring"
        found, run = rescored.rows("scores"), rescored.run
        source = {"set": "rescored", "path": where}
    known = sorted({row["policy"] for row in found})
    if policy not in known and (policy or len(known) != 1):
        fact = f"no policy {policy!r}" if policy else f"{len(known)} policies"
        hint = Statement("they hold: {}", ", ".join(known))
        raise UsageError("the re-scoring has {}", fact, hint=hint)
    chosen = policy or known[0]
    rows = [row for row in found if row["policy"] == chosen and row["subset_by"] == ALL]
    main = [row for row in rows if row["metric"] == run["metrics"][row["benchmark"]]["shown"]]
    models, tasks = (sorted({row[key] for row in main}) for key in ("model", "benchmark"))
    refusals = [
        Refusal(f"task {name}", "several metrics, and none is the main one")
        for name in sorted({row["benchmark"] for row in rows} - set(tasks))
    ]
    full, clean = (
        _pivot(((row["model"], row["benchmark"], row[side]) for row in main), models, tasks)
        for side in ("full", "clean")
    )
    downward = {row["benchmark"] for row in main if row["higher_is_better"] is False}
    least = run["parameters"]["least"]
    short = next((row for row in main if row["n_clean"] < least), None)
    if short is not None:
        reason = f"{short['n_clean']} clean items of {short['benchmark']}, fewer than {least}"
        refusals.append(Refusal("clean items", reason))
    return _given(
        where,
        models,
        tasks,
        full,
        clean if short is None else None,
        np.array([name in downward for name in tasks], np.bool_),
        family=np.arange(len(models)),
        policy=chosen,
        refusals=tuple(refusals),
        sources=(source,),
        coverage=run["coverage"],
    )


def _read(folder: Path) -> tuple[list[Row], Mapping[str, Any]]:
    if not folder.exists():
        hint = "check the path and its rights"
        raise OutputError("{} does not exist", folder, hint=hint).of_call()
    try:
        run = json.loads((folder / RUN_FILE).read_bytes())
        sound = run["tool"] == "contam" and run["format"] == RESCORE_FORMAT
        claimed = run["outputs"][_SCORES]
        found = fingerprint(folder / _SCORES)
        if not sound or {key: claimed[key] for key in found} != found:
            raise OutputError("{} is no whole re-scoring, or was changed since", folder)
        return schemas.rows(schemas.read_parquet(folder / _SCORES, SCORES)), run
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError("{} holds no re-scoring that can be read", folder) from error
