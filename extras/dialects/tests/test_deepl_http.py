"""DeepL's API as it is on the wire: forms, statuses, shapes, headers, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tandem.extras.accounts.access import KeyedAccess
from tandem.extras.accounts.keys import CallerLimits
from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.support import Served, served, until

pytestmark = pytest.mark.anyio
TEXT = {"text": ["guten morgen"], "source_lang": "DE", "target_lang": "EN-GB"}


@pytest.fixture
async def both(both_ways: dict[str, Bundle]) -> AsyncIterator[Served]:
    async with served(both_ways) as running:
        yield running


def assert_deepl_error(reply: httpx.Response, status: int, *words: str) -> None:
    """Every error has DeepL's shape, of which its clients make one sentence."""
    assert reply.status_code == status, reply.text
    body: dict[str, Any] = reply.json()
    assert set(body) <= {"message", "detail"}
    assert all(isinstance(value, str) and value for value in body.values())
    assert reply.headers["x-trace-id"] == reply.headers["x-request-id"]
    for word in words:
        assert word in body["message"]


async def test_a_form_with_several_texts(both: Served) -> None:
    """As curl and Mastodon send it: repeated texts, and a source language without a value."""
    body = "text=guten+morgen&text=Das+ist+ein+altes+Haus.&source_lang&target_lang=EN&tag_handling=html&unknown=1"
    headers = {"content-type": "application/x-www-form-urlencoded"}
    reply = await both.client.post("/v2/translate", content=body, headers=headers)
    assert reply.status_code == 200, reply.text
    assert [one["text"] for one in reply.json()["translations"]] == ["guten morgen", "Das ist ein altes Haus."]
    assert reply.headers["x-trace-id"] == reply.headers["x-request-id"]


async def test_json_ignores_what_it_does_not_know(both: Served) -> None:
    reply = await both.client.post("/v2/translate", json=TEXT | {"enable_beta_languages": 1, "split_sentences": 1})
    expected = {"detected_source_language": "DE", "text": "guten morgen", "billed_characters": 12}
    assert reply.json() == {"translations": [expected]}


async def test_the_model_type_is_named_where_one_was_asked_for(both: Served) -> None:
    reply = await both.client.post("/v2/translate", json=TEXT | {"model_type": "latency_optimized"})
    assert reply.json()["translations"][0]["model_type_used"] == "latency_optimized"


async def test_languages_of_a_query_and_of_a_form(both: Served) -> None:
    by_query = await both.client.get("/v2/languages", params={"type": "target"})
    by_form = await both.client.request("GET", "/v2/languages", data={"type": "target"})
    assert by_query.json() == by_form.json()
    assert [one["language"] for one in by_query.json()] == ["DE", "EN-GB", "EN-US"]
    assert (await both.client.get("/v2/languages")).json() == (
        await both.client.get("/v2/languages", params={"type": "source"})
    ).json()
    assert_deepl_error(await both.client.get("/v2/languages?type=both"), 400, "type", "both")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": None}, ("text",)),
        ({"text": []}, ("text", "at least 1")),
        ({"text": [1]}, ("text",)),
        ({"text": ["x"] * 101}, ("text: ", "at most 100", "101")),
        ({"target_lang": None}, ("target_lang",)),
        ({"target_lang": "!"}, ("target_lang", "language code")),
        ({"source_lang": "JA"}, ("'source_lang' not supported", "JA", "pairs served")),
        ({"source_lang": None, "target_lang": "JA"}, ("'target_lang' not supported", "JA", "pairs served")),
        ({"formality": "rude"}, ("formality",)),
        ({"tag_handling": "markdown"}, ("tag_handling",)),
        ({"tag_handling": "xml", "text": ["<a>x</b>"]}, ("XML",)),
        ({"glossary_id": "unknown"}, ("glossary_id", "no such glossary", "unknown")),
        ({"glossary_ids": ["a", "b"]}, ("no such glossary",)),
        ({"glossary_ids": list("abcdef")}, ("glossary_ids", "5")),
        ({"glossary_ids": ["a"], "glossary_id": "b"}, ("glossary_id", "glossary_ids")),
        ({"glossary_id": "x", "source_lang": None}, ("source_lang",)),
    ],
)
async def test_bad_requests(both: Served, changes: dict[str, Any], words: tuple[str, ...]) -> None:
    fields = {name: value for name, value in (TEXT | changes).items() if value is not None}
    assert_deepl_error(await both.client.post("/v2/translate", json=fields), 400, *words)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"formality": "MORE"}, ["formality=more: "]),
        ({"formality": "default", "context": "", "custom_instructions": []}, []),
        ({"context": "Why?", "style_id": "x", "custom_instructions": ["y"]}, ["context: ", "style_id: ", "custom_"]),
        ({"style": "business", "translation_memory_id": "x"}, ["style: ", "translation_memory_id: "]),
        ({"ignore_tags": ["x"]}, ["ignore_tags: "]),
        ({"source_lang": "EN"}, ["source_lang: is the language of target_lang"]),
        ({"source_lang": None, "text": ["Où se trouve la gare ?"]}, ["text.0: seems to be in fr, ", " in de"]),
    ],
)
async def test_what_has_no_effect_is_said(both: Served, changes: dict[str, Any], says: list[str]) -> None:
    fields = {name: value for name, value in (TEXT | changes).items() if value is not None}
    reply = await both.client.post("/v2/translate", json=fields)
    assert reply.status_code == 200, reply.text
    notice = reply.headers.get("x-tandem-notice", "")
    assert bool(notice) == bool(says) and all(part in notice for part in says), notice


