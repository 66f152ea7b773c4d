"""Uploads of callers who may not send any: refused before the file is read, and mostly before it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tandem.extras.accounts.keys import CallerLimits
from tandem.extras.accounts.tests.guarded import TRANSLATE, access_of, bearer, guarded, make_key
from tandem.extras.files.sandbox import Sandbox
from tandem.extras.files.serving import FileService
from tandem.extras.files.tests.working import finished, sent
from tandem.extras.files.uploads import UNKNOWN_UPLOADS
from tandem.models.bundle import Bundle
from tandem.service.callers import Caller, QuotaUsage
from tests.service.support import Served, assert_error, until

pytestmark = pytest.mark.anyio
ROUTES = ("/files", "/translate_file")
WRONG = "tandem_00000000_" + "x" * 43
PIECE = b"wort "
PIECES = 20


@dataclass
class Sending:
    """A body that arrives in pieces.

    Attributes:
        before, behind: fields before the file and behind it.
        taken: pieces of the file that the server has asked for.
        gate: the second piece waits for it.
    """

    before: dict[str, str] = field(default_factory=dict)
    behind: dict[str, str] = field(default_factory=dict)
    taken: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        yield _fields({"source": "de", "target": "en", **self.before})
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        for _ in range(PIECES):
            self.taken += 1
            yield PIECE
            await self.gate.wait()
        yield b"\r\n" + _fields(self.behind) + b"--x--\r\n"

    async def to(self, service: Served, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        kind = {"content-type": "multipart/form-data; boundary=x"}
        return await service.client.post(path, content=self.pieces(), headers=kind | (headers or {}))


def _fields(fields: dict[str, str]) -> bytes:
    head = '--x\r\ncontent-disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    return "".join(head.format(name, value) for name, value in fields.items()).encode()


@pytest.fixture
async def service(bundles: dict[str, Bundle], tmp_path: Path) -> AsyncIterator[Served]:
    """A service that asks for keys."""
    async with guarded(bundles, tmp_path) as running:
        yield running


def broken(**fields: str) -> dict[str, Any]:
    return sent(b"PK\x03\x04 no archive", "a.docx", **fields)


@pytest.fixture
def sandboxed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The formats of the files that a process was started for."""
    seen: list[str] = []
    read = Sandbox.read

    async def noted(self: Sandbox, form: str, target: str, *paths: Path) -> Any:
        seen.append(form)
        return await read(self, form, target, *paths)

    monkeypatch.setattr(Sandbox, "read", noted)
    return seen


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("by_field", [False, True])
async def test_a_key_over_its_rate_has_no_file_read(
    service: Served, sandboxed: list[str], path: str, by_field: bool
) -> None:
    secret = make_key(service, limits=CallerLimits(rate=3))
    for _ in range(3):
        assert (await service.client.post("/translate", json=TRANSLATE, headers=bearer(secret))).status_code == 200
    request = broken(api_key=secret) if by_field else {**broken(), "headers": bearer(secret)}
    refused = await service.client.post(path, **request)
    assert_error(refused, 429, "rate_limited")
    assert int(refused.headers["retry-after"]) >= 1
    assert sandboxed == []


@pytest.mark.parametrize("path", ROUTES)
async def test_a_refused_file_counts_as_a_request_but_costs_no_characters(service: Served, path: str) -> None:
    headers = bearer(make_key(service, limits=CallerLimits(rate=2)))
    for _ in range(2):
        assert_error(await service.client.post(path, **broken(), headers=headers), 422, "broken_file")
    assert_error(await service.client.post(path, **broken(), headers=headers), 429, "rate_limited")
    assert await access_of(service).usage(Caller("web")) == QuotaUsage(0, None)


async def test_a_file_counts_as_one_request_and_each_question_about_it_as_one(service: Served) -> None:
    headers = bearer(make_key(service, limits=CallerLimits(rate=4)))
    for _ in range(2):
        await finished(service, await service.client.post("/files", **sent(b"das haus"), headers=headers))
    assert_error(await service.client.post("/files", **sent(), headers=headers), 429, "rate_limited")
    assert await access_of(service).usage(Caller("web")) == QuotaUsage(16, None)


@pytest.mark.parametrize("path", ["/files", "/files/none", "/files/none/result"])
async def test_a_question_counts_as_a_request(service: Served, path: str) -> None:
    headers = bearer(make_key(service, limits=CallerLimits(rate=1)))
    assert (await service.client.get(path, headers=headers)).status_code in (200, 404)
    assert_error(await service.client.get(path, headers=headers), 429, "rate_limited")


async def test_anonymous_callers_over_their_rate_have_no_file_read(
    bundles: dict[str, Bundle], tmp_path: Path, sandboxed: list[str]
) -> None:
    async with guarded(bundles, tmp_path, require_key=False, anonymous_rate=1) as service:
        assert (await service.client.post("/translate", json=TRANSLATE)).status_code == 200
        assert_error(await service.client.post("/files", **broken()), 429, "rate_limited")
        assert sandboxed == []


