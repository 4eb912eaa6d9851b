"""Choose one main metric per benchmark, for averages and pictures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.errors import Public, Remedy, UsageError
from contam.rescore.direction import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contam.rescore.panel import Series


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
    usual = primary_metrics(series)
    metrics: dict[str, dict[str, None]] = {}
    reported: dict[str, dict[str, None]] = {}
    for run in series:
        metrics.setdefault(run.benchmark, {})[run.metric] = None
        if run.named_main is not None:
            reported.setdefault(run.benchmark, {})[run.named_main] = None
    for name in asked:
        if not any(_meant(name, benchmark, own) for benchmark, own in metrics.items()):
            there = sorted(f"{b}={metric}" for b, own in metrics.items() for metric in own)
            raise UsageError(
                "no log has a metric {}", name, remedy=Remedy.CHOOSE_METRIC(known=", ".join(there))
            )
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
        raise UsageError(
            "one main metric of {} is needed, and {} are named", Public(benchmark),
            " and ".join(wanted),
            remedy=Remedy.NAME_MAIN_METRIC(benchmark=benchmark, metric=wanted[0]),
        )  # fmt: skip
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


def primary_metrics(series: Iterable[Series]) -> dict[str, str]:
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
