"""One metric a benchmark: the one that benchmarks are put together by, and that pictures show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.errors import UsageError
from contam.rescore.direction import named
from contam.rescore.primary import primary_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    metrics: dict[str, dict[str, bool]] = {}
    for one in series:
        known = metrics.setdefault(one.benchmark, {})
        known[one.metric] = known.get(one.metric, False) or one.main
    for name in asked:
        if not any(_meant(name, benchmark, own) for benchmark, own in metrics.items()):
            there = sorted(f"{b}={metric}" for b, own in metrics.items() for metric in own)
            raise UsageError(f"no log has a metric {name}", hint=f"metrics: {', '.join(there)}")
    return {
        benchmark: _main(benchmark, own, asked, usual[benchmark])
        for benchmark, own in metrics.items()
    }


def _main(
    benchmark: str, metrics: Mapping[str, bool], asked: Sequence[str], usual: str
) -> MainMetric:
    wanted = sorted({metric for name in asked for metric in _meant(name, benchmark, metrics)})
    if len(wanted) > 1:
        raise UsageError(
            f"one main metric of {benchmark} is needed, and {' and '.join(wanted)} are named",
            hint=f"--metric '{benchmark}={wanted[0]}'",
        )
    if wanted:
        return MainMetric(metric=wanted[0], shown=wanted[0], why="as asked")
    said = [metric for metric, main in metrics.items() if main]
    if len(said) == 1:
        return MainMetric(metric=said[0], shown=said[0], why="as its logs say")
    if len(metrics) == 1:
        return MainMetric(metric=usual, shown=usual, why="the only one")
    names = ", ".join(said or metrics)
    return MainMetric(
        metric=None,
        shown=usual,
        why=f"its logs call {names} the main metric"
        if said
        else f"{benchmark} has {len(metrics)} metrics ({names}): choose with --metric",
    )


def _meant(name: str, benchmark: str, metrics: Mapping[str, bool]) -> list[str]:
    """The metrics of a benchmark that a name means."""
    own = name.removeprefix(f"{benchmark}=") if benchmark else name
    exact = [metric for metric in metrics if metric in (own, name)]
    return exact or [metric for metric in metrics if named(metric, (own, name))]
