"""Streams of finished sentences, read message by message from the app itself."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle
from tandem.models.search import Array
from tandem.service.app import create_app
from tandem.service.engine import Engine
from tandem.service.http import replying
from tandem.service.settings import Settings
from tests.service.support import PATIENCE, CopyGraphs, make_engine

pytestmark = pytest.mark.anyio
SHORT, LONG = "Guten Morgen.", "wo ist der bahnhof heute und wie geht es dir denn und das haus ist alt."
FIELDS: dict[str, Any] = {"source": "de", "target": "en"}


class HeldGraphs(CopyGraphs):
    """Copies, but waits at a sentence's 20th step until ``far`` is set: short sentences are finished by then."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.far = threading.Event()

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if graph == "step" and inputs["position"].max() == 20:
            assert self.far.wait(PATIENCE)
        return super().run(graph, inputs)


@dataclass
class Exchange:
    """One request to an app, as a server would pass it on."""

    app: FastAPI
    path: str
    body: bytes
    query: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", b"application/json"),)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    sent: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)

    def start(self) -> asyncio.Task[None]:
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "POST",
            "path": self.path, "raw_path": self.path.encode(), "query_string": self.query, "root_path": "",
            "headers": list(self.headers), "scheme": "http", "server": ("service", 80), "client": ("::1", 1),
        }  # fmt: skip
        bodies = iter([{"type": "http.request", "body": self.body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in bodies:
                return message
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def run() -> None:
            await self.app(scope, receive, self.sent.put)  # type: ignore[arg-type]

        return asyncio.create_task(run())

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            return await self.sent.get()

    async def head(self) -> dict[str, str]:
        """The reply's headers, its status among them."""
        message = await self.next()
        headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        return headers | {"status": str(message["status"])}

    async def event(self) -> tuple[str, Any]:
        """The next event with its data; a comment's name is ":"."""
        message = await self.next()
        lines = message["body"].decode().strip().split("\n")
        if lines[0].startswith(":"):
            return ":", lines[0]
        assert [line.split(": ")[0] for line in lines] == ["event", "data"]
        return lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))

    async def whole(self) -> dict[str, Any]:
        """The body of a reply that is no stream."""
        content: dict[str, Any] = json.loads((await self.next())["body"])
        return content


@dataclass
class Host:
    app: FastAPI
    engine: Engine
    graphs: HeldGraphs

    def ask(self, path: str = "/translate", query: bytes = b"", accept: bytes = b"", **fields: Any) -> Exchange:
        headers = ((b"content-type", b"application/json"), (b"accept", accept))
        return Exchange(self.app, path, json.dumps(fields).encode(), query, headers)

    @asynccontextmanager
    async def streamed(self, path: str = "/translate", **fields: Any) -> AsyncIterator[Exchange]:
        """A stream whose head was read, and whose end is waited for."""
        exchange = self.ask(path, stream=True, **fields)
        task = exchange.start()
        await exchange.head()
        yield exchange
        await task


@asynccontextmanager
async def hosted(bundle: Bundle, **settings: Any) -> AsyncIterator[Host]:
    graphs = HeldGraphs(bundle.target_vocabulary.size)
    engine = make_engine((bundle, graphs))
    app = create_app(Settings(shutdown_timeout=5, **settings), engine)
    async with app.router.lifespan_context(app):
        try:
            yield Host(app, engine, graphs)
        finally:
            graphs.far.set()
            graphs.gate.set()


@pytest.fixture
async def host(bundles: dict[str, Bundle]) -> AsyncIterator[Host]:
    async with hosted(bundles["de-en"]) as running:
        yield running


@pytest.mark.parametrize(
    "asked", [{"stream": True}, {"query": b"stream=true"}, {"accept": b"text/event-stream"}], ids=str
)
async def test_a_sentence_is_sent_while_others_are_being_decoded(host: Host, asked: dict[str, Any]) -> None:
    text = f"{LONG}\n\n  {SHORT} "
    exchange = host.ask(q=["😀", text], **FIELDS, **asked)
    task = exchange.start()
    head = await exchange.head()
    assert head["status"] == "200" and head["content-type"].startswith("text/event-stream")
    assert "no-cache" in head["cache-control"] and head["x-accel-buffering"] == "no" and head["x-request-id"]
    name, event = await exchange.event()
    start = text.index(SHORT)
    assert (name, event) == (
        "sentence",
        {"text": 1, "sentence": 1, "source": {"start": start, "end": start + len(SHORT)}, "translation": SHORT},
    )
    assert not task.done() and host.engine.dispatcher.sentences == (0, 1)
    host.graphs.far.set()
    assert (await exchange.event())[1] == {
        "text": 1, "sentence": 0, "source": {"start": 0, "end": len(LONG)}, "translation": LONG,
    }  # fmt: skip
    assert await exchange.event() == ("done", {"translatedText": ["😀", text]})
    assert await exchange.next() == {"type": "http.response.body", "body": b"", "more_body": False}
    await task


async def test_a_sentence_that_is_tried_again_is_sent_once_with_what_came_of_it(host: Host) -> None:
    """The copying model never writes the target term: the sentence is put together from its parts in the end."""
    host.graphs.far.set()
    async with host.streamed(q="der bahnhof ist alt.\nbahnhof", glossary={"bahnhof": "station"}, **FIELDS) as exchange:
        events = [await exchange.event() for _ in range(3)]
        assert [name for name, _ in events] == ["sentence", "sentence", "done"]
        assert {event["sentence"]: event["translation"] for _, event in events[:2]} == {
            0: "der station ist alt.", 1: "station",
        }  # fmt: skip
        assert events[2][1]["translatedText"] == "der station ist alt.\nstation"


async def test_done_carries_all_that_was_asked_for(host: Host) -> None:
    host.graphs.far.set()
    async with host.streamed(q=SHORT, details=True, alternatives=1, **FIELDS) as exchange:
        assert (await exchange.event())[0] == "sentence"
        name, reply = await exchange.event()
        assert name == "done" and len(reply["details"][0]["sentences"]) == 1
        assert (
            reply["translatedText"] == SHORT and reply["model"] and reply["usage"] and len(reply["alternatives"]) == 1
        )


async def test_form_and_query_ask_for_streams_too(host: Host) -> None:
    host.graphs.far.set()
    form = b"q=Guten+Morgen.&source=de&target=en&stream=1"
    kind = ((b"content-type", b"application/x-www-form-urlencoded"),)
    for exchange in (
        Exchange(host.app, "/translate", form, headers=kind),
        Exchange(host.app, "/translate", b"", query=form, headers=()),
    ):
        task = exchange.start()
        assert (await exchange.head())["content-type"].startswith("text/event-stream")
        assert [(await exchange.event())[0], (await exchange.event())[0]] == ["sentence", "done"]
        await task


async def test_what_has_no_sentence_is_done_at_once(host: Host) -> None:
    async with host.streamed(q="...", **FIELDS) as exchange:
        assert await exchange.event() == ("done", {"translatedText": "..."})


async def test_summaries_are_streamed(bundles: dict[str, Bundle]) -> None:
    async with hosted(bundles["titles"]) as host:
        host.graphs.far.set()
        async with host.streamed("/summarize", q=["one two", "", "three"]) as exchange:
            events = [await exchange.event() for _ in range(3)]
            found = {event["text"]: (event["summary"], event["source"]) for name, event in events if name == "summary"}
            assert found == {0: ("one two", {"start": 0, "end": 7}), 2: ("three", {"start": 0, "end": 5})}
            assert events[-1][0] == "done" and events[-1][1]["summary"] == ["one two", "", "three"]


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"target": "xx"}, 404, "language_not_served"),
        ({"beam_size": 99}, 422, "invalid_field"),
        ({"format": "html"}, 422, "invalid_field"),
        ({"q": "a" * 30_000}, 413, "too_large"),
    ],
)
async def test_what_cannot_begin_is_an_ordinary_error(
    host: Host, fields: dict[str, Any], status: int, code: str
) -> None:
    exchange = host.ask(**{"q": SHORT, **FIELDS, "stream": True, **fields})
    await exchange.start()
    head = await exchange.head()
    assert (head["status"], head["content-type"]) == (str(status), "application/json")
    assert (await exchange.whole())["code"] == code


