"""Headers of every reply, cross-origin requests, request ids, and bounds that hold before a body is parsed."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.bundle import Bundle
from tandem.service.http.edges import SECURITY_HEADERS
from tandem.service.http.error_replies import BadRequest
from tandem.service.http.intake import JsonBounds
from tandem.service.settings import Settings
from tests.service.support import Served, assert_error, served

BOUNDS = JsonBounds(depth=4, number=20)
PAGE = {"Origin": "https://pages.example"}


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/healthz", "/languages", "/metrics", "/openapi.json", "/nowhere", "/translate", "/"])
async def test_every_reply_has_the_security_headers(service: Served, path: str) -> None:
    for response in (await service.client.get(path), await service.client.post(path, content=b"x" * 2_000_000)):
        for name, value in SECURITY_HEADERS:
            if name not in ("Cache-Control", "Content-Security-Policy"):
                assert response.headers[name] == value
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert len(response.headers.get_list("content-security-policy")) == 1
        assert "server" not in response.headers


@pytest.mark.anyio
async def test_an_error_on_our_side_has_them_too(service: Served) -> None:
    service.app.state.parts = None
    response = await service.client.get("/languages")
    assert_error(response, 500, "internal")
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.anyio
async def test_pages_of_other_origins_get_nothing_by_default(service: Served) -> None:
    for response in (
        await service.client.get("/languages", headers=PAGE),
        await service.client.options("/translate", headers={**PAGE, "Access-Control-Request-Method": "POST"}),
    ):
        assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.anyio
async def test_pages_of_listed_origins_may_use_the_api(bundles: dict[str, Bundle]) -> None:
    settings = Settings(cors_origins=("https://pages.example", "https://other.example"), shutdown_timeout=5)
    async with served(bundles, settings) as service:
        names = "authorization, mcp-protocol-version, openai-organization, x-stainless-retry-count"
        for method, path in (
            ("POST", "/v1/chat/completions"),
            ("PATCH", "/v3/glossaries/1"),
            ("PUT", "/v3/glossaries"),
        ):
            asked = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": names}
            allowed = await service.client.options(path, headers={**PAGE, **asked})
            assert allowed.status_code == 200 and method in allowed.headers["access-control-allow-methods"]
            assert allowed.headers["access-control-allow-headers"] == names
            assert allowed.headers["access-control-allow-origin"] == PAGE["Origin"]
        error = await service.client.post("/translate", content=b"{", headers=PAGE)
        assert error.status_code == 415
        assert error.headers["access-control-allow-origin"] == PAGE["Origin"]
        assert "retry-after" in error.headers["access-control-expose-headers"].lower()
        assert "access-control-allow-credentials" not in error.headers
        refused = await service.client.get("/languages", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in refused.headers


@pytest.mark.anyio
@pytest.mark.parametrize("offered", ["a-1.b_c:d", "x" * 128])
async def test_a_safe_request_id_is_kept(service: Served, offered: str) -> None:
    response = await service.client.get("/healthz", headers={"X-Request-ID": offered})
    assert response.headers["x-request-id"] == offered


@pytest.mark.anyio
@pytest.mark.parametrize("offered", ["", "x" * 129, 'a"b', "a b", "<b>", "a\tb", "ä".encode()])
async def test_an_unsafe_request_id_is_replaced(service: Served, offered: Any) -> None:
    response = await service.client.get("/healthz", headers={"X-Request-ID": offered})
    assert response.headers["x-request-id"].isalnum()
    assert len(response.headers["x-request-id"]) == 32


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"q": ' + b"[" * 20_000, "at most 16 levels"),
        (b'{"q": ' + b'{"a": ' * 20 + b"1" + b"}" * 21, "at most 16 levels"),
        (b'{"q": "a", "beam_size": ' + b"9" * 100_000 + b"}", "at most 40 characters"),
        (b'{"q": "a", "beam_size": 1e' + b"9" * 50 + b"}", "at most 40 characters"),
    ],
)
async def test_json_beyond_its_bounds_is_refused_before_it_is_parsed(
    service: Served, body: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*_: Any, **__: Any) -> Any:
        raise AssertionError("parsed")

    monkeypatch.setattr("tandem.service.http.intake.from_json", parse)
    response = await service.client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    monkeypatch.undo()
    assert message in assert_error(response, 400, "bad_request")["error"]


@pytest.mark.anyio
async def test_brackets_and_digits_in_a_text_are_text(service: Served) -> None:
    for text in ("[" * 100 + "{" * 100, "9" * 100, 'a"[[[[[[[[[[[[[[[[[[[[[\\'):
        response = await service.translate(text)
        assert response.status_code == 200, response.text


def accepts(content: str) -> bool:
    try:
        BOUNDS.check(content.encode())
    except BadRequest:
        return False
    return True


VALUES = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(-(10**9), 10**9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=30,
)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@given(VALUES, st.booleans())
def test_depth_is_that_of_the_value_whatever_its_strings_hold(value: Any, plain: bool) -> None:
    assert accepts(json.dumps(value, ensure_ascii=not plain)) == (depth_of(value) <= BOUNDS.depth)


@given(st.integers(1, 30), st.booleans())
def test_the_length_of_a_number_is_bounded(digits: int, signed: bool) -> None:
    number = "-" * signed + "9" * digits
    assert accepts(f'{{"a": [{number}, "{"9" * 50}"]}}') == (digits <= BOUNDS.number)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "host", "answered"),
    [
        ({}, "localhost:8000", True),
        ({}, "LOCALHOST.", True),
        ({}, "tandem.localhost", True),
        ({}, socket.gethostname(), True),
        ({}, "127.0.0.1:8000", True),
        ({}, "[::1]:8000", True),
        ({}, "192.0.2.7", True),  # no name, so nobody's page leads here by it
        ({}, "pages.example", False),
        ({}, "localhost.pages.example:8000", False),
        ({}, "127.0.0.1.pages.example", False),
        ({}, "[pages.example", False),
        ({"host": "::1"}, "pages.example", False),
        ({"host": "localhost"}, "pages.example", False),
        ({"host": "0.0.0.0"}, "pages.example", False),
        ({"host": "0.0.0.0"}, "10.0.0.7:8000", True),
        ({"host": "0.0.0.0"}, "tandem:8000", True),  # a service of compose
        ({"host": "0.0.0.0"}, "tandem.default.svc.cluster.local", True),
        ({"host": "0.0.0.0"}, "translate.internal.pages.example", False),
        ({"host": "0.0.0.0", "allowed_hosts": ("a.example",)}, "pages.example", False),
        ({"host": "0.0.0.0", "allowed_hosts": ("A.example",)}, "a.example:443", True),
        ({"allowed_hosts": "a.example, *"}, "pages.example", True),
    ],
)
async def test_a_server_without_keys_answers_for_its_own_names(
    bundles: dict[str, Bundle], settings: dict[str, Any], host: str, answered: bool
) -> None:
    async with served(bundles, Settings(shutdown_timeout=5, **settings)) as service:
        response = await service.client.get("/languages", headers={"Host": host})
    if answered:
        assert response.status_code == 200
    else:
        assert "TANDEM_ALLOWED_HOSTS" in assert_error(response, 421, "host_not_allowed")["error"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "method", "headers", "answered"),
    [
        ({}, "POST", {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, False),
        ({}, "POST", {"Sec-Fetch-Site": "cross-site"}, False),
        ({}, "POST", {"Sec-Fetch-Site": "cross-site", "Origin": "null"}, False),
        ({}, "GET", {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, True),
        ({}, "POST", {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8000"}, True),
        ({}, "POST", {"Sec-Fetch-Site": "none"}, True),
        ({}, "POST", {}, True),
        ({}, "POST", {"Sec-Fetch-Site": "cross-site", "Origin": "moz-extension://0b1c"}, True),
        (
            {"cors_origins": "https://a.example"},
            "POST",
            {"Sec-Fetch-Site": "cross-site", "Origin": "https://a.example"},
            True,
        ),
        (
            {"cors_origins": "https://a.example"},
            "POST",
            {"Sec-Fetch-Site": "cross-site", "Origin": "https://b.example"},
            False,
        ),
        ({"cors_origins": "*"}, "POST", {"Sec-Fetch-Site": "cross-site", "Origin": "https://b.example"}, True),
    ],
)
async def test_a_page_of_another_site_cannot_post_to_a_server_without_keys(
    bundles: dict[str, Bundle], settings: dict[str, Any], method: str, headers: dict[str, str], answered: bool
) -> None:
    async with served(bundles, Settings(shutdown_timeout=5, **settings)) as service:
        response = await service.client.request(method, "/languages" if method == "GET" else "/detect", headers=headers)
    if answered:
        assert response.status_code != 403 or response.json()["code"] != "cross_site"
    else:
        assert "TANDEM_CORS_ORIGINS" in assert_error(response, 403, "cross_site")["error"]