@pytest.mark.parametrize("path", ["/files", pytest.param("/translate_file", marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", ["header", "query", "field"])
@pytest.mark.parametrize(
    ("limits", "status", "code"), [(None, 403, "key_invalid"), (CallerLimits(rate=1), 429, "rate_limited")]
)
async def test_who_may_not_send_is_told_before_the_file_is_taken_in(
    service: Served, path: str, place: str, limits: CallerLimits | None, status: int, code: str
) -> None:
    secret = make_key(service, limits=limits) if limits else WRONG
    if limits:
        assert (await service.client.post("/detect", json={"q": "das"}, headers=bearer(secret))).status_code == 200
    sending = Sending(before={"api_key": secret} if place == "field" else {})
    query = f"?api_key={secret}" if place == "query" else ""
    reply = await sending.to(service, path + query, bearer(secret) if place == "header" else None)
    assert_error(reply, status, code)
    assert sending.taken <= 1


async def test_a_key_comes_before_the_file(service: Served) -> None:
    secret = make_key(service)
    behind = Sending(behind={"api_key": secret})
    reply = await behind.to(service, "/files")
    assert "api_key before the file" in assert_error(reply, 401, "key_missing")["error"]
    assert behind.taken <= 1
    at_once: dict[str, tuple[str | None, bytes | str]] = {
        "file": ("a.txt", b"das haus"),
        "target": (None, "en"),
        "api_key": (None, secret),
    }
    assert_error(await service.client.post("/files", files=at_once), 401, "key_missing")
    for before, query in (({"api_key": secret}, ""), ({}, f"?api_key={secret}")):
        assert (await Sending(before=before).to(service, f"/files{query}")).status_code == 202


async def test_where_no_key_is_required_it_may_stand_anywhere(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with guarded(bundles, tmp_path, require_key=False) as service:
        secret = make_key(service)
        reply = await Sending(behind={"api_key": secret}).to(service, "/files")
        assert reply.status_code == 202
        shown = (await service.client.get("/files", headers=bearer(secret))).json()
        assert [job["id"] for job in shown] == [reply.json()["id"]]
        assert_error(await Sending(behind={"api_key": WRONG}).to(service, "/files"), 403, "key_invalid")


@pytest.mark.parametrize(
    ("behind", "status", "code"),
    [
        ({"api_key": WRONG}, 403, "key_invalid"),
        ({}, 400, "key_missing"),
        ({"api_key": "k" * 513}, 422, "invalid_field"),
    ],
)
async def test_libretranslate_clients_are_refused_behind_the_file(
    service: Served, sandboxed: list[str], behind: dict[str, str], status: int, code: str
) -> None:
    for _ in range(UNKNOWN_UPLOADS + 1):  # each gives its slot back
        assert_error(await Sending(behind=behind).to(service, "/translate_file"), status, code)
    assert sandboxed == []


async def test_few_files_come_in_before_their_key(service: Served) -> None:
    secret = make_key(service)
    held = [Sending(behind={"api_key": secret}) for _ in range(UNKNOWN_UPLOADS)]
    for sending in held:
        sending.gate.clear()
    asked = [asyncio.create_task(sending.to(service, "/translate_file")) for sending in held]
    await until(lambda: service.app.state.parts.resource(FileService).unknown_uploads.locked())
    further = Sending(behind={"api_key": secret})
    reply = await further.to(service, "/translate_file")
    body = assert_error(reply, 503, "uploads_busy")
    assert body["detail"] == {"bound": UNKNOWN_UPLOADS} and int(reply.headers["retry-after"]) >= 1
    assert further.taken <= 1
    early = Sending(before={"api_key": secret})
    assert (await early.to(service, "/translate_file")).status_code == 200
    asked[0].cancel()  # a client that leaves gives its slot back
    await asyncio.gather(asked[0], return_exceptions=True)
    assert (await Sending(behind={"api_key": secret}).to(service, "/translate_file")).status_code == 200
    for sending in held[1:]:
        sending.gate.set()
    assert [(await one).status_code for one in asked[1:]] == [200] * (UNKNOWN_UPLOADS - 1)


async def test_what_comes_before_the_file_is_bounded(service: Served) -> None:
    taken = 0

    async def fields() -> AsyncIterator[bytes]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield _fields({f"field{number}": "x" * 10_000})

    headers = {"content-type": "multipart/form-data; boundary=x"}
    body = assert_error(await service.client.post("/files", content=fields(), headers=headers), 400, "bad_request")
    assert "first 65536 bytes" in body["error"]
    assert taken <= 8


@pytest.mark.parametrize("name", ["target", "model", "api_key"])
async def test_only_utf_8_is_read(service: Served, name: str) -> None:
    """Other codecs of Python's make text that no reply can hold."""
    body = _fields({"source": "de", "target": "en", name: "\\ud800"})
    headers = {"content-type": "multipart/form-data; boundary=x; charset=unicode_escape", **bearer(make_key(service))}
    refused = assert_error(
        await service.client.post("/files", content=body + b"--x--\r\n", headers=headers), 415, "unsupported_media_type"
    )
    assert "'unicode_escape'" in refused["error"]