async def test_a_stream_flag_that_is_none_is_named(host: Host) -> None:
    exchange = host.ask(q=SHORT, query=b"stream=perhaps", **FIELDS)
    await exchange.start()
    assert (await exchange.head())["status"] == "422"
    assert (await exchange.whole())["detail"][0] == {
        "field": "stream", "message": "must be true or false", "value": "perhaps",
    }  # fmt: skip


async def test_a_crash_before_the_first_sentence_is_an_ordinary_error(host: Host) -> None:
    host.graphs.far.set()
    host.graphs.crash_step = _token_of(host, SHORT)
    exchange = host.ask(q=SHORT, stream=True, **FIELDS)
    with capture_logs() as logs:
        await exchange.start()
    assert [line for line in logs if line["log_level"] == "error"]
    assert (await exchange.head())["status"] == "500"
    assert (await exchange.whole())["code"] == "decoding_failed"


async def test_an_error_after_the_first_sentence_is_the_last_event(host: Host) -> None:
    async with host.streamed(q=[SHORT, LONG], **FIELDS) as exchange:
        assert (await exchange.event())[0] == "sentence"
        host.graphs.crash_step = _token_of(host, LONG)
        host.graphs.far.set()
        with capture_logs() as logs:
            name, body = await exchange.event()
        assert "stream_failed" in {line["event"] for line in logs}
        assert name == "error" and body["code"] == "decoding_failed" and body["request_id"]
        assert set(body) <= {"error", "code", "detail", "request_id"} and "/secret" not in str(body)
        assert not (await exchange.next())["more_body"]


