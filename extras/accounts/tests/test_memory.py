"""The translation memory of a key: corrections, the answers that come from it, and nobody else's."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tandem.extras.accounts.memory import _SCHEMA, Correction, TranslationMemory
from tandem.extras.accounts.settings import AccountSettings
from tandem.extras.accounts.tests.guarded import bearer, make_key
from tandem.models.bundle import Bundle
from tandem.service.errors import InvalidOption
from tandem.service.settings import Settings
from tests.service.support import Served, assert_error, served

pytestmark = pytest.mark.anyio
HOUSE = {"q": "das haus ist gross", "s": "The house is big.", "source": "de", "target": "en"}


async def translated(service: Served, secret: str, text: str = HOUSE["q"], **fields: Any) -> Any:
    body = {"q": text, "source": "de", "target": "en", **fields}
    reply = await service.client.post("/translate", json=body, headers=bearer(secret))
    assert reply.status_code == 200, reply.text
    return reply.json()


async def suggest(service: Served, secret: str, **fields: str) -> None:
    reply = await service.client.post("/suggest", json=HOUSE | fields, headers=bearer(secret))
    assert (reply.status_code, reply.json()) == (200, {"success": True}), reply.text


async def test_exact_matches_are_answered_and_marked(service: Served) -> None:
    """Of two sentences the one that is known is taken from the memory; the other one is decoded, by itself."""
    key = make_key(service)
    await suggest(service, key)
    service.graphs.together.clear()
    reply = await translated(service, key, "  - das haus ist gross\nguten morgen", details=True)
    assert reply["translatedText"] == "  - The house is big.\nguten morgen"
    known, decoded = reply["details"][0]["sentences"]
    assert (known["match"], known["tokens"], "score" in known) == (100, [], False)
    assert known["source"] == {"start": 4, "end": 22} and known["target"] == {"start": 4, "end": 21}
    assert "match" not in decoded and decoded["score"] <= 0
    assert len(service.graphs.together) == 1
    await suggest(service, key, s="It is a big house.")  # of a sentence the last correction counts
    assert (await translated(service, key, alternatives=1)) == {
        "translatedText": "It is a big house.",
        "alternatives": [],  # they differ, and there is no other one
    }


async def test_never_across_keys(service: Served) -> None:
    mine, other = make_key(service, "mine"), make_key(service, "other")
    assert (await translated(service, other))["translatedText"] == HOUSE["q"]  # and now in the cache of decoded ones
    await suggest(service, mine)
    assert (await translated(service, mine))["translatedText"] == HOUSE["s"]
    assert (await translated(service, other))["translatedText"] == HOUSE["q"]
    (entry,) = (await service.client.get("/memory", headers=bearer(mine))).json()["entries"]
    assert (await service.client.get("/memory", headers=bearer(other))).json() == {"entries": [], "total": 0}
    assert HOUSE["s"] not in (await service.client.get("/memory.tmx", headers=bearer(other))).text
    path = f"/memory/{entry['id']}"
    assert_error(await service.client.delete(path, headers=bearer(other)), 404, "memory_entry_not_found")
    assert (await service.client.delete(path, headers=bearer(mine))).status_code == 204
    assert (await translated(service, mine))["translatedText"] == HOUSE["q"]


async def test_translations_go_on_without_a_memory_that_cannot_be_read(service: Served, tmp_path: Path) -> None:
    key = make_key(service)
    await suggest(service, key)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as other:
        other.execute("ALTER TABLE entry RENAME TO lost")
        with capture_logs() as logs:
            for _ in range(2):  # the second time it is not asked
                assert (await translated(service, key))["translatedText"] == HOUSE["q"]
        assert [line["event"] for line in logs if line["log_level"] == "error"] == ["memory_not_readable"]
        for method, path in (("POST", "/suggest"), ("GET", "/memory")):
            fields = HOUSE if method == "POST" else None
            reply = await service.client.request(method, path, json=fields, headers=bearer(key))
            assert_error(reply, 503, "storage_unavailable")
        assert "tandem_memory_failures_total 2.0" in (await service.client.get("/metrics")).text
        other.execute("ALTER TABLE lost RENAME TO entry")
    service.app.state.parts.memory._out_until = 0.0  # the pause is over
    assert (await translated(service, key))["translatedText"] == HOUSE["s"]


async def test_chats_are_answered_from_it_too(service: Served) -> None:
    mine, other = make_key(service, "mine"), make_key(service, "other")
    await suggest(service, mine)
    text = f"guten morgen\n{HOUSE['q']}"
    for key, expected in ((mine, f"guten morgen\n{HOUSE['s']}"), (other, text)):
        chat = {"model": "translate-de-en", "messages": [{"role": "user", "content": text}]}
        reply = await service.client.post("/v1/chat/completions", json=chat, headers=bearer(key))
        assert reply.json()["choices"][0]["message"]["content"] == expected
        streamed = await service.client.post("/v1/chat/completions", json=chat | {"stream": True}, headers=bearer(key))
        chunks = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
        assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == expected


@pytest.mark.parametrize(
    ("fields", "text", "expected"),
    [
        ({"memory": False}, HOUSE["q"], HOUSE["q"]),
        ({"glossary": {"haus": "house"}}, HOUSE["q"], "das house ist gross"),
        ({"prefix": "das"}, HOUSE["q"], HOUSE["q"]),
        ({"sampling": {"top_k": 1}}, HOUSE["q"], HOUSE["q"]),
        ({"format": "html"}, f"<p>{HOUSE['q']}</p>", f"<p>{HOUSE['s']}</p>"),
        ({"format": "html"}, "<p>das <b>haus</b> ist gross</p>", "<p>das <b>haus</b> ist gross</p>"),
        ({}, "Das Haus ist gross", "Das Haus ist gross"),
        ({}, "guten tag. wie geht es?", "Good day. How are you?"),
        ({}, "schreibe an a@b.de", "Write to a@b.de"),
        ({"protect": ["emails"]}, "schreibe an a@b.de", "schreibe an a@b.de"),
    ],
    ids=["off", "glossary", "prefix", "sampling", "block", "inline", "case", "sentences", "address", "protected"],
)
async def test_where_it_holds(service: Served, fields: dict[str, Any], text: str, expected: str) -> None:
    key = make_key(service)
    await suggest(service, key)
    await suggest(service, key, q="guten tag. wie geht es?", s="Good day. How are you?")
    await suggest(service, key, q="schreibe an a@b.de", s="Write to a@b.de")
    assert (await translated(service, key, text, **fields))["translatedText"] == expected


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Der Bahn\u00adhof ist neu."),
        ({}, "Der Bahn\u200bhof ist\u200e neu."),
        ({}, "Der Bahnhof\u00a0ist  neu."),
        ({"format": "html"}, "<p>Der Bahn&shy;hof ist neu.</p>"),
    ],
    ids=["hyphen", "zero-width", "space", "html"],
)
async def test_sentences_are_compared_as_models_read_them(service: Served, fields: dict[str, Any], text: str) -> None:
    """Whichever of them, the stored one or the one that is asked for, has the signs that nobody reads."""
    known, other = make_key(service, "known"), make_key(service, "other")
    plain, translation = "Der Bahnhof ist neu.", "The sta\u00adtion is new."
    wrapped = f"<p>{translation}</p>" if fields else translation
    await suggest(service, known, q=plain, s=translation)
    assert (await translated(service, known, text, **fields))["translatedText"].replace("&shy;", "\u00ad") == wrapped
    if not fields:
        await suggest(service, other, q=text, s=translation)
        assert (await translated(service, other, plain))["translatedText"] == translation
        (entry,) = (await service.client.get("/memory", headers=bearer(other))).json()["entries"]
        assert (entry["text"], entry["translation"]) == (plain, translation)


async def test_units_that_no_entry_comes_of_are_counted(service: Served) -> None:
    key = make_key(service)

    def unit(*variants: tuple[str, str]) -> str:
        written = (f"<tuv xml:lang='{code}'><seg>{text}</seg></tuv>" for code, text in variants)
        return f"<tu>{''.join(written)}</tu>"

    units = [
        unit(("de", "haus"), ("en", "house")),
        unit(("de-AT", "Bahn\u00adhof"), ("en", "railway station")),
        unit(("de", "Bahnhof"), ("en", "station")),
        unit(("de", "eins")),
        unit(("en", "two")),
        unit(("de", "drei"), ("*all*", "three")),
        unit(("de", "vier"), ("x" * 300, "four")),
        unit(("de", "fünf"), ("zz", "five")),
        unit(("de", "sechs"), ("en", "")),
        unit(("de", "sieben"), ("fr", "sept")),
    ]

    async def add(text: str, asked: str = "") -> Any:
        tmx = f'<tmx version="1.4"><header srclang="de"/>{text}</tmx>'
        return await service.client.post(f"/memory.tmx{asked}", content=tmx.encode(), headers=bearer(key))

    reply = await add(f"<body>{''.join(units)}</body>")
    assert reply.json() == {"stored": 3, "replaced": 0, "repeated": 1, "skipped": 6}
    reply = await add(f"<body>{''.join(units)}</body>", "?source=de&target=en")
    assert reply.json() == {"stored": 2, "replaced": 2, "repeated": 1, "skipped": 7}
    assert (await add("<body/>")).json() == {"stored": 0, "replaced": 0, "repeated": 0, "skipped": 0}
    assert "has no <body>" in assert_error(await add("".join(units)), 400, "bad_request")["error"]


async def test_languages_that_nothing_could_know_are_refused(service: Served) -> None:
    """French is not served here, but may be some day."""
    key = make_key(service)
    await suggest(service, key, target="fr")
    for fields in ({"target": "zz"}, {"source": "zz-AT"}):
        reply = await service.client.post("/suggest", json=HOUSE | fields, headers=bearer(key))
        error = assert_error(reply, 404, "language_not_served")
        assert "does not know the language 'zz'" in error["error"] and error["detail"] == {"served": ["de", "en"]}
    Correction.of("de", "zz", "haus", "house").check_languages(["zz-Latn"])


def test_entries_of_before_are_found_as_texts_are_compared_now(tmp_path: Path) -> None:
    """They were kept as they were sent; of two that become one the newer translation holds."""
    rows = [
        ("Der Bahn\u00adhof.", "raw, alone", 1.0),
        ("Das  Haus.", "raw, older", 1.0),
        ("Das Haus.", "plain, newer", 2.0),
        ("Ein\u00a0Hund.", "raw, newer", 2.0),
        ("Ein Hund.", "plain, older", 1.0),
        ("Eine\u00a0Katze.", "raw, newer", 4.0),
        ("Eine  Katze.", "raw, older", 3.0),
    ]
    with closing(sqlite3.connect(tmp_path / "memory.db")) as old:
        old.executescript(_SCHEMA)
        for number, (text, translation, changed) in enumerate(rows):
            old.execute(
                "INSERT INTO entry VALUES (?, 'web', 'de', 'en', ?, ?, ?)", (number, text, translation, changed)
            )
        old.execute("PRAGMA user_version = 1")
        old.commit()
    asked = ["Der Bahnhof.", "Das Haus.", "Ein Hund.", "Eine Katze.", "Ein\u00a0Hund."]
    told = ["raw, alone", "plain, newer", "raw, newer", "raw, newer", "raw, newer"]
    for _ in range(2):
        with closing(TranslationMemory(Settings(data=tmp_path))) as memory:
            assert memory.find("web", "de", "en", asked) == dict(zip(asked, told, strict=True))
            assert memory.count("web") == 4


async def test_tmx_out_and_in(service: Served) -> None:
    mine, other = make_key(service, "mine"), make_key(service, "other")
    await suggest(service, mine, q="was ist <das> & jenes?", s='"a" < b')
    await suggest(service, mine, source="de-AT")
    tmx = await service.client.get("/memory.tmx?source=de&target=en-GB", headers=bearer(mine))
    assert tmx.headers["content-type"].startswith("application/x-tmx+xml")
    reply = await service.client.post("/memory.tmx", content=tmx.content, headers=bearer(other))
    assert reply.json() == {"stored": 2, "replaced": 0, "repeated": 0, "skipped": 0}
    units = "".join(re.findall("<tu .*?</tu>", tmx.text)[:1] * 2) + "</body>"
    again = tmx.text.replace("</body>", units)
    reply = await service.client.post("/memory.tmx?source=de", content=again.encode(), headers=bearer(other))
    assert reply.json() == {"stored": 2, "replaced": 2, "repeated": 2, "skipped": 0}
    entries = [
        (await service.client.get("/memory?target=en&limit=1&offset=1", headers=bearer(key))).json()
        for key in (mine, other)
    ]
    for page in entries:
        assert page["total"] == 2 and len(page["entries"]) == 1
    assert {(await translated(service, other))["translatedText"]} == {HOUSE["s"]}
    assert (await service.client.get("/memory?source=fr", headers=bearer(mine))).json()["total"] == 0
    bad = await service.client.post("/memory.tmx", content=b"<tmx><body><tu>", headers=bearer(other))
    assert_error(bad, 400, "bad_request")


async def test_bounds(bundles: dict[str, Bundle], service: Served) -> None:
    key = make_key(service)
    service.app.state.parts.memory._own = AccountSettings(max_memory_entries=1, max_memory_characters=40)
    await suggest(service, key)
    for fields in ({"q": "guten tag"}, {"s": "x" * 40}):
        reply = await service.client.post("/suggest", json=HOUSE | fields, headers=bearer(key))
        assert assert_error(reply, 400, "memory_limit")["detail"]["bound"] in (1, 40)
    assert (await translated(service, key))["translatedText"] == HOUSE["s"]
    for fields in ({"s": "!"}, {"s": "x" * 5001}, {"target": "de"}, {"source": "?"}, {"target": "auto"}):
        reply = await service.client.post("/suggest", json=HOUSE | fields, headers=bearer(key))
        assert_error(reply, 422, "invalid_field")


async def test_without_a_key(bundles: dict[str, Bundle]) -> None:
    async with served(bundles) as service:
        assert_error(await service.client.post("/suggest", json=HOUSE), 403, "key_needed")
        for method, path in (("GET", "/memory"), ("GET", "/memory.tmx"), ("POST", "/memory.tmx")):
            assert_error(await service.client.request(method, path), 403, "key_needed")


def test_what_is_too_long_is_not_even_composed() -> None:
    """A unit of a TMX may repeat a long text for each of its translations."""
    with pytest.raises(InvalidOption, match="q: must have 1 to 5000 characters"):
        Correction.of("de", "en", "a" + "\0" * 30_000, "b")
