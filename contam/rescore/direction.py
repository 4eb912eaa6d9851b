"""Decide whether more or less of a metric is better: by user, log or name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contam.errors import LogError, Place, Public, Remedy, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contam.rescore.logs.model import Log, ScoreColumn

_LOWER: Final = frozenset(
    {
        *("loss", "nll", "perplexity", "ppl", "entropy", "brier", "ece", "error", "errors", "err"),
        *("bpb", "bpc", "mae", "mse", "rmse", "mape", "wer", "cer", "mer", "ter", "hter", "eer"),
        *("distance", "toxicity", "toxic", "hallucination", "hallucinations", "latency"),
        *("logloss", "crossentropy", "fpr", "fnr"),
    }
)
"""Words in the names of metrics of which less is better."""

_PHRASES: Final = ("bits_per_", "nats_per_", "log_loss")


def sounds_lower(metric: str) -> bool:
    """Whether a metric by its name counts downwards, such as `word_perplexity,none` or `wer`."""
    name = metric.partition(",")[0].lower()
    if any(phrase in re.sub(r"[^a-z0-9]+", "_", name) for phrase in _PHRASES):
        return True
    words = [word.rstrip("0123456789") for word in re.split(r"[^a-z0-9]+", name)]
    return not _LOWER.isdisjoint(words)


def directed(
    logs: Iterable[Log], *, lower: Sequence[str] = (), higher: Sequence[str] = ()
) -> tuple[Log, ...]:
    """The logs with a direction for every metric.

    lower, higher  names of metrics by the user's own word; a filter behind a comma may be left out

    The user's word comes first, then what the log records, then what another log of the benchmark
    records. What is left counts downwards where its name says so, which a note tells, and upwards
    else.

    Raises UsageError for a name that no log has or that is given both ways; LogError for logs of
    one benchmark that contradict each other, and for a plain table whose metric sounds as if less
    were better.
    """
    logs = tuple(logs)
    _check_names(logs, lower, higher)
    recorded = _recorded(logs, (*lower, *higher))
    return tuple(_directed(log, recorded, lower, higher) for log in logs)


def named(metric: str, names: Iterable[str]) -> bool:
    """Whether one of the names means this metric: its whole name, or what is before the comma."""
    return any(name in (metric, metric.partition(",")[0]) for name in names)


def _check_names(logs: Sequence[Log], lower: Sequence[str], higher: Sequence[str]) -> None:
    metrics = sorted({column.metric for log in logs for column in log.columns})
    for name in (*lower, *higher):
        meant = [metric for metric in metrics if named(metric, (name,))]
        if not meant:
            raise UsageError(
                "no log has a metric {}", name,
                remedy=Remedy.CHOOSE_METRIC(known=", ".join(metrics)),
            )  # fmt: skip
        twice = [metric for metric in meant if named(metric, lower) and named(metric, higher)]
        if twice:
            raise UsageError(
                "{} cannot count both ways", twice[0], remedy=Remedy.SAY_ONE_DIRECTION,
            )  # fmt: skip


def _recorded(logs: Sequence[Log], asked: Sequence[str]) -> dict[tuple[str, str], bool]:
    """(benchmark, metric) -> whether higher is better, as some log records it."""
    found: dict[tuple[str, str], tuple[bool, Log]] = {}
    for log in logs:
        for column in log.columns:
            if column.higher_is_better is None or named(column.metric, asked):
                continue
            first, other = found.setdefault(
                (log.benchmark, column.metric), (column.higher_is_better, log)
            )
            if first != column.higher_is_better:
                raise LogError(
                    "is a higher {} of {} better? {} says {}, {} says {}", Public(column.metric),
                    Public(log.benchmark), Place(other.path), Public(_yes(first)), Place(log.path),
                    Public(_yes(not first)),
                    remedy=Remedy.SAY_DIRECTION(metric=Public(column.metric)),
                )  # fmt: skip
    return {key: value for key, (value, _) in found.items()}


def _yes(value: bool) -> str:  # noqa: FBT001 - what is spelt
    return "yes" if value else "no"


def _directed(
    log: Log,
    recorded: Mapping[tuple[str, str], bool],
    lower: Sequence[str],
    higher: Sequence[str],
) -> Log:
    columns, notes = [], []
    for column in log.columns:
        if named(column.metric, (*lower, *higher)):
            value = named(column.metric, higher)
            if column.higher_is_better not in (None, value):
                notes.append(f"{column.metric}: the log says that {_better(not value)}")
        elif (log.benchmark, column.metric) in recorded:
            value = recorded[log.benchmark, column.metric]
        else:
            value = not sounds_lower(column.metric)
            if not value:
                _refuse_table(log, column)
                notes.append(
                    f"{column.metric}: {_better(value)}, by its name; the log does not say"
                )
        columns.append(replace(column, higher_is_better=value))
    return replace(log, columns=tuple(columns), notes=(*log.notes, *notes))


def _better(value: bool) -> str:  # noqa: FBT001 - what is spelt
    return f"{'higher' if value else 'lower'} is better"


def _refuse_table(log: Log, column: ScoreColumn) -> None:
    if log.is_table:
        raise LogError(
            "{}: is a lower {} better? A plain table does not say", Place(log.path),
            Public(column.metric),
            remedy=Remedy.SAY_DIRECTION_OR_ADD_COLUMN(metric=Public(column.metric)),
        )  # fmt: skip