async def test_languages_of_version_3(both: Served) -> None:
    found = (await both.client.get("/v3/languages", params={"resource": "translate_text"})).json()
    assert [(one["lang"], one["usable_as_source"], one["usable_as_target"]) for one in found] == [
        ("de", True, True), ("en", True, True), ("en-GB", False, True), ("en-US", False, True)
    ]  # fmt: skip
    assert set(found[0]["features"]) == {"tag_handling", "glossary", "auto_detection"}
    assert "auto_detection" not in found[2]["features"]
    assert (await both.client.get("/v3/languages", params={"resource": "voice"})).json() == []
    assert_deepl_error(await both.client.get("/v3/languages"), 400, "resource", "required")
    assert_deepl_error(await both.client.get("/v3/languages?product=translate_text"), 400, "renamed to 'resource'")
    assert_deepl_error(await both.client.get("/v3/languages?resource=bogus"), 400, "resource", "translate_text")
    resources = (await both.client.get("/v3/languages/resources")).json()
    assert [one["name"] for one in resources] == ["translate_text", "translate_document", "glossary"]
    assert {"name": "auto_detection", "needs_source_support": True} in resources[0]["features"]


async def test_a_large_body_needs_a_key_that_is_required(both_ways: dict[str, Bundle], tmp_path: Path) -> None:
    settings = Settings(shutdown_timeout=5, require_key=True, data=tmp_path, max_body_bytes=1024)
    async with served(both_ways, settings) as service:
        access: KeyedAccess = service.app.state.parts.access
        header = {"Authorization": f"DeepL-Auth-Key {access.keys.add('ada', CallerLimits()).secret}"}
        access.refresh()
        entries = "\n".join(f"Gleis {number}\ttrack" for number in range(200))
        fields = {"name": "Railway", "source_lang": "de", "target_lang": "en", "entries": entries}
        send = service.client.post
        assert_deepl_error(await send("/v2/glossaries", json=fields), 413, "1024 bytes")
        assert_deepl_error(await send("/v2/usage", json=fields, headers=header), 413, "1024 bytes")
        made = await send("/v2/glossaries", json=fields, headers=header)
        assert made.json()["entry_count"] == 200
        path = f"/v3/glossaries/{made.json()['glossary_id']}/dictionaries"
        assert (await service.client.put(path, json=fields, headers=header)).status_code == 200


async def test_dictionaries_come_as_a_form_with_numbers(both: Served) -> None:
    """As deepl-node writes them."""
    pairs = (("de", "en", "Gleis\ttrack"), ("en", "de", "track\tGleis"))
    names = ("source_lang", "target_lang", "entries")
    form = {"name": "Railway"}
    for number, pair in enumerate(pairs):
        form |= {f"dictionaries[{number}].{name}": value for name, value in zip(names, pair, strict=True)}
        form[f"dictionaries[{number}].entries_format"] = "tsv"
    made = await both.client.post("/v3/glossaries", data=form)
    assert made.status_code == 201, made.text
    found = [(one["source_lang"], one["target_lang"], one["entry_count"]) for one in made.json()["dictionaries"]]
    assert sorted(found) == [("de", "en", 1), ("en", "de", 1)]
    change = {f"dictionaries[3].{name}": value for name, value in zip(names, ("de", "en", "Zug\ttrain"), strict=True)}
    changed = await both.client.patch(f"/v3/glossaries/{made.json()['glossary_id']}", data=change)
    assert changed.status_code == 200, changed.text
    assert sum(one["entry_count"] for one in changed.json()["dictionaries"]) == 3
    bad = await both.client.post("/v3/glossaries", data={"name": "x", "dictionaries[0].source_lang": "de"})
    assert_deepl_error(bad, 400, "dictionaries.0.target_lang")


