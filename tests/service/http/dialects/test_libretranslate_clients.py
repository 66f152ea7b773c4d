"""LibreTranslate's clients against a server that listens: its own Python client, and what Weblate sends."""

from __future__ import annotations

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI  # type: ignore[import-untyped]

from tests.service.http.live import Live


def test_its_own_client(server: Live) -> None:
    client = LibreTranslateAPI(server.url)
    assert client.translate("Guten Morgen, wie geht es dir?", "de", "en") == "Guten Morgen, wie geht es dir?"
    assert client.translate("Wo ist denn hier der Bahnhof?", "auto", "en") == "Wo ist denn hier der Bahnhof?"
    assert client.translate("guten morgen\n\n  - das haus", "DE", "EN") == "guten morgen\n\n  - das haus"
    assert client.translate(" 🚆 ", "de", "en") == " 🚆 "
    best = client.detect("Wo ist denn hier der Bahnhof?")[0]
    assert best["language"] == "de" and 0 < best["confidence"] <= 100
    languages = {one["code"]: (one["name"], one["targets"]) for one in client.languages()}
    assert languages == {"de": ("German", ["en"]), "en": ("English", ["de"])}


def weblate(url: str, text: str, **changes: str) -> httpx.Response:
    """Weblate's request: a form with four fields, of which the key is empty where none is set."""
    form = {"api_key": "", "q": text, "source": "de", "target": "en"} | changes
    return httpx.post(f"{url}/translate", data=form, headers={"User-Agent": "Weblate"}, timeout=30)


def test_weblate(server: Live) -> None:
    codes = [one["code"] for one in httpx.get(f"{server.url}/languages").json()]
    assert codes == ["de", "en"]
    reply = weblate(server.url, "Guten Morgen & {name} <b>+</b> 100 %")
    assert reply.status_code == 200
    assert reply.json() == {"translatedText": "Guten Morgen & {name} <b>+</b> 100 %"}


def test_weblate_in_batches(server: Live) -> None:
    """Its newer versions send JSON, with the strings of a page in one list."""
    strings = ["Guten Morgen", "Das Haus ist gross.\n"]
    body = {"api_key": "", "q": strings, "source": "de", "target": "en"}
    assert httpx.post(f"{server.url}/translate", json=body).json() == {"translatedText": strings}


def test_weblate_reads_the_error(server: Live) -> None:
    unsupported = weblate(server.url, "guten morgen", source="xx")
    assert unsupported.status_code == 400 and "xx" in unsupported.json()["error"]


@pytest.mark.parametrize("missing", ["q", "target"])
def test_a_missing_parameter_of_a_form(server: Live, missing: str) -> None:
    form = {"q": "guten morgen", "source": "de", "target": "en"}
    del form[missing]
    reply = httpx.post(f"{server.url}/translate", data=form)
    assert reply.status_code == 400
    assert reply.json()["error"] == f"Invalid request: missing {missing} parameter"
    as_json = httpx.post(f"{server.url}/translate", json=form)
    assert as_json.status_code == 422 and missing in as_json.json()["error"]


def test_a_form_over_the_limit_of_characters(server: Live) -> None:
    reply = weblate(server.url, "a " * 15_000)
    assert reply.status_code == 400
    assert "at most 20000 characters" in reply.json()["error"]
    multipart = httpx.post(
        f"{server.url}/translate",
        files={"q": (None, "a " * 15_000), "source": (None, "de"), "target": (None, "en")},
    )
    assert multipart.status_code == 400


def test_only_what_was_asked_for(server: Live) -> None:
    """Clients parse what they know; one that knows nothing of detection or alternatives gets neither."""
    form = {"q": "Wo ist denn hier der Bahnhof?", "source": "de", "target": "en", "format": "text", "secret": "x"}
    assert set(httpx.post(f"{server.url}/translate", data=form).json()) == {"translatedText"}
    detected = httpx.post(f"{server.url}/translate", data=form | {"source": "auto"}).json()
    assert set(detected) == {"translatedText", "detectedLanguage"}
    assert detected["detectedLanguage"]["language"] == "de"
    more = httpx.post(f"{server.url}/translate", data=form | {"alternatives": "2"}).json()
    assert set(more) == {"translatedText", "alternatives"} and len(more["alternatives"]) == 2


def test_settings_of_a_page(server: Live) -> None:
    found = httpx.get(f"{server.url}/frontend/settings").json()
    assert (found["charLimit"], found["keyRequired"], found["suggestions"]) == (20_000, False, False)
    assert found["filesTranslation"] == bool(found["supportedFilesFormat"])
    assert found["language"]["source"]["code"] == "auto"
    assert found["language"]["target"] == {"code": "de", "name": "German"}


def test_health(server: Live) -> None:
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
