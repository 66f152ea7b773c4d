"""What the service level objectives, alerts and the dashboard are measured by."""

from __future__ import annotations

import asyncio
import re
import threading

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from tandem.models.bundle import Bundle
from tandem.service.app import create_app
from tandem.service.engine import Engine
from tandem.service.settings import Settings
from tandem.service.telemetry.metrics import TEXT_ROUTES, Metrics
from tests.service.http.test_operations import exchange, metrics
from tests.service.support import PATIENCE, Served, running, served

pytestmark = pytest.mark.anyio
PAIR = {"source": "de", "target": "en"}


def outcomes(found: dict[str, float], route: str = "/translate") -> dict[str, float]:
    """Requests for text of one route by outcome, those that there were."""
    pattern = re.compile(rf"tandem_text_requests_total{{outcome=(\w+),route={re.escape(route)}}}")
    return {match[1]: value for name, value in found.items() if (match := pattern.fullmatch(name)) and value}


async def test_everything_that_a_rate_is_made_of_starts_at_zero(service: Served) -> None:
    found = await metrics(service.client)
    for route in TEXT_ROUTES:
        assert found[f"tandem_text_requests_total{{outcome=failed,route={route}}}"] == 0
        assert found[f"tandem_text_request_seconds_bucket{{le=1.0,priority=interactive,route={route}}}"] == 0
    assert found["tandem_rejected_total{reason=queue_full}"] == 0
    assert found["tandem_rejected_total{reason=draining}"] == 0


async def test_requests_for_text_count_by_outcome(service: Served) -> None:
    await service.translate("guten morgen")
    await service.translate("guten morgen", target="xx")
    await service.translate("x" * 100_000)
    service.graphs.crash_encode = service.bundle.source_vocabularies[0].encode("haus")[0]
    assert (await service.translate("haus")).status_code == 500
    assert outcomes(await metrics(service.client)) == {"answered": 1, "refused": 2, "failed": 1}


async def test_what_the_other_routes_do_does_not_count(service: Served) -> None:
    before = await metrics(service.client)
    for path in ("/languages", "/readyz", "/no-such-route"):
        await service.client.get(path)
    await service.client.get("/translate")  # whose method is wrong
    after = await metrics(service.client)
    of_text = [name for name in after if name.startswith("tandem_text_requests_total")]
    assert of_text and [after[name] for name in of_text] == [before[name] for name in of_text]


async def test_a_client_that_leaves_is_no_failure_of_ours(service: Served) -> None:
    leave = asyncio.Event()
    asked = exchange(service.app, b'{"q": "haus", "source": "de", "target": "en"}', leave)
    async with service.graphs.held(lambda: asyncio.ensure_future(asked)) as leaving:
        leave.set()
        await leaving
    assert outcomes(await metrics(service.client)) == {"left": 1}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("own", "outcome"), [({"timeout": 0.02}, "left"), ({"timeout": 0.2}, "failed"), ({}, "failed")]
)
async def test_a_time_that_the_client_set_is_no_failure_of_ours(
    bundles: dict[str, Bundle], own: dict[str, float], outcome: str, stream: bool
) -> None:
    async with served(bundles, Settings(request_timeout=0.2, shutdown_timeout=5)) as service:
        service.graphs.gate.clear()
        answer = await service.translate("haus", stream=stream, **own)
        service.graphs.gate.set()
        assert answer.status_code == 504 or '"deadline"' in answer.text
        assert outcomes(await metrics(service.client)) == {outcome: 1}


async def test_a_stream_that_breaks_off_has_failed_whatever_its_status(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.service.http.replying.KEEP_ALIVE", 0.01)
    service.graphs.crash_step = service.bundle.source_vocabularies[0].encode("haus")[0]
    service.graphs.gate.clear()

    async def decode_once_the_reply_has_begun(scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                service.graphs.gate.set()
            await send(message)

        await service.app(scope, receive, watched)

    transport = httpx.ASGITransport(decode_once_the_reply_has_begun)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        response = await client.post("/translate", json={"q": "haus", "stream": True, **PAIR})
    assert response.status_code == 200 and "decoding_failed" in response.text
    assert outcomes(await metrics(service.client)) == {"failed": 1}


async def test_only_answered_requests_have_a_time_by_priority(service: Served) -> None:
    await service.translate("guten morgen")
    await service.translate("guten morgen", priority="bulk")
    await service.translate("das haus. " * 250)  # over bulk_characters
    await service.translate("x" * 100_000)
    found = await metrics(service.client)
    assert found["tandem_text_request_seconds_count{priority=interactive,route=/translate}"] == 1
    assert found["tandem_text_request_seconds_count{priority=bulk,route=/translate}"] == 2


async def test_a_full_queue_fails_requests_and_shows_its_bound(bundles: dict[str, Bundle]) -> None:
    async with served(bundles, max_queue_tokens=40) as service:
        async with service.held("das haus ist gross und alt " * 3) as first:
            assert (await service.translate("haus")).status_code == 503
            found = await metrics(service.client)
        assert (await first).status_code == 200
    assert found["tandem_queue_limit_tokens"] == 40 <= found["tandem_queue_tokens"]
    assert found["tandem_rejected_total{reason=queue_full}"] == 1
    assert outcomes(found) == {"failed": 1}


async def test_ready_follows_what_readyz_last_said(bundles: dict[str, Bundle]) -> None:
    async with served(bundles, Settings(probe_interval=0, probe_timeout=0.05, shutdown_timeout=5)) as service:
        assert (await metrics(service.client))["tandem_ready"] == 1
        service.graphs.gate = threading.Event()  # steps hang
        assert (await service.client.get("/readyz")).status_code == 503
        assert (await metrics(service.client))["tandem_ready"] == 0
        service.graphs.gate.set()
        assert await asyncio.to_thread(service.engine.dispatcher.wait_until_idle, PATIENCE)


async def test_a_drain_shows_without_anybody_asking_readyz(service: Served) -> None:
    service.engine.dispatcher.drain()
    assert (await metrics(service.client))["tandem_ready"] == 0


async def test_without_a_model_it_is_not_ready() -> None:
    async with running(create_app(Settings(shutdown_timeout=5), Engine())) as client:
        assert (await metrics(client))["tandem_ready"] == 0


async def test_what_runs_and_what_it_may_use(service: Served) -> None:
    found = await metrics(service.client)
    assert [name for name in found if name.startswith("tandem_build_info{version=")]
    assert found["tandem_decode_workers"] == service.engine.options.workers
    assert found["tandem_cores"] > 0
    assert found["process_resident_memory_bytes"] < found["tandem_memory_limit_bytes"]


def test_a_route_without_text_is_not_noted_as_one() -> None:
    noted = Metrics()
    noted.note_text("/languages", 200, "", 1.0)
    assert b'route="/languages"' not in noted.render()[0]
