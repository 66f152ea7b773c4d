"""Every way in which a request can be wrong, and the one shape of the answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle
from tandem.service.errors import StorageFull
from tandem.service.http.middleware import RequestContext
from tandem.service.settings import Settings
from tandem.service.telemetry.metrics import Metrics
from tests.service.support import PATIENCE, Served, assert_error, served

pytestmark = pytest.mark.anyio
PAIR = {"source": "de", "target": "en"}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("fields", "status", "code", "words"),
    [
        ({"source": "xx"}, 404, "language_not_served", ("'xx'", "de-en")),
        ({"target": "fr"}, 404, "language_not_served", ("'fr'", "de-en")),
        ({"source": "en", "target": "de"}, 404, "pair_not_served", ("en-de", "de-en")),
        ({"model": "nothing"}, 404, "model_not_found", ("'nothing'", "de-en")),
        ({"model": "titles"}, 404, "model_not_found", ("de-en",)),
        ({"source": "deutsch!"}, 422, "invalid_field", ("source", "deutsch!")),
        ({"q": 5}, 422, "invalid_field", ("q", "string", "5")),
        ({"q": []}, 422, "invalid_field", ("q", "list")),
        ({"q": ["a", None]}, 422, "invalid_field", ("q.1: must be a string, but is null",)),
        ({"others": {"fr": ["a", [1]]}}, 422, "invalid_field", ("others.fr.1: must be a string, but is a list",)),
        ({"q": None}, 422, "invalid_field", ("q",)),
        ({"q": ["a"] * 101}, 422, "invalid_field", ("q", "100", "101")),
        ({"alternatives": "3"}, 422, "invalid_field", ("alternatives", "3")),
        ({"alternatives": 4, "beam_size": 4}, 422, "invalid_field", ("alternatives", "at most", "3", "4")),
        ({"beam_size": 11}, 422, "invalid_field", ("beam_size", "at most 10", "11")),
        ({"beam_size": 0}, 422, "invalid_field", ("beam_size", "1", "0")),
        ({"beam_size": True}, 422, "invalid_field", ("beam_size",)),
        ({"length_penalty": 11}, 422, "invalid_field", ("length_penalty", "10", "11")),
        ({"max_length": 201}, 422, "invalid_field", ("max_length", "200", "201")),
        ({"min_length": 9, "max_length": 8}, 422, "invalid_field", ("min_length", "8", "9")),
        ({"coverage_penalty": 1.0}, 422, "invalid_field", ("coverage_penalty",)),
        ({"sampling": {"top_p": 2}}, 422, "invalid_field", ("sampling.top_p", "2")),
        ({"sampling": {"heat": 2}}, 422, "invalid_field", ("sampling.heat", "not a known field")),
        ({"timeout": 61}, 422, "invalid_field", ("timeout", "60", "61")),
        ({"timeout": 0}, 422, "invalid_field", ("timeout", "0")),
        ({"priority": "urgent"}, 422, "invalid_field", ("priority", "urgent")),
        ({"format": "xml"}, 422, "invalid_field", ("format", "html", "xml")),
        ({"unheard_of": 1}, 422, "invalid_field", ("unheard_of", "not a known field")),
        ({"text": "too"}, 422, "invalid_field", ("text",)),
    ],
)
async def test_bad_fields_name_bound_and_value(
    service: Served, fields: dict[str, Any], status: int, code: str, words: tuple[str, ...]
) -> None:
    response = await service.client.post("/translate", json={"q": "Hallo", **PAIR, **fields})
    body = assert_error(response, status, code)
    for word in words:
        assert word in body["error"]
    if status == 422:
        assert body["detail"][0]["field"]
        assert body["detail"][0]["message"]


async def test_missing_fields_are_all_named(service: Served) -> None:
    body = assert_error(await service.client.post("/translate", json={}), 422, "invalid_field")
    assert [fault["field"] for fault in body["detail"]] == ["q", "target"]
    assert_error(await service.client.post("/translate"), 422, "invalid_field")
    assert_error(
        await service.client.post("/translate", data={"q": "a", "beam_size": "x", **PAIR}), 422, "invalid_field"
    )


async def test_summarize_checks_the_same_way(service: Served) -> None:
    for fields, status, code in (
        ({"q": "a", "language": "de", "method": "model"}, 404, "language_not_served"),
        ({"q": "a", "language": "!"}, 422, "invalid_field"),
        ({"q": "a", "language": "auto", "method": "extract"}, 422, "invalid_field"),
        ({"q": "a", "method": "best"}, 422, "invalid_field"),
        ({"q": "a", "model": "de-en"}, 404, "model_not_found"),
        ({"q": "a", "target": "en"}, 422, "invalid_field"),
        ({"q": "a" * 100_001}, 413, "too_large"),
    ):
        assert_error(await service.client.post("/summarize", json=fields), status, code)


@pytest.mark.parametrize("texts", ["a" * 100_000, ["a" * 10_001] * 2])
async def test_too_many_characters(service: Served, texts: Any) -> None:
    body = assert_error(await service.translate(texts), 413, "too_large")
    assert body["detail"] == {"bound": 20_000, "value": len("".join(texts))}
    assert "20000" in body["error"]


async def test_a_body_over_the_bound_is_not_read_to_its_end(service: Served) -> None:
    read = 0

    async def endless() -> Any:
        nonlocal read
        while read < 100 << 20:
            read += 1 << 16
            yield b"a" * (1 << 16)

    response = await service.client.post("/translate", content=endless(), headers=JSON)
    assert_error(response, 413, "too_large")
    assert read <= 2 << 20
    declared = await service.client.post("/translate", content=b"{}", headers={**JSON, "content-length": str(1 << 40)})
    assert assert_error(declared, 413, "too_large")["detail"]["value"] == 1 << 40


FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"
BAD_JSON = (
    b"", b"{", b"[]", b'"text"', b"null", b'{"q": NaN}', b"[" * 100_000, b'{"q": "\xff"}', b'\xff\xfe{"q"}',
    b'{"q": "\\ud800", "source": "de", "target": "en"}', b'{"\\udfff": 1}', b'{"q": ' + b"1" * 5000 + b"}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "kind", "body", "status", "code"),
    [
        *(("/translate", "application/json", body, 400, "bad_request") for body in BAD_JSON),
        ("/translate", FORM, b"q=%FF&source=de&target=en", 400, "bad_request"),
        ("/translate", FORM, b"q=\xff&source=de&target=en", 400, "bad_request"),
        ("/translate", MULTIPART, b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n\xff\r\n--x--\r\n', 400,
         "bad_request"),
        ("/translate", MULTIPART, b"no parts at all", 400, "bad_request"),
        ("/translate", "multipart/form-data", b"--x--", 400, "bad_request"),
        ("/translate?q=%FF&source=de&target=en", None, b"", 400, "bad_request"),
        ("/translate/x", "application/json", b'{"q": "das haus"}', 404, "route_not_found"),
        *(
            ("/translate", kind, b"q", 415, "unsupported_media_type")
            for kind in ("text/csv", "application/xml", "", "application/json; charset=utf-16")
        ),
    ],
)  # fmt: skip
async def test_what_cannot_be_read(
    service: Served, path: str, kind: str | None, body: bytes, status: int, code: str
) -> None:
    headers = {} if kind is None else {"content-type": kind}
    assert_error(await service.client.post(path, content=body, headers=headers), status, code)


async def test_a_compressed_body_is_refused_and_a_byte_order_mark_is_not(service: Served) -> None:
    body = b'\xef\xbb\xbf{"q": "das haus", "source": "de", "target": "en"}'
    headers = {"content-type": "application/json"}
    assert (await service.client.post("/translate", content=body, headers=headers)).is_success
    response = await service.client.post("/translate", content=body, headers={**headers, "content-encoding": "gzip"})
    assert "content encoding 'gzip'" in assert_error(response, 415, "unsupported_media_type")["error"]


@pytest.mark.parametrize(
    "fields",
    [
        {"others": '{"\\ud800": "x"}'},
        {"others": '{"fr": "\\udfff"}'},
        {"others": '{"fr": ["a", "\\ud800"]}'},
        {"sampling": '{"\\ud800": 1}'},
        {"sampling": '"\\ud800"'},
    ],
)
async def test_half_a_character_in_a_forms_objects(service: Served, fields: dict[str, str]) -> None:
    sent = {"q": "Hallo", **PAIR, **fields}
    for response in (
        await service.client.post("/translate", data=sent),
        await service.client.post("/translate", params=sent),
    ):
        assert "lone surrogate" in assert_error(response, 400, "bad_request")["error"]


@pytest.mark.parametrize("others", ["{", "NaN", '{"fr": NaN}', "[]", "5", "[" * 5000])
async def test_what_is_no_object_in_a_form(service: Served, others: str) -> None:
    response = await service.client.post("/translate", data={"q": "Hallo", **PAIR, "others": others})
    assert "others: must be an object of language code" in assert_error(response, 422, "invalid_field")["error"]


async def test_unknown_routes_and_methods(service: Served) -> None:
    assert_error(await service.client.get("/nothing"), 404, "route_not_found")
    response = await service.client.get("/translate")
    assert_error(response, 405, "method_not_allowed")
    assert "POST" in response.headers["allow"]


async def test_hostile_texts_cost_only_themselves(service: Served) -> None:
    for text in ("e" + "\u0301" * 10_000, "\u202e" * 100 + "a", "a\u0000b", "x" * 20_000, "\ufeff\uffff", "(" * 9_000):
        assert (await service.translate(text)).status_code == 200
    assert_error(await service.translate("a" * 1_000_000), 413, "too_large")


async def test_a_deadline_is_504(service: Served) -> None:
    service.graphs.gate.clear()
    response = await service.translate("das haus", timeout=0.01)
    service.graphs.gate.set()
    assert_error(response, 504, "deadline")
    assert await asyncio.to_thread(service.engine.dispatcher.wait_until_idle, PATIENCE)


async def test_a_crash_is_500_with_an_incident_and_the_service_goes_on(service: Served) -> None:
    service.graphs.crash_step = service.bundle.source_vocabularies[0].encode("gross")[-1]
    with capture_logs() as logs:
        body = assert_error(await service.translate("das haus ist gross"), 500, "decoding_failed")
    incident = body["detail"]["incident"]
    assert incident in body["error"]
    logged = [entry for entry in logs if entry.get("incident") == incident]
    assert logged[0]["requests"] == [body["request_id"]]
    assert (await service.translate("alt")).status_code == 200


async def test_an_error_nobody_thought_of_is_a_bare_500(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("/srv/secret.py")

    monkeypatch.setattr(service.engine, "submit", broken)
    with capture_logs() as logs:
        body = assert_error(await service.translate("das haus"), 500, "internal")
    assert "secret" not in json.dumps(body)
    assert [entry["event"] for entry in logs][:1] == ["request_failed"]


async def test_a_slow_body_is_408(bundles: dict[str, Bundle]) -> None:
    async with served(bundles, Settings(request_timeout=0.01, shutdown_timeout=5)) as service:

        async def stalled() -> Any:
            yield b"{"
            await asyncio.Event().wait()

        response = await service.client.post("/translate", content=stalled(), headers=JSON)
        assert_error(response, 408, "body_timeout")


LONG = b'{"q": "%s", "source": "de", "target": "en"}' % (b"guten morgen wie geht es dir " * 3)


@pytest.mark.parametrize(("tokens", "content"), [(60, LONG), (20, b"{no JSON at all")], ids=["too long", "unread"])
async def test_a_full_queue_is_503_with_retry_after(bundles: dict[str, Bundle], tokens: int, content: bytes) -> None:
    """What does not fit any more, and once nothing does, whatever comes: it is turned away unread."""
    async with served(bundles, max_queue_tokens=tokens) as service, service.held("das haus ist gross und alt") as first:
        refused = await service.client.post("/translate", content=content, headers=JSON)
        other = await service.client.get("/languages")
        service.graphs.gate.set()
        assert_error(refused, 503, "overloaded")
        assert int(refused.headers["retry-after"]) >= 1
        assert other.status_code == 200
        assert (await first).status_code == 200
        assert service.engine.dispatcher.counters.rejected == {"queue_full": 1}
        metrics = (await service.client.get("/metrics")).text
        assert 'route="/translate",status="503"' in metrics


async def test_what_cannot_be_kept_is_logged_with_its_cause() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise StorageFull("jobs.db cannot be used now (database or disk is full); make room on its disk")

    transport = httpx.ASGITransport(RequestContext(fails, Metrics()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        with capture_logs() as lines:
            body = assert_error(await client.get("/files"), 503, "storage_unavailable")
    assert "disk is full" in body["error"] and "jobs.db" not in json.dumps(body)
    assert [line["cause"] for line in lines if line["log_level"] == "error"] == [
        "jobs.db cannot be used now (database or disk is full); make room on its disk"
    ]
