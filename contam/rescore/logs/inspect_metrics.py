"""Which numbers an Inspect log reports, and which of them are means of its items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contam.rescore.logs.files import Row, as_dict, as_list, number_or_none

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEANS: Final = frozenset({"accuracy", "mean"})
_SPREADS: Final = frozenset({"stderr", "std", "var", "bootstrap_stderr", "ci", "clustered_stderr"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of the results.

    name      the part of a score with several values, else the scorer's name
    title     scorer, `/part` where they differ, `,reducer` where there is one
    why_not   why it cannot be scored again, "" when it can
    """

    scorer: str
    name: str
    reducer: str | None
    title: str
    reported: float | None
    n_scored: int | None
    why_not: str = ""


def metrics_of(results: Row) -> Iterator[Metric]:
    """The mean of every score in the results, and every other metric with why it is left out."""
    for score in map(as_dict, as_list(results.get("scores"))):
        name, scorer = str(score.get("name")), str(score.get("scorer"))
        reducer = score.get("reducer")
        title = name if name == scorer else f"{scorer}/{name}"
        title += f",{reducer}" if reducer else ""
        counted = number_or_none(score.get("scored_samples"))
        metrics = {str(k): as_dict(v) for k, v in as_dict(score.get("metrics")).items()}
        mean = _mean(metrics)
        known = {"scorer": scorer, "name": name, "reducer": str(reducer) if reducer else None}
        no_others = all(
            one.get("group") or _plain(one, key) in _SPREADS for key, one in metrics.items()
        )
        if mean is not None or no_others:
            yield Metric(
                **known,  # type: ignore[arg-type]
                title=title,
                reported=mean,
                n_scored=None if counted is None else int(counted),
            )
        for key, metric in metrics.items():
            plain = _plain(metric, key)
            if plain in _MEANS | _SPREADS or metric.get("group"):
                continue
            yield Metric(
                **known,  # type: ignore[arg-type]
                title=f"{title}:{key}",
                reported=number_or_none(metric.get("value")),
                n_scored=None,
                why_not=f"metric {plain!r} needs the package that defines it",
            )


def _mean(metrics: dict[str, Row]) -> float | None:
    """The reported mean over all items; under `grouped` it may be the entry called `all`."""
    for key, metric in metrics.items():
        if _plain(metric, key) in _MEANS and not metric.get("group"):
            return number_or_none(metric.get("value"))
    for metric in metrics.values():
        parameters = as_dict(metric.get("params"))
        inner = as_dict(parameters.get("metric")).get("name")
        whole = metric.get("name") == "all" and parameters.get("all") == "samples"
        if metric.get("group") and whole and _last(str(inner)) in _MEANS:
            return number_or_none(metric.get("value"))
    return None


def _plain(metric: Row, key: str) -> str:
    return _last(str(metric.get("name") or key))


def _last(name: str) -> str:
    return name.rpartition("/")[2]
