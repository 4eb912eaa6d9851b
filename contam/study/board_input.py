"""Read a board of models and tasks: a wide or a long table, or what a re-scoring found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.field_names import plain
from contam.detect.report import RUN_FILE
from contam.errors import LogError, Names, OutputError, Public, Remedy, UsageError
from contam.files.single import fingerprint
from contam.rescore.panel import ALL
from contam.study.inputs import USUAL, Rows, columns_of, refuse_doubles, refuse_unknown_sides
from contam.study.model import Refusal
from contam.tables import schemas
from contam.tables.score_schemas import RESCORE_FORMAT, SCORES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.detect.given import Source
    from contam.rescore.run import Rescore

    Row = dict[str, Any]
    Floats = NDArray[np.float64]

_TWO: Final = 2
_SCORES: Final = "scores.parquet"
_ROLES: Final[Mapping[str, Sequence[str]]] = {
    "model": (*USUAL["model"], "models"),
    "task": ("task", "benchmark", "dataset"),
    "score": USUAL["score"],
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
    no_mean  why a mean over tasks means nothing, "" where it does
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    scores: Floats
    down: NDArray[np.bool_]
    clean: Floats | None = None
    no_mean: str = ""
    policy: str = ""
    refusals: tuple[Refusal, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    coverage: Mapping[str, Any] = field(default_factory=dict)


def read_board(
    scores: Source | None,
    *,
    clean: Source | None,
    rescored: str | Path | Rescore | None,
    policy: str,
    tasks: Sequence[str],
    lower_is_better: Sequence[str],
    columns: Mapping[str, str] | None,
) -> Given:
    """See `contam.study.boards.board`."""
    if (scores is None) == (rescored is None):
        raise UsageError("a board is read from a table of scores, or from a re-scoring")
    if rescored is not None:
        if clean is not None or tasks or lower_is_better or columns:
            raise UsageError("tasks, columns and clean scores of a re-scoring are its own")
        return _checked(_of_rescored(rescored, policy), _where(rescored))
    assert scores is not None  # noqa: S101 - one of the two is given
    if policy:
        raise UsageError("a table of scores has no policies")
    refuse_unknown_sides(columns, ("scores", "clean"))
    full, models, names, source = _table(scores, "scores", tasks, columns_of(columns, "scores"))
    sources = [source]
    second = None
    if clean is not None:
        second, own, same, source = _table(clean, "clean", names, columns_of(columns, "clean"))
        sources.append(source)
        if set(own) != set(models):
            odd = sorted(set(own) ^ set(models))
            raise LogError(
                "scores and clean scores are not of the same models: {}", Names(odd[:5]),
                remedy=Remedy.REMOVE_ONE_OR_NAME_APART,
            )  # fmt: skip
        second = second[[own.index(model) for model in models]]
        second = second[:, [same.index(name) for name in names]]
    unknown = set(lower_is_better) - set(names)
    if unknown:
        raise UsageError(
            "there is no task {!r}", min(unknown), remedy=Remedy.CHOOSE_KNOWN(known=Names(names))
        )
    down = np.array([name in lower_is_better for name in names])
    given = Given(
        models=tuple(models),
        tasks=tuple(names),
        scores=np.where(down, -full, full),
        down=down,
        clean=None if second is None else np.where(down, -second, second),
        no_mean=_no_mean(full, names, down),
        sources=tuple(sources),
        notes=tuple(_strangers(full, models)),
    )
    return _checked(given, sources[0]["path"])


def _where(rescored: str | Path | Rescore) -> str:
    return str(rescored) if isinstance(rescored, str | Path) else "the re-scoring"


def _checked(given: Given, where: str) -> Given:
    """Raise LogError for what is no board: one model, one task, or nothing that ranks models."""
    for number, what in ((len(given.models), "model"), (len(given.tasks), "task")):
        if number < _TWO:
            raise LogError("{}: a board needs two {}s, and has {}", where, Public(what), number)
    table = given.scores
    for axis, names, what in ((1, given.models, "model"), (0, given.tasks, "task")):
        for at in np.flatnonzero(np.isnan(table).all(axis=axis))[:1].tolist():
            raise LogError(
                "{}: the {} {!r} has no score", where, Public(what), names[at],
                remedy=Remedy.IS_FILE_WHOLE,
            )  # fmt: skip
    if not (np.nanmax(table, axis=0) > np.nanmin(table, axis=0)).any():
        raise LogError("{}: all models have equal scores on every task: nothing ranks them", where)
    return given


def _strangers(table: Floats, models: Sequence[str]) -> Iterator[str]:
    """Pairs of models that no task compares; neither of two such models wins."""
    known = (~np.isnan(table)).astype(np.int64)
    first, second = np.nonzero(np.triu(known @ known.T == 0, 1))
    if len(first):
        pair = f"{models[int(first[0])]} and {models[int(second[0])]}"
        yield f"{len(first)} pairs of models share no task, such as {pair}: neither wins"


def _no_mean(table: Floats, tasks: Sequence[str], down: NDArray[np.bool_]) -> str:
    if down.any() and not down.all():
        return "less is better on some tasks, more on others"
    share = np.nanmax(np.abs(np.where(np.isnan(table), 0.0, table)), axis=0) <= 1
    if share.any() and not share.all():
        first, second = (tasks[int(np.flatnonzero(own)[0])] for own in (share, ~share))
        return f"scores of {first} stay within 1, those of {second} do not: not one scale"
    return ""


def _table(
    given: Source, called: str, tasks: Sequence[str], columns: Mapping[str, str]
) -> tuple[Floats, list[str], list[str], Mapping[str, Any]]:
    rows = Rows(given, called, usual=_ROLES, columns=columns)
    models = rows.texts("model")
    if rows.has("task") and rows.has("score") and not (set(tasks) & set(rows.names)):
        names = rows.texts("task")
        if unknown := sorted(set(tasks) - set(names)):
            raise LogError("{}: no score on the task {!r}", rows.path, unknown[0])
        refuse_doubles(rows, list(zip(models, names, strict=True)), "model and task")
        score = rows.numbers("score", empty=True)
        known, kinds = list(dict.fromkeys(models)), list(tasks or dict.fromkeys(names))
        table = np.full((len(known), len(kinds)), np.nan)
        place = {name: at for at, name in enumerate(known)}
        column = {name: at for at, name in enumerate(kinds)}
        for model, name, value in zip(models, names, score, strict=True):
            if name in column:
                table[place[model], column[name]] = value
        return table, known, kinds, {"set": called, **rows.source}
    refuse_doubles(rows, models, "model")
    model_column = rows.source["columns"]["model"]
    kinds = list(tasks) or [name for name in rows.names if name != model_column]
    if len(set(kinds)) < len(kinds):
        raise UsageError("a task is named twice")
    others = Names([name for name in rows.names if name != model_column])
    for name in kinds:
        if name not in rows.names:
            raise LogError(
                "{}: no column {!r}", rows.path, name,
                remedy=Remedy.CHOOSE_AMONG_COLUMNS(columns=others),
            )  # fmt: skip
        if not tasks and plain(name) in _SUMMARIES:
            raise UsageError(
                "{}: {!r} looks like a summary of the tasks: name the tasks", rows.path, name,
                remedy=Remedy.CHOOSE_AMONG_COLUMNS(columns=others),
            )  # fmt: skip
    table = np.stack([rows.column(name, empty=True) for name in kinds], axis=1)
    return table, models, kinds, {"set": called, **rows.source}


def _of_rescored(rescored: str | Path | Rescore, policy: str) -> Given:
    """The main metric of each benchmark, as `contam rescore` compares models across benchmarks."""
    if isinstance(rescored, str | Path):
        found, run = _read(Path(rescored))
        source = {"set": "rescored", "path": str(rescored), "sha256": run["outputs"][_SCORES]}
    else:
        found, run = rescored.rows("scores"), rescored.run
        source = {"set": "rescored", "path": _where(rescored)}
    known = sorted({row["policy"] for row in found})
    if policy not in known and (policy or len(known) != 1):
        remedy = Remedy.CHOOSE_POLICY_OF_VERDICTS if policy else Remedy.NAME_ONE_POLICY_OF_VERDICTS
        fact = f"no policy {policy!r}" if policy else f"{len(known)} policies"
        raise UsageError("the re-scoring has {}", fact, remedy=remedy(known=", ".join(known)))
    chosen = policy or known[0]
    rows = [row for row in found if row["policy"] == chosen and row["subset_by"] == ALL]
    benchmarks = sorted({row["benchmark"] for row in rows})
    main = [row for row in rows if row["primary"]]
    tasks = sorted({row["benchmark"] for row in main})
    refusals = [
        Refusal(f"task {name}", "several metrics, and none is the main one")
        for name in benchmarks
        if name not in tasks
    ]
    models = sorted({row["model"] for row in main})
    tables = {side: np.full((len(models), len(tasks)), np.nan) for side in ("full", "clean")}
    down = np.zeros(len(tasks), np.bool_)
    least = run["parameters"]["least"]
    short = ""
    for row in main:
        at, column = models.index(row["model"]), tasks.index(row["benchmark"])
        down[column] = row["higher_is_better"] is False
        for side, table in tables.items():
            table[at, column] = np.nan if row[side] is None else row[side]
        if row["n_clean"] < least and not short:
            short = f"{row['n_clean']} clean items of {row['benchmark']}, fewer than {least}"
    if short:
        refusals.append(Refusal("clean items", short))
    return Given(
        models=tuple(models),
        tasks=tuple(tasks),
        scores=np.where(down, -tables["full"], tables["full"]),
        down=down,
        clean=None if short else np.where(down, -tables["clean"], tables["clean"]),
        no_mean=_no_mean(tables["full"], tasks, down) if tasks and models else "",
        policy=chosen,
        refusals=tuple(refusals),
        sources=(source,),
        notes=tuple(_strangers(tables["full"], models)),
        coverage=run["coverage"],
    )


def _read(folder: Path) -> tuple[list[Row], Mapping[str, Any]]:
    if not folder.exists():
        raise OutputError(
            "{} does not exist", folder, remedy=Remedy.CHECK_PATH_AND_RIGHTS
        ).of_call()
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
