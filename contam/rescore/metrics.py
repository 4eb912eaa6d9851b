"""Decide which way a metric counts, and which one of a benchmark is the main one."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from contam.errors import LogError, Place, Public, Statement, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contam.rescore.logs.model import Log, ScoreColumn
    from contam.rescore.panel import Series

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


def say_which(metric: str) -> Statement:
    """The way out where it is not known which way a metric counts."""
    return Statement("say it: --lower-is-better {}, or --higher-is-better", Public(metric))


def named(metric: str, names: Iterable[str]) -> bool:
    """Whether one of the names means this metric: its whole name, or what is before the comma."""
    return any(name in (metric, metric.partition(",")[0]) for name in names)


def _check_names(logs: Sequence[Log], lower: Sequence[str], higher: Sequence[str]) -> None:
    metrics = sorted({column.metric for log in logs for column in log.columns})
    for name in (*lower, *higher):
        meant = [metric for metric in metrics if named(metric, (name,))]
        if not meant:
            known = Statement("metrics: {}", ", ".join(metrics))
            raise UsageError("no log has a metric {}", name, hint=known)
        twice = [metric for metric in meant if named(metric, lower) and named(metric, higher)]
        if twice:
            hint = "name it under --lower-is-better or under --higher-is-better"
            raise UsageError("{} cannot count both ways", twice[0], hint=hint)


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
                said = "is a higher {} of {} better? {} says {}, {} says {}"
                answers = map(Public, ("yes", "no") if first else ("no", "yes"))
                places = Place(other.path), Place(log.path)
                facts = (fact for pair in zip(places, answers, strict=True) for fact in pair)
                metric = Public(column.metric)
                raise LogError(said, metric, Public(log.benchmark), *facts, hint=say_which(metric))
    return {key: value for key, (value, _) in found.items()}


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
        metric = Public(column.metric)
        hint = Statement(
            "--lower-is-better {}, --higher-is-better {}, or a column higher_is_better of "
            "true and false",
            *(metric, metric),
        )
        raise log.fault("is a lower {} better? A plain table does not say", metric, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class MainMetric:
    """The main metric of one benchmark.

    metric  None where there are several and nothing says which is the main one
    shown   the one that pictures show and whose tests are a family: the main one, else the usual
    why     how it was chosen, or why none was
    """

    metric: str | None
    shown: str
    why: str


def main_metrics(series: Sequence[Series], asked: Sequence[str] = ()) -> dict[str, MainMetric]:
    """Benchmark -> its main metric: as asked, as its logs say, or the only one.

    asked  METRIC or BENCHMARK=METRIC; what is behind a comma in a metric's name may be left out

    Raises UsageError for a name that means no metric, or two of one benchmark.
    """
    usual = _usual_metrics(series)
    metrics: dict[str, dict[str, None]] = {}
    reported: dict[str, dict[str, None]] = {}
    for run in series:
        metrics.setdefault(run.benchmark, {})[run.metric] = None
        if run.named_main is not None:
            reported.setdefault(run.benchmark, {})[run.named_main] = None
    for name in asked:
        if not any(_meant(name, benchmark, own) for benchmark, own in metrics.items()):
            there = sorted(f"{b}={metric}" for b, own in metrics.items() for metric in own)
            hint = Statement("metrics: {}", ", ".join(there))
            raise UsageError("no log has a metric {}", name, hint=hint)
    return {
        benchmark: _main(
            benchmark, list(own), list(reported.get(benchmark, ())), asked, usual[benchmark]
        )
        for benchmark, own in metrics.items()
    }


def _main(
    benchmark: str,
    metrics: Sequence[str],
    reported: Sequence[str],
    asked: Sequence[str],
    usual: str,
) -> MainMetric:
    wanted = sorted({metric for name in asked for metric in _meant(name, benchmark, metrics)})
    if len(wanted) > 1:
        said, both = "one main metric of {} is needed, and {} are named", " and ".join(wanted)
        hint = Statement("--metric '{}={}'", benchmark, wanted[0])
        raise UsageError(said, Public(benchmark), both, hint=hint)
    if wanted:
        return MainMetric(metric=wanted[0], shown=wanted[0], why="as asked")
    if len(reported) > 1:
        why = f"its logs call {', '.join(reported)} the main metric"
    elif reported and reported[0] not in metrics:
        why = f"its logs call {reported[0]} the main metric and have no score of it for an item"
    elif reported:
        return MainMetric(metric=reported[0], shown=reported[0], why="as its logs say")
    elif len(metrics) == 1:
        return MainMetric(metric=usual, shown=usual, why="the only one")
    else:
        why = f"it has {len(metrics)} metrics ({', '.join(metrics)})"
    return MainMetric(metric=None, shown=usual, why=f"{benchmark}: {why}: choose with --metric")


def _meant(name: str, benchmark: str, metrics: Iterable[str]) -> list[str]:
    """The metrics of a benchmark that a name means."""
    own = name.removeprefix(f"{benchmark}=") if benchmark else name
    exact = [metric for metric in metrics if metric in (own, name)]
    return exact or [metric for metric in metrics if named(metric, (own, name))]


def _usual_metrics(series: Iterable[Series]) -> dict[str, str]:
    """By benchmark: the metric that most models' logs name first, of equals the first by name.

    Metrics that are means of item scores go before those that are not, which have no exact test.
    """
    first: dict[tuple[str, str], Series] = {}
    for run in series:
        held = first.setdefault((run.benchmark, run.model), run)
        if run.additive and not held.additive:
            first[run.benchmark, run.model] = run
    votes: dict[str, Counter[tuple[bool, str]]] = {}
    for run in first.values():
        votes.setdefault(run.benchmark, Counter())[run.additive, run.metric] += 1
    found = {}
    for benchmark, counted in votes.items():
        best = min(counted, key=lambda key: (not key[0], -counted[key], key[1]))
        found[benchmark] = best[1]
    return found
