"""Traces: spans of a request with counts and never a text, the caller's trace continued, nothing where it is off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tandem.extras.tracing.opening import Spans, open_tracing, trace_to
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.settings import Settings
from tests.service.support import Served, served, tiny_bundle

pytest.importorskip("opentelemetry.sdk")

pytestmark = pytest.mark.anyio
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The finished spans of an app that is made meanwhile."""
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    made: list[Spans] = []

    def open_in_memory(settings: Settings) -> Spans:
        made.append(trace_to(SimpleSpanProcessor(exporter)))
        return made[-1]

    monkeypatch.setattr("tandem.extras.tracing.opening.open_tracing", open_in_memory)
    yield exporter
    for one in made:
        one.close()


@asynccontextmanager
async def traced(bundles: dict[str, Bundle], spans: Any) -> AsyncIterator[Served]:
    async with served(bundles, Settings(shutdown_timeout=5, admin_key=SecretStr("a" * 20))) as service:
        spans.clear()
        yield service


async def test_a_request_is_one_trace_with_its_stages(bundles: dict[str, Bundle], spans: Any) -> None:
    async with traced(bundles, spans) as service:
        reply = await service.client.post(
            "/translate",
            json={"q": "Guten Morgen. Das Haus ist alt.", "source": "de", "target": "en"},
            headers={"traceparent": PARENT, "X-Request-ID": "r-1", "Authorization": "Bearer " + "a" * 20},
        )
        assert reply.status_code == 200
        found = {span.name: span for span in spans.get_finished_spans()}
    server = found["POST /translate"]
    assert f"{server.context.trace_id:032x}-{server.parent.span_id:016x}" == PARENT[3:52]
    assert server.attributes["http.response.status_code"] == 200
    assert (server.attributes["tandem.request_id"], server.attributes["tandem.caller"]) == ("r-1", "admin")
    assert set(found) == {"POST /translate", "split", "engine", "queue", "encode", "decode", "detokenise"}
    assert {span.context.trace_id for span in found.values()} == {server.context.trace_id}
    engine = found["engine"]
    assert engine.parent.span_id == server.context.span_id == found["split"].parent.span_id
    assert engine.attributes["tandem.sentences"] == found["encode"].attributes["tandem.sentences"] == 2
    assert engine.attributes["tandem.source_tokens"] > engine.attributes["tandem.target_tokens"] > 0
    for name in ("queue", "encode", "decode"):
        assert found[name].parent.span_id == engine.context.span_id
    assert (
        found["queue"].end_time == found["encode"].start_time <= found["encode"].end_time == found["decode"].start_time
    )


async def test_reranking_has_a_span_beside_the_engine_s(tmp_path: Path, spans: Any) -> None:
    pairs = {"de-en": ("de", "en"), "en-de": ("en", "de")}
    both = {
        name: tiny_bundle(tmp_path, name, source_languages=(source,), target_language=target)
        for name, (source, target) in pairs.items()
    }
    async with traced(both, spans) as service:
        await service.translate("Guten Morgen. Das Haus ist alt.", rerank=True)
        found = [span for span in spans.get_finished_spans() if span.name in ("engine", "rerank")]
    assert sorted(span.name for span in found) == ["engine", "rerank"]
    assert len({span.parent.span_id for span in found}) == 1


async def test_no_span_holds_a_text_a_path_or_an_address(bundles: dict[str, Bundle], spans: Any) -> None:
    async with traced(bundles, spans) as service:
        query = {"q": "geheimer satz", "source": "de", "target": "en"}
        assert (await service.client.post("/translate", params=query)).status_code == 200
        await service.client.get("/download_file/geheimer-name")
        await service.client.post("/summarize", json={"q": "geheimer text", "api_key": "geheim"})
        everything = " ".join(span.to_json() for span in spans.get_finished_spans())
    assert "geheim" not in everything and "client.address" not in everything and "127.0.0.1" not in everything
    assert "REDACTED" in everything


async def test_a_failed_request_is_marked_and_probes_leave_no_trace(bundles: dict[str, Bundle], spans: Any) -> None:
    async with traced(bundles, spans) as service:
        for path in ("/healthz", "/readyz", "/metrics"):
            await service.client.get(path)
        assert spans.get_finished_spans() == ()
        service.graphs.crash_encode = 3
        await service.translate("das haus")
        found = {span.name: span for span in spans.get_finished_spans()}
    assert found["POST /translate"].attributes["http.response.status_code"] == 500
    assert not found["POST /translate"].status.is_ok
    assert "secret" not in found["engine"].to_json() and found["engine"].events == ()


async def test_log_lines_carry_the_trace(
    bundles: dict[str, Bundle], spans: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    async with traced(bundles, spans) as service:
        capsys.readouterr()
        await service.client.get("/languages", headers={"traceparent": PARENT})
        assert "trace_id=0af7651916cd43dd8448eb211c80319c" in capsys.readouterr().out


async def test_without_an_endpoint_there_is_nothing(
    bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert open_tracing(Settings()) is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert open_tracing(Settings()) is None
    program = (
        "import sys, tandem.service.app, tandem.service.settings as s; tandem.service.app.create_app(s.Settings());"
        "sys.exit('opentelemetry.sdk' in sys.modules or 'opentelemetry.exporter' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == 0


def test_an_endpoint_opens_an_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)
    tracing = open_tracing(Settings(**{"traces_endpoint": "http://localhost:4318/"}))
    assert tracing is not None
    tracing.close()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    tracing = open_tracing(Settings())
    assert tracing is not None
    tracing.close()
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigError, match=r"install tandem with its extra \[telemetry\]"):
        open_tracing(Settings())
