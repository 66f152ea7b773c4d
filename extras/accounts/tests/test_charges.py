"""Rates and quotas as clients see them: what is counted, what is given back, what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tandem.extras.accounts.keys import CallerLimits
from tandem.extras.accounts.tests.guarded import TEXT, TRANSLATE, access_of, bearer, guarded, make_key
from tandem.models.bundle import Bundle
from tandem.service.callers import Caller, QuotaUsage
from tandem.service.engine import DecodingFailed
from tandem.service.settings import Settings
from tandem.service.translation.progress import Progress
from tandem.service.translation.requests import Context, TranslateTask
from tandem.service.translation.results import DecodeResult
from tandem.service.translation.texts import TextService
from tests.service.support import Served, assert_error, served

pytestmark = pytest.mark.anyio


async def test_a_rate_is_429_with_retry_after(service: Served) -> None:
    headers = bearer(make_key(service, limits=CallerLimits(rate=2)))
    for _ in range(2):
        assert (await service.client.post("/detect", json={"q": TEXT}, headers=headers)).status_code == 200
    refused = await service.client.post("/detect", json={"q": TEXT}, headers=headers)
    assert_error(refused, 429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= 60


async def test_what_costs_no_characters_counts_as_a_request(service: Served) -> None:
    routes = (
        ("GET", "/v1/models"),
        ("GET", "/v2/usage"),
        ("GET", "/v2/languages"),
        ("GET", "/v3/glossaries"),
        ("DELETE", "/v2/glossaries/none"),
    )
    for number, (method, path) in enumerate(routes):
        headers = bearer(make_key(service, f"caller-{number}", CallerLimits(rate=1)))
        first = await service.client.request(method, path, headers=headers)
        assert first.status_code in (200, 404), (path, first.text)
        assert (await service.client.request(method, path, headers=headers)).status_code == 429, path
    for path in ("/languages", "/healthz", "/readyz", "/metrics"):  # free, also of one who is over the rate
        assert (await service.client.get(path, headers=headers)).status_code == 200


async def test_a_quota_counts_what_is_translated_and_gives_back_what_failed(service: Served) -> None:
    headers, web = bearer(make_key(service, limits=CallerLimits(quota=40))), Caller("web")
    usage = access_of(service).usage

    async def translate(q: Any, **fields: Any) -> httpx.Response:
        fields = {"q": q, "source": "de", "target": "en", **fields}
        return await service.client.post("/translate", json=fields, headers=headers)

    assert (await translate([TEXT, "das"])).status_code == 200
    assert await usage(web) == QuotaUsage(21, 40)
    assert_error(await translate(TEXT, target="xx"), 404, "language_not_served")
    assert_error(await translate(TEXT, beam_size=99), 422, "invalid_field")
    service.graphs.crash_encode = 3  # EOS: every sentence
    with capture_logs():
        assert_error(await translate(TEXT), 500, "decoding_failed")
    assert await usage(web) == QuotaUsage(21, 40)
    service.graphs.crash_encode = -1
    body = assert_error(await translate("das haus ist gross und alt"), 429, "quota_exceeded")
    assert body["detail"] == {"bound": 40, "used": 21, "value": 26}
    assert (await translate("das haus")).status_code == 200
    assert await usage(web) == QuotaUsage(29, 40)


async def test_a_stream_that_breaks_off_is_given_back(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status is 200, since it had begun."""

    async def break_off(
        self: TextService, request: TranslateTask, context: Context, progress: Progress
    ) -> DecodeResult:
        progress.add(lambda: None)
        await asyncio.sleep(0.01)
        raise DecodingFailed("0a1b2c3d4e5f")

    async with guarded(bundles, tmp_path) as service:
        headers = bearer(make_key(service))
        monkeypatch.setattr(TextService, "translate", break_off)
        with capture_logs():
            fields = {"q": TEXT, "source": "de", "target": "en", "stream": True}
            response = await service.client.post("/translate", json=fields, headers=headers)
        assert (response.status_code, "event: error" in response.text) == (200, True)
        assert await access_of(service).usage(Caller("web")) == QuotaUsage(0, None)


async def test_what_would_cost_too_much_decoding_is_refused_and_not_charged(
    bundles: dict[str, Bundle], tmp_path: Path
) -> None:
    """Two sentences, at most 200 tokens each, 4 hypotheses of which 2 are asked for."""
    for bound, status in ((3199, 422), (3200, 200)):
        async with guarded(
            bundles, tmp_path, max_decoding_cost=bound, require_key=False, anonymous_quota=1000
        ) as service:
            response = await service.translate("Das Haus. Guten Morgen.", alternatives=1)
            assert response.status_code == status, response.text
            charged = (await access_of(service).usage(Caller("anonymous"))).count
            assert charged == (0 if status == 422 else 23)
            if status == 422:
                body = assert_error(response, 422, "invalid_field")
                assert "at most 3199" in body["error"]
                assert body["detail"][0]["value"] == 3200


async def test_who_leaves_has_paid(service: Served) -> None:
    access, caller = access_of(service), Caller("web")
    make_key(service)

    async def leave() -> None:
        async with access.charged(caller, 10):
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await leave()
    assert (await access.usage(caller)).count == 10


async def test_anonymous_callers_share_their_limits(bundles: dict[str, Bundle]) -> None:
    settings = Settings(anonymous_quota=20, anonymous_rate=3, shutdown_timeout=5)
    async with served(bundles, settings) as service:
        assert (await service.translate(TEXT)).status_code == 200
        assert_error(await service.translate(TEXT), 429, "quota_exceeded")
        assert (await service.translate("")).status_code == 200
        assert_error(await service.translate(""), 429, "rate_limited")
        assert await access_of(service).usage(Caller("anonymous")) == QuotaUsage(18, 20)


async def test_an_open_server_counts_nothing(bundles: dict[str, Bundle]) -> None:
    async with served(bundles) as service:
        await service.translate(TEXT)
        assert await access_of(service).usage(Caller("anonymous")) == QuotaUsage(0, None)


async def test_a_store_of_limits_that_is_down_is_no_500(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    url = "redis://127.0.0.1:1/0"
    async with guarded(bundles, tmp_path, limits_url=url) as service:
        headers = bearer(make_key(service, limits=CallerLimits(1, 1)))
        for _ in range(2):
            assert (await service.client.post("/detect", json={"q": TEXT}, headers=headers)).status_code == 200
    async with guarded(bundles, tmp_path, limits_url=url, limits_failure="closed") as service:
        refused = await service.client.post("/translate", json=TRANSLATE, headers=headers)
        assert_error(refused, 503, "limits_unavailable")
        assert int(refused.headers["retry-after"]) >= 1
