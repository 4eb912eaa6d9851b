"""Define the Prometheus metrics of the service in one place.

Labels are few and the operator's own: routes as templates, policies, verdict labels, ids of
indexes and states. Never anything of a request, never an item, never a path as it was asked.
"""

from __future__ import annotations

from collections import Counter as Tally
from functools import partial
from typing import TYPE_CHECKING, Final

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
    from collections.abc import Iterable

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

_BUCKETS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip


class Metrics:
    """The metrics of one service, in a registry of their own; docs/reference.md lists them."""

    def __init__(self) -> None:
        # The times at which counters began are of no use to anybody.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's own gap
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        self.requests = counter(
            "contam_requests_total", "Answered requests.", ("method", "route", "status")
        )
        self.duration = Histogram(
            "contam_request_duration_seconds",
            "From a request's head to the last byte of its answer.",
            ("route",),
            registry=self.registry,
            buckets=_BUCKETS_S,
        )
        self.requests_running = gauge("contam_requests_running", "Requests being answered now.")
        self.refused = counter(
            "contam_requests_refused_total",
            "Requests that a guard refused, by the problem's code.",
            ("code",),
        )
        self.errors = counter("contam_errors_total", "Unexpected errors, by type.", ("type",))
        self.items_checked = counter("contam_items_checked_total", "Items that got verdicts.")
        self.verdicts = counter("contam_verdicts_total", "Verdicts given.", ("policy", "label"))
        self.checks_running = gauge("contam_checks_running", "Checks being worked on now.")
        self.checks_waiting = gauge("contam_checks_waiting", "Checks that wait for their turn.")
        self.jobs = gauge("contam_jobs", "Jobs kept, by state.", ("state",))
        self.index_age = gauge(
            "contam_index_age_seconds", "Since an index last changed.", ("index",)
        )
        self.index_coverage = gauge(
            "contam_index_coverage_ratio",
            "Share of an index's shards that it answers for.",
            ("index",),
        )
        self.ready = gauge("contam_ready", "1: the service takes requests; 0: it does not.")

    def count_verdicts(self, n_items: int, verdicts: Iterable[tuple[str, str]]) -> None:
        """Count the verdicts of a check: a pair of policy and label for each."""
        self.items_checked.inc(n_items)
        for (policy, label), n in Tally(verdicts).items():
            self.verdicts.labels(policy, label).inc(n)

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
