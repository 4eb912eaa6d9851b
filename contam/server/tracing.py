"""Send OpenTelemetry spans if configured: routes, counts and durations, no text."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from contam.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.trace import Span
    from starlette.types import Scope


NO_TELEMETRY: Final[Any] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""Keeps FastAPI from telling of requests itself: it would send queries, paths and what does not
fit a schema to wherever the process's environment says.
"""


class Tracing:
    """Makes a span for every request, under the caller's own if it sends `traceparent`.

    Where spans go is said by the variables that OpenTelemetry itself reads, such as
    OTEL_EXPORTER_OTLP_ENDPOINT. Raises ConfigError if the extra `otel` is not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            raise ConfigError(
                "traces need OpenTelemetry, which is not installed",
                hint="pip install 'contam[otel]'",
            ) from error
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "contam"}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("contam")
        self._propagator = TraceContextTextMapPropagator()
        self._kind = trace.SpanKind.SERVER

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Span]:
        """The span of a request; `finish_span` completes it when the answer is known."""
        carrier = {
            name.decode(): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in {b"traceparent", b"tracestate"}
        }
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._propagator.extract(carrier),
            kind=self._kind,
            # The message of an exception may quote an item.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    @staticmethod
    def finish_span(span: Span, line: dict[str, Any]) -> None:
        """Give a span what the request's log line has."""
        from opentelemetry.trace import StatusCode

        span.update_name(f"{line['method']} {line['route']}")
        span.set_attribute("http.request.method", line["method"])
        span.set_attribute("http.route", line["route"])
        span.set_attribute("http.response.status_code", line["status"])
        for name, value in line.items():
            if name not in {"method", "route", "status"}:
                span.set_attribute(f"contam.{name}", value)
        if line["status"] >= 500:  # noqa: PLR2004 - where HTTP's server errors begin
            span.set_status(StatusCode.ERROR)

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()
