"""LibreTranslate's clients against a server that asks for keys."""

from __future__ import annotations

import json
from urllib.error import HTTPError

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI  # type: ignore[import-untyped]

from tandem.extras.accounts.tests.keyed import Keyed
from tandem.extras.markup.tests.test_requests import POST, mastodon
from tests.service.http.dialects.test_libretranslate_clients import weblate
from tests.service.http.live import Live


def test_its_own_client_with_keys(keyed: Keyed) -> None:
    client = LibreTranslateAPI(keyed.live.url + "/", api_key=keyed.good)
    assert client.translate("guten morgen", "de", "en") == "guten morgen"
    assert client.languages() == LibreTranslateAPI(keyed.live.url).languages()  # which needs no key


@pytest.mark.parametrize(("key", "status"), [(None, 400), ("wrong", 403), ("tandem_00000000_no", 403)])
def test_its_own_client_without_a_good_key(keyed: Keyed, key: str | None, status: int) -> None:
    client = LibreTranslateAPI(keyed.live.url, api_key=key)
    for call, texts in ((client.translate, ("guten morgen", "de", "en")), (client.detect, ("guten morgen",))):
        with pytest.raises(HTTPError) as caught:
            call(*texts)
        with caught.value as reply:
            assert reply.code == status
            assert "key" in json.load(reply)["error"]


def test_its_own_client_over_quota_and_rate(keyed: Keyed) -> None:
    for key, status in ((keyed.poor, 403), (keyed.slow, 429)):
        client = LibreTranslateAPI(keyed.live.url, api_key=key)
        client.translate("guten morgen", "de", "en")
        with pytest.raises(HTTPError) as caught:
            client.translate("wo ist der bahnhof heute", "de", "en")
        with caught.value as reply:
            assert reply.code == status
            assert "at most" in json.load(reply)["error"]


def test_mastodon_tells_errors_apart(keyed: Keyed) -> None:
    assert mastodon(keyed.live.url, POST, "de", keyed.good).status_code == 200
    assert mastodon(keyed.live.url, POST, "de", "tandem_00000000_no").status_code == 403
    over = mastodon(keyed.live.url, POST, "de", keyed.poor)
    assert (over.status_code, over.json()["code"]) == (429, "quota_exceeded")


def test_suggestions_of_its_page(server: Live, keyed: Keyed) -> None:
    """LibreTranslate's page sends a form, and looks at ``success`` alone."""
    form = {"q": "das haus am see", "s": "the house by the lake", "source": "de", "target": "en", "api_key": keyed.good}
    reply = httpx.post(f"{keyed.live.url}/suggest", data=form)
    assert (reply.status_code, reply.json()) == (200, {"success": True})
    client = LibreTranslateAPI(keyed.live.url, api_key=keyed.good)
    assert client.translate("das haus am see", "de", "en") == "the house by the lake"
    refused = httpx.post(f"{server.url}/suggest", json={**form, "api_key": ""})
    assert refused.status_code == 403 and "key" in refused.json()["error"]


def test_weblate_reads_the_error(keyed: Keyed) -> None:
    missing = weblate(keyed.live.url, "guten morgen")
    assert missing.status_code == 400 and "key" in missing.json()["error"]
    assert weblate(keyed.live.url, "guten morgen", api_key=keyed.good).status_code == 200


def test_settings_of_a_page(keyed: Keyed) -> None:
    found = httpx.get(f"{keyed.live.url}/frontend/settings").json()
    assert (found["keyRequired"], found["suggestions"]) == (True, True)
