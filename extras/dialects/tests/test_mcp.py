"""The tools at ``/mcp``, asked by the official SDK's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from tandem.extras.accounts.keys import CallerLimits
from tandem.extras.accounts.tests.guarded import bearer, guarded, make_key
from tandem.models.bundle import Bundle
from tests.service.support import Served, assert_error

pytestmark = pytest.mark.anyio
TEXT = "Wo ist der Bahnhof heute?\n\n- Guten Morgen"


@asynccontextmanager
async def connected(service: Served, key: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    transport = httpx2.ASGITransport(service.app)
    headers = bearer(key) if key else {}
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        Client(streamable_http_client("http://localhost/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], bool]:
    """What a tool answers, and whether it is an error."""
    found = await client.call_tool(tool, arguments)
    assert isinstance(found.content[0], TextContent) and found.structured_content is not None
    return found.structured_content, bool(found.is_error)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_answer(service: Served, mode: str) -> None:
    async with connected(service, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["translate", "summarize", "detect"]
        assert tools["translate"].input_schema["required"] == ["text", "target"]
        assert await call(client, "translate", text=TEXT, target="en") == (
            {"translation": TEXT, "detectedLanguage": "de"},
            False,
        )
        assert await call(client, "summarize", text="das haus") == (
            {"summary": "das haus", "truncated": False},
            False,
        )
        languages, _ = await call(client, "detect", text=TEXT)
        assert languages["languages"][0]["language"] == "de"
        (said,) = (await client.call_tool("detect", {"text": TEXT})).content
        assert isinstance(said, TextContent) and json.loads(said.text) == languages["languages"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "words"),
    [
        ("translate", {"text": "x", "target": "fr", "source": "de"}, "language_not_served", "de-en"),
        ("translate", {"text": "x" * 30_000, "target": "en"}, "too_large", "20000 characters"),
        ("translate", {"text": 1, "target": "en"}, "invalid_field", "text: must be a string"),
        ("detect", {"text": "x", "more": True}, "invalid_field", "more"),
        ("delete", {}, "tool_not_found", "translate, summarize, detect"),
    ],
)
async def test_what_cannot_be_done_is_said(
    service: Served, tool: str, arguments: dict[str, Any], code: str, words: str
) -> None:
    async with connected(service) as client:
        found, failed = await call(client, tool, **arguments)
    assert failed and found["code"] == code and words in found["error"]


async def test_keys_and_quotas_hold(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with guarded(bundles, tmp_path) as service:
        assert_error(await service.client.post("/mcp", json={}), 401, "key_missing")
        assert_error(await service.client.post("/mcp", json={}, headers=bearer("tandem_x")), 403, "key_invalid")
        key = make_key(service, limits=CallerLimits(quota=30))
        async with connected(service, key) as client:
            found, failed = await call(client, "translate", text="das haus ist gross", target="en")
            assert (found["translation"], failed) == ("das haus ist gross", False)
            found, failed = await call(client, "translate", text="das haus ist gross", target="en")
            assert (found["code"], failed) == ("quota_exceeded", True)


async def test_every_message_counts_once_against_the_rate(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with guarded(bundles, tmp_path) as service:
        headers = bearer(make_key(service, limits=CallerLimits(rate=3))) | {"Accept": "application/json"}
        called = {"name": "translate", "arguments": {"text": "das haus", "target": "en"}}
        for method, params in (("tools/list", {}), ("tools/call", called), ("ping", {})):
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            reply = await service.client.post("/mcp", json=message, headers=headers)
            assert reply.is_success and "result" in reply.json()
        assert_error(await service.client.post("/mcp", json=message, headers=headers), 429, "rate_limited")


async def test_the_memory_of_the_key_answers(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with guarded(bundles, tmp_path) as service:
        mine, other = make_key(service, "mine"), make_key(service, "other")
        correction = {"q": "das haus", "s": "The house.", "source": "de", "target": "en"}
        assert (await service.client.post("/suggest", json=correction, headers=bearer(mine))).is_success
        for key, expected in ((mine, "The house."), (other, "das haus")):
            async with connected(service, key) as client:
                found, _ = await call(client, "translate", text="das haus", source="de", target="en")
            assert found == {"translation": expected}


@pytest.mark.parametrize(("origin", "status"), [("https://pages.example", 403), ("http://localhost", 200)])
async def test_pages_of_other_origins_are_refused(service: Served, origin: str, status: int) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Origin": origin, "Accept": "application/json, text/event-stream"}
    assert (await service.client.post("/mcp", json=request, headers=headers)).status_code == status


async def test_no_stream_is_held_open_for_a_server_without_sessions(service: Served) -> None:
    async with asyncio.timeout(30):
        reply = await service.client.get("/mcp", headers={"Accept": "text/event-stream"})
    assert_error(reply, 405, "method_not_allowed")
