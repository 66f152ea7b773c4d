"""Requests of browser extensions, as they send them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tandem.extras.accounts.tests.keyed import Keyed
from tests.service.support import Served

pytestmark = pytest.mark.anyio
TEXT = "Wo ist der Bahnhof heute?"


async def post(service: Served, path: str, body: Any, **options: Any) -> Any:
    reply = await service.client.post(path, json=body, **options)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_google_s_form(service: Served) -> None:
    fields = {"q": [TEXT, "<b>das haus</b>"], "source": "de", "target": "en"}
    found = await post(service, "/language/translate/v2?key=any", fields)
    assert found == {"data": {"translations": [{"translatedText": text} for text in fields["q"]]}}
    one = await post(service, "/language/translate/v2", {"q": TEXT, "target": "en", "format": "text", "model": "nmt"})
    assert one["data"]["translations"] == [{"translatedText": TEXT, "detectedSourceLanguage": "de"}]
    form = await service.client.post(
        "/language/translate/v2", data={"q": [TEXT, "das haus"], "target": "en", "source": "de"}
    )
    assert [found["translatedText"] for found in form.json()["data"]["translations"]] == [TEXT, "das haus"]
    address = {"q": [TEXT, "das haus"], "target": "en", "source": "de", "key": "any", "model": "nmt"}
    got = await service.client.get("/language/translate/v2", params=address)
    assert got.status_code == 200, got.text
    assert [found["translatedText"] for found in got.json()["data"]["translations"]] == [TEXT, "das haus"]
    listed = (await service.client.get("/language/translate/v2/languages?target=en")).json()
    assert {"language": "de", "name": "German"} in listed["data"]["languages"]


async def test_deeplx_s_form(service: Served) -> None:
    found = await post(service, "/deeplx/translate?token=any", {"text": TEXT, "source_lang": "DE", "target_lang": "EN"})
    assert (found["code"], found["data"], found["source_lang"], found["target_lang"]) == (200, TEXT, "DE", "EN")
    assert found["method"] == "Free" and len(found["alternatives"]) <= 2 and isinstance(found["id"], int)
    guessed = await post(service, "/deeplx/translate", {"text": TEXT, "source_lang": "auto", "target_lang": "EN"})
    assert guessed["source_lang"] == "DE"


async def test_immersive_translate_s_form(service: Served) -> None:
    texts = [TEXT, "<b0></b0> das haus <b1></b1> ist alt", "{0} guten morgen {1}"]
    found = await post(service, "/imme", {"source_lang": "auto", "target_lang": "en", "text_list": texts})
    assert [one["text"] for one in found["translations"]] == texts
    assert {one["detected_source_lang"] for one in found["translations"]} == {"de"}


async def test_kiss_translator_s_form(service: Served) -> None:
    assert await post(service, "/kiss", {"text": TEXT, "from": "auto", "to": "en"}) == {"text": TEXT, "src": "de"}
    found = await post(service, "/kiss", {"texts": [TEXT, "das haus"], "from": "de", "to": "en"})
    assert found == {"translations": [{"text": TEXT, "src": "de"}, {"text": "das haus", "src": "de"}]}
    assert (await service.client.post("/kiss", json={"from": "de", "to": "en"})).status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/language/translate/v2", {"q": "haus", "target": "xx"}, 400),
        ("/language/translate/v2", {"q": "haus"}, 400),
        ("/deeplx/translate", {"text": "haus", "target_lang": "xx"}, 404),
    ],
)
async def test_errors_have_the_shape_that_these_clients_know(
    service: Served, path: str, body: dict[str, str], status: int
) -> None:
    reply = await service.client.post(path, json=body)
    assert reply.status_code == status
    fault = reply.json().get("error", reply.json())
    assert fault["code"] == status and fault["message"]
    if path.startswith("/language"):
        got = await service.client.get(path, params=body)
        assert got.status_code == status and got.json()["error"].keys() == fault.keys()


def test_keys_are_asked_for_where_the_server_does(keyed: Keyed) -> None:
    with httpx.Client(base_url=keyed.live.url) as client:
        body = {"q": "haus", "source": "de", "target": "en"}
        assert client.post("/language/translate/v2", json=body).status_code == 403
        assert client.post("/language/translate/v2", json=body, params={"key": keyed.good}).status_code == 200
        sent = {"text": "haus", "source_lang": "DE", "target_lang": "EN"}
        assert client.post("/deeplx/translate", json=sent).json()["code"] == 401
        assert client.post("/deeplx/translate", json=sent, params={"token": keyed.good}).status_code == 200
        assert client.post("/imme", json={"text_list": ["haus"], "target_lang": "en"}).status_code == 401
