"""Spans of OpenTelemetry, of the batches that a loader waits for."""

from __future__ import annotations

import contextlib
import os
from typing import Any

_tracer: Any = None
if "otlp" in os.environ.get("OTEL_TRACES_EXPORTER", "").split(","):  # as of the engine
    with contextlib.suppress(ImportError):
        from opentelemetry import propagate, trace

        _tracer = trace.get_tracer("chaski")


def begin(name: str, **attributes: int) -> tuple[Any, str]:
    """Begins a span, or None where there are none; returns it, and what names it to an engine."""
    if _tracer is None:
        return None, ""
    span = _tracer.start_span(name, attributes=attributes)
    carrier: dict[str, str] = {}
    propagate.inject(carrier, trace.set_span_in_context(span))
    return span, carrier.get("traceparent", "")


def end(span: Any) -> None:
    """Ends a span, or None."""
    if span is not None:
        span.end()