async def test_other_errors_have_the_shape_too(both: Served) -> None:
    send = both.client.request
    assert_deepl_error(await send("POST", "/v2/translate", content=b"{"), 400, "content type")
    assert_deepl_error(await send("GET", "/v2/nothing"), 404)
    assert_deepl_error(await send("PUT", "/v2/usage"), 405, "GET")
    assert_deepl_error(await send("GET", "/v2/glossaries/unknown"), 404, "no such glossary")
    assert_deepl_error(await send("DELETE", "/v3/glossaries/unknown"), 404, "no such glossary")
    assert_deepl_error(await send("GET", "/v3/glossaries/unknown/entries"), 400, "source_lang", "target_lang")
    assert_deepl_error(await send("POST", "/v2/translate", json={"text": "a" * 140_000}), 413, "131072 bytes")
    assert_deepl_error(
        await send("POST", "/v2/translate", json=TEXT | {"text": "a " * 15_000}), 413, "20000 characters"
    )


async def test_an_unserved_pair_has_no_glossary(both: Served) -> None:
    fields = {"name": "Railway", "source_lang": "de", "target_lang": "fr", "entries": "Gleis\tvoie"}
    assert_deepl_error(await both.client.post("/v2/glossaries", json=fields), 400, "de-fr", "de-en, en-de")
    fields |= {"target_lang": "en", "entries": "Gleis"}
    assert_deepl_error(await both.client.post("/v2/glossaries", data=fields), 400, "line 1")


async def test_a_glossary_of_another_pair_is_refused(both: Served) -> None:
    fields = {
        "name": "Railway",
        "source_lang": "de",
        "target_lang": "en",
        "entries": "Gleis,track",
        "entries_format": "csv",
    }
    made = (await both.client.post("/v2/glossaries", data=fields)).json()
    other = {"text": ["track"], "source_lang": "EN", "target_lang": "DE", "glossary_id": made["glossary_id"]}
    assert_deepl_error(await both.client.post("/v2/translate", json=other), 400, "no dictionary for en-de")


async def test_entries_are_tab_separated_text(both: Served) -> None:
    fields = {"name": "Railway", "source_lang": "de", "target_lang": "en", "entries": "Gleis\ttrack\nZug\ttrain\n"}
    made = await both.client.post("/v2/glossaries", json=fields)
    assert made.status_code == 201
    reply = await both.client.get(f"/v2/glossaries/{made.json()['glossary_id']}/entries")
    assert reply.headers["content-type"].startswith("text/tab-separated-values")
    assert reply.text == "Gleis\ttrack\nZug\ttrain"
    gone = await both.client.delete(f"/v2/glossaries/{made.json()['glossary_id']}")
    assert (gone.status_code, gone.content) == (204, b"") and gone.headers["x-trace-id"]


async def test_weblates_request(both: Served) -> None:
    """Weblate sends placeholders as empty elements, whose text is not to be translated."""
    text = 'wo ist <x id="7"></x> heute &amp; <x id="23"></x>'
    fields = TEXT | {
        "text": [text, "guten morgen"],
        "formality": "default",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
    }
    reply = await both.client.post("/v2/translate", json=fields)
    assert reply.status_code == 200, reply.text
    assert [one["text"] for one in reply.json()["translations"]] == [text, "guten morgen"]


async def test_sentences_are_split_as_asked(both: Served) -> None:
    text = "Guten morgen wie\ngeht es dir. Das haus ist gross."

    async def seen(**options: str) -> int:
        both.graphs.together.clear()
        reply = await both.client.post("/v2/translate", json=TEXT | {"text": [text], **options})
        assert reply.status_code == 200, reply.text
        return len(both.graphs.together)

    assert await seen() == await seen(split_sentences="1") == 3
    assert await seen(split_sentences="nonewlines") == 2
    assert await seen(split_sentences="0") == 1


