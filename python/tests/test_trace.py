"""Spans of OpenTelemetry: one for each batch, whose context goes with its ticket."""

from __future__ import annotations

import importlib

import pytest
from helpers import FakeEngine, alone

import chaski
from chaski import _trace


def test_none_without_being_asked_for(fake, monkeypatch):
    alone(monkeypatch)
    engine = FakeEngine()
    with chaski.connect(fake(engine), "data", batch_size=4) as loader:
        assert len(list(loader)) == 3
    assert [t.trace for t in engine.tickets] == ["", "", ""]


def test_steps(fake, monkeypatch):
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry import trace

    got = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(got))
    trace.set_tracer_provider(provider)
    engine = FakeEngine()
    alone(monkeypatch)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    importlib.reload(_trace)
    try:
        with chaski.connect(fake(engine), "data", batch_size=4) as loader:
            next(iter(loader))  # and the others are given up
    finally:
        monkeypatch.undo()
        importlib.reload(_trace)
    spans = {
        f"{s.context.trace_id:032x}-{s.context.span_id:016x}": s for s in got.get_finished_spans()
    }
    assert [spans[t.trace[3:52]].attributes["step"] for t in engine.tickets] == [0, 1, 2]
    assert {s.name for s in spans.values()} == {"chaski.step"} and len(spans) == 3
