"""Running the service: many clients, leaving clients, readiness, metrics, documentation, shutdown."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.service.support import PATIENCE, CopyGraphs, Served, assert_error, make_engine, running, served

pytestmark = pytest.mark.anyio
PAIR = {"source": "de", "target": "en"}


async def metrics(client: httpx.AsyncClient) -> dict[str, float]:
    """Samples by name, with labels where there are any."""
    text = (await client.get("/metrics")).text
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = float(sample.value)
    return found


async def test_sixteen_clients_share_their_steps(service: Served) -> None:
    """The first sentence is held until all are there; then they are decoded together."""
    texts = [f"das haus nummer {'eins zwei drei ' * 2}{number} ist gross" for number in range(16)]
    before = await metrics(service.client)
    service.graphs.gate.clear()
    requests = [asyncio.ensure_future(service.translate(text)) for text in texts]
    while sum(service.engine.dispatcher.sentences) < 16:
        await asyncio.sleep(0)
    service.graphs.gate.set()
    responses = await asyncio.gather(*requests)
    assert [one.json()["translatedText"] for one in responses] == texts
    after = await metrics(service.client)
    steps, sentences = (
        after[name] - before[name] for name in ("tandem_decode_steps_total", "tandem_decode_sentence_steps_total")
    )
    assert sentences / steps >= 4


async def exchange(app: Any, body: bytes, leave: asyncio.Event) -> list[Any]:
    """One POST /translate at the ASGI level; the client leaves when the event is set. Returns what was sent."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/translate",
        "raw_path": b"/translate", "root_path": "", "scheme": "http", "query_string": b"", "client": ("test", 1),
        "headers": [(b"content-type", b"application/json")], "server": ("service", 80),
    }  # fmt: skip
    await app(scope, receive, send)
    return sent


async def test_a_leaving_client_takes_its_sentences_with_it(service: Served) -> None:
    leave = asyncio.Event()
    body = json.dumps({"q": "Guten Morgen. Das Haus. Der Bahnhof ist alt.", **PAIR}).encode()
    asked = exchange(service.app, body, leave)
    async with service.graphs.held(lambda: asyncio.ensure_future(asked)) as leaving:
        staying = asyncio.ensure_future(service.translate("das haus ist gross"))
        leave.set()
        assert await leaving == []
        assert service.engine.dispatcher.counters.cancelled == 3
    assert (await staying).json() == {"translatedText": "das haus ist gross"}
    assert await asyncio.to_thread(service.engine.dispatcher.wait_until_idle, PATIENCE)
    counted = await metrics(service.client)
    assert counted["tandem_http_requests_total{key=anonymous,method=POST,route=/translate,status=499}"] == 1
    assert counted["tandem_sentences_total{outcome=cancelled}"] == 3


async def test_a_client_that_leaves_before_its_body_is_complete(service: Served) -> None:
    async def receive() -> Any:
        return {"type": "http.disconnect"}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/translate", "headers": [], "query_string": b""}
    await service.app(scope, receive, send)
    assert sent == []


async def test_ready_after_a_probe_of_every_bundle(service: Served) -> None:
    response = await service.client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})
    assert service.engine.dispatcher.counters.finished == 2  # the start has decoded a sentence of each
    assert (await service.client.get("/healthz")).json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/health"])
async def test_monitors_may_ask_by_head(service: Served, path: str) -> None:
    assert (await service.client.head(path)).status_code == 200
    service.engine.dispatcher.close()
    assert (await service.client.head(path)).status_code == (503 if path == "/readyz" else 200)


async def test_not_ready_while_decoding_hangs_and_ready_again(bundles: dict[str, Bundle]) -> None:
    settings = Settings(probe_interval=0, probe_timeout=0.05, shutdown_timeout=5)
    async with served(bundles, settings) as service:
        service.graphs.gate.clear()
        body = assert_error(await service.client.get("/readyz"), 503, "not_ready")
        assert "de-en did not decode a probe sentence" in body["detail"]["reasons"][0]
        service.graphs.gate.set()
        assert await asyncio.to_thread(service.engine.dispatcher.wait_until_idle, PATIENCE)
    async with served(bundles, Settings(probe_interval=0, shutdown_timeout=5)) as service:
        assert (await service.client.get("/readyz")).status_code == 200