async def test_the_deadline(both_ways: dict[str, Bundle]) -> None:
    async with served(both_ways, Settings(shutdown_timeout=5, deepl_timeout=0.2)) as service:
        service.graphs.gate.clear()
        try:
            reply = await service.client.post("/v2/translate", json=TEXT)
            assert_deepl_error(reply, 503, "deadline")
            ours = asyncio.ensure_future(service.translate("guten morgen"))
        finally:
            service.graphs.gate.set()
        assert (await ours).status_code == 200  # whose deadline is another


async def test_a_full_queue_and_a_server_that_stops(both_ways: dict[str, Bundle]) -> None:
    async with served(both_ways, max_queue_tokens=100) as service:
        service.graphs.gate.clear()
        try:
            waiting = [asyncio.ensure_future(service.translate("wo ist der bahnhof heute")) for _ in range(8)]
            await until(lambda: service.engine.dispatcher.queued_tokens > 50)
            refused = await service.client.post("/v2/translate", json=TEXT | {"text": ["das haus ist gross"] * 20})
            assert_deepl_error(refused, 529)
            assert int(refused.headers["retry-after"]) >= 1
        finally:
            service.graphs.gate.set()
        await asyncio.gather(*waiting)
        service.engine.dispatcher.close()
        stopping = await service.client.post("/v2/translate", json=TEXT)
        assert_deepl_error(stopping, 503)
        assert int(stopping.headers["retry-after"]) >= 1


async def test_keys_in_header_and_field(both_ways: dict[str, Bundle], tmp_path: Path) -> None:
    settings = Settings(shutdown_timeout=5, require_key=True, data=tmp_path)
    async with served(both_ways, settings) as service:
        access: KeyedAccess = service.app.state.parts.access
        key = access.keys.add("ada", CallerLimits(quota=40)).secret
        access.refresh()
        send = service.client.post
        header = {"Authorization": f"DeepL-Auth-Key {key}"}
        assert (await send("/v2/translate", json=TEXT, headers=header)).status_code == 200
        assert (await send("/v2/translate", data=TEXT | {"auth_key": key})).status_code == 200
        assert_deepl_error(await send("/v2/translate", json=TEXT), 403, "DeepL-Auth-Key")
        usage = (await service.client.get("/v2/usage", headers=header)).json()
        assert usage == {"character_count": 24, "character_limit": 40}
        refused = await send("/v2/translate", json=TEXT | {"glossary_id": "unknown"}, headers=header)
        assert_deepl_error(refused, 400)
        over = await send("/v2/translate", json=TEXT | {"text": ["guten morgen"] * 2}, headers=header)
        assert_deepl_error(over, 456)
        assert (await service.client.get("/v2/usage", headers=header)).json() == usage  # neither was charged for
        assert key not in over.text + refused.text


async def test_the_documents_examples_are_valid(both: Served) -> None:
    paths = (await both.client.get("/openapi.json")).json()["paths"]
    bodies = {"/v2/translate": 200, "/v2/glossaries": 201, "/v3/glossaries": 201}
    made: dict[str, Any] = {}
    for path, status in bodies.items():
        for example in paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"].values():
            reply = await both.client.post(path, json=example["value"])
            assert reply.status_code == status, reply.text
            made = reply.json()
    one = f"/v3/glossaries/{made['glossary_id']}"
    for method, path in (("patch", ""), ("put", "/dictionaries")):
        content = paths[f"/v3/glossaries/{{glossary_id}}{path}"][method]["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            reply = await both.client.request(method, one + path, json=example["value"])
            assert reply.status_code == 200, reply.text
    for path, operations in paths.items():
        for operation in operations.values() if path.startswith(("/v2/", "/v3/")) else ():
            failing = {status: one for status, one in operation["responses"].items() if int(status) >= 400}
            shapes = {one["content"]["application/json"]["schema"]["$ref"].split("/")[-1] for one in failing.values()}
            assert shapes == {"DeepLError"} and "403" in failing, path


@pytest.mark.parametrize("field", ["glossary_id", "auth_key", "source_lang", "formality", "tag_handling"])
async def test_null_is_a_field_that_is_not_set(both: Served, field: str) -> None:
    reply = await both.client.post("/v2/translate", json=TEXT | {field: None})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize(("field", "bound"), [("glossary_id", 200), ("auth_key", 512)])
async def test_names_that_are_too_long_are_refused(both: Served, field: str, bound: int) -> None:
    reply = await both.client.post("/v2/translate", json=TEXT | {field: "a" * (bound + 1)})
    assert_deepl_error(reply, 400, field, str(bound))