def _token_of(host: Host, text: str) -> int:
    (bundle,) = host.engine.bundles.values()
    return int(bundle.source_vocabularies[0].encode(text)[0])


async def test_a_client_that_leaves_frees_its_rows(host: Host) -> None:
    exchange = host.ask(q=[SHORT, LONG], stream=True, **FIELDS)
    task = exchange.start()
    await exchange.head()
    await exchange.event()
    assert host.engine.dispatcher.sentences == (0, 1)
    exchange.gone.set()
    async with asyncio.timeout(PATIENCE):
        await task
    host.graphs.far.set()
    assert await asyncio.to_thread(host.engine.dispatcher.wait_until_idle, PATIENCE)
    assert host.engine.dispatcher.counters.cancelled == 1
    assert exchange.sent.empty()


async def test_a_client_that_leaves_before_the_first_sentence_frees_its_rows(host: Host) -> None:
    exchange = host.ask(q=SHORT, stream=True, **FIELDS)
    async with host.graphs.held(exchange.start) as task, asyncio.timeout(PATIENCE):
        exchange.gone.set()
        await task
    assert await asyncio.to_thread(host.engine.dispatcher.wait_until_idle, PATIENCE)
    assert exchange.sent.empty() and host.engine.dispatcher.counters.cancelled == 1


async def test_silence_is_broken_by_comments(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replying, "KEEP_ALIVE", 0.02)
    exchange = host.ask(q=LONG, stream=True, **FIELDS)
    task = exchange.start()
    assert (await exchange.head())["status"] == "200"
    assert (await exchange.event())[0] == (await exchange.event())[0] == ":"
    host.graphs.far.set()
    names = []
    while "done" not in names:
        names.append((await exchange.event())[0])
    assert [name for name in names if name != ":"] == ["sentence", "done"]
    await task


async def test_a_deadline_after_the_start_is_an_error_event(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replying, "KEEP_ALIVE", 0.02)
    async with host.streamed(q=LONG, timeout=0.2, **FIELDS) as exchange:
        names: list[tuple[str, Any]] = [(":", "")]
        while names[-1][0] == ":":
            names.append(await exchange.event())
        assert names[-1][0] == "error" and names[-1][1]["code"] == "deadline"
        host.graphs.far.set()