async def test_not_ready_when_the_model_crashes(bundles: dict[str, Bundle]) -> None:
    graphs = CopyGraphs(bundles["de-en"].target_vocabulary.size)
    graphs.crash_encode = 3  # EOS: every sentence
    async with running(create_app(Settings(shutdown_timeout=5), make_engine((bundles["de-en"], graphs)))) as client:
        body = assert_error(await client.get("/readyz"), 503, "not_ready")
        assert "cannot decode a probe sentence" in body["error"]
        assert (await client.get("/healthz")).status_code == 200


async def test_not_ready_and_no_new_work_while_draining(service: Served) -> None:
    service.engine.dispatcher.close()
    response = await service.client.get("/readyz")
    assert_error(response, 503, "not_ready")
    assert int(response.headers["retry-after"]) >= 1
    refused = await service.translate("das haus")
    assert_error(refused, 503, "draining")
    assert int(refused.headers["retry-after"]) >= 1
    assert {model["state"] for model in (await service.client.get("/models")).json()} == {"draining"}


async def test_languages_and_models(service: Served) -> None:
    assert (await service.client.get("/languages")).json() == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]
    models = (await service.client.get("/models")).json()
    assert [(one["name"], one["task"], one["state"]) for one in models] == [
        ("de-en", "translate", "ready"),
        ("titles", "summarize", "ready"),
    ]


async def test_metrics_count_requests_sentences_and_tokens(service: Served) -> None:
    await service.translate("Guten Morgen. Wie geht es?")
    await service.client.get("/nowhere/1234")
    found = await metrics(service.client)
    assert found["tandem_http_requests_total{key=anonymous,method=POST,route=/translate,status=200}"] == 1
    assert found["tandem_http_requests_total{key=,method=GET,route=unmatched,status=404}"] == 1
    assert found["tandem_http_request_seconds_bucket{le=10.0,route=/translate}"] == 1
    assert found["tandem_sentences_total{outcome=finished}"] == 4  # two of them probes
    assert found["tandem_target_tokens_total"] > 0
    assert found["tandem_wait_seconds_count"] == 4
    assert found["tandem_step_seconds_count{phase=decode}"] == found["tandem_decode_steps_total"]
    assert found["tandem_bundles_loaded"] == 2
    limits = "max_batch_sentences=64,max_batch_tokens=8192,max_join_tokens=512"
    assert found[f"tandem_engine_info{{device=cpu,{limits},precision=int8,runtime=onnx,workers=1}}"] == 1


async def test_the_limits_in_force_are_logged_at_the_start(bundles: dict[str, Bundle]) -> None:
    with capture_logs() as logs:
        async with served(bundles) as service:
            limits = service.engine.options.limits
    (start,) = [entry for entry in logs if entry["event"] == "started"]
    assert start["limits"] == asdict(limits)


async def test_each_app_has_its_own_metrics(bundles: dict[str, Bundle]) -> None:
    async with served(bundles) as first, served(bundles) as second:
        await first.translate("das haus")
        assert "tandem_http_requests_total{key=anonymous,method=POST,route=/translate,status=200}" not in await metrics(
            second.client
        )


async def test_every_example_of_the_document_is_valid(many_sources: dict[str, Bundle]) -> None:
    async with served(many_sources) as service:
        document = (await service.client.get("/openapi.json")).json()
        for path in ("/translate", "/postedit", "/summarize"):
            content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
            for example in content["examples"].values():
                assert (await service.client.post(path, json=example["value"])).status_code == 200


async def test_the_front_page_leads_to_the_documentation(service: Served) -> None:
    assert 'href="docs"' in (await service.client.get("/")).text
    assert (await service.client.get("/docs")).status_code == 200
