"""Define the Prometheus metrics of the service in one table.

Labels are few and the operator's own: routes as templates, policies, verdict labels, ids of
indexes and states. Never anything of a request, never an item, never a path as it was asked.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_Made = TypeVar("_Made", Counter, Gauge, Histogram)

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

_BUCKETS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DescribedMetric:
    """One metric, as the reference lists it."""

    name: str
    kind: type[Counter | Gauge | Histogram]
    help: str
    labels: tuple[str, ...] = ()


TABLE: Final = (
    DescribedMetric(
        "contam_requests_total", Counter, "Answered requests.", ("method", "route", "status"),
    ),
    DescribedMetric(
        "contam_request_duration_seconds", Histogram,
        "From a request's head to the last byte of its answer.", ("route",),
    ),
    DescribedMetric("contam_requests_running", Gauge, "Requests being answered now."),
    DescribedMetric(
        "contam_requests_refused_total", Counter,
        "Requests that a guard refused, by the problem's code.", ("code",),
    ),
    DescribedMetric("contam_request_body_bytes_total", Counter, "Bytes of request bodies as sent."),
    DescribedMetric("contam_errors_total", Counter, "Unexpected errors, by type.", ("type",)),
    DescribedMetric("contam_items_checked_total", Counter, "Items that got verdicts."),
    DescribedMetric("contam_verdicts_total", Counter, "Verdicts given.", ("policy", "label")),
    DescribedMetric("contam_checks_running", Gauge, "Checks being worked on now."),
    DescribedMetric("contam_checks_waiting", Gauge, "Checks that wait for their turn."),
    DescribedMetric("contam_jobs", Gauge, "Jobs kept, by state.", ("state",)),
    DescribedMetric("contam_job_queue_length", Gauge, "Jobs that wait for a worker."),
    DescribedMetric("contam_index_age_seconds", Gauge, "Since an index last changed.", ("index",)),
    DescribedMetric(
        "contam_index_coverage_ratio", Gauge,
        "Share of an index's shards that it answers for.", ("index",),
    ),
    DescribedMetric(
        "contam_index_mapped_bytes", Gauge, "Bytes of an index that are mapped to memory.",
        ("index",),
    ),
    DescribedMetric("contam_ready", Gauge, "1: the service takes requests; 0: it does not."),
)  # fmt: skip
"""Every metric. A counter's samples have the name given here."""

TABLE_BY_NAME: Final = {metric.name: metric for metric in TABLE}


class Metrics:
    """The metrics of one service, in a registry of their own.

    `items_checked.inc(n)`, `verdicts.labels(policy, label).inc(n)`, `jobs.labels(state).set(n)`,
    `queue_length.set(n)`, `count_verdicts(n, pairs)`.
    """

    def __init__(self) -> None:
        # The times at which counters began are of no use to anybody.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's own gap
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = self._made("contam_requests_total", Counter)
        self.duration = self._made("contam_request_duration_seconds", Histogram)
        self.requests_running = self._made("contam_requests_running", Gauge)
        self.refused = self._made("contam_requests_refused_total", Counter)
        self.body_bytes = self._made("contam_request_body_bytes_total", Counter)
        self.errors = self._made("contam_errors_total", Counter)
        self.items_checked = self._made("contam_items_checked_total", Counter)
        self.verdicts = self._made("contam_verdicts_total", Counter)
        self.checks_running = self._made("contam_checks_running", Gauge)
        self.checks_waiting = self._made("contam_checks_waiting", Gauge)
        self.jobs = self._made("contam_jobs", Gauge)
        self.queue_length = self._made("contam_job_queue_length", Gauge)
        self.ready = self._made("contam_ready", Gauge)
        self._age = self._made("contam_index_age_seconds", Gauge)
        self._coverage = self._made("contam_index_coverage_ratio", Gauge)
        self._mapped = self._made("contam_index_mapped_bytes", Gauge)

    def set_index(self, index: str, *, changed: float, coverage: float, mapped_bytes: int) -> None:
        """Say how an index is: when it last changed (seconds since 1970), its share, its bytes."""
        self._age.labels(index).set(max(0.0, time.time() - changed))
        self._coverage.labels(index).set(coverage)
        self._mapped.labels(index).set(mapped_bytes)

    def count_verdicts(self, n_items: int, verdicts: Iterable[tuple[str, str]]) -> None:
        """Count the verdicts of a check: a pair of policy and label for each."""
        self.items_checked.inc(n_items)
        for (policy, label), n in Tally(verdicts).items():
            self.verdicts.labels(policy, label).inc(n)

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def observer(self, method: str, route: str, status: str) -> Callable[[float], None]:
        """A function that takes the seconds of a request; keep it, looking it up is slow."""
        count, duration = self.requests.labels(method, route, status), self.duration.labels(route)

        def observe(seconds: float) -> None:
            count.inc()
            duration.observe(seconds)

        return observe

    def _made(self, name: str, kind: type[_Made]) -> _Made:
        metric = TABLE_BY_NAME[name]
        if metric.kind is not kind:
            raise TypeError(name)
        if kind is Histogram:
            return kind(
                metric.name, metric.help, metric.labels, registry=self.registry, buckets=_BUCKETS_S
            )
        return kind(metric.name, metric.help, metric.labels, registry=self.registry)
