"""Requests with markup and what else they may ask for: each finds the text within it, and leaves the tags."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tandem import Translator
from tandem.extras.markup.tests.test_html import elements, tags
from tandem.extras.markup.tests.test_html_requests import PAGE
from tandem.extras.reranking.tests.test_requests import Both, both
from tandem.service.app import create_app
from tandem.service.bundles.loading import build_engine
from tandem.service.settings import Settings
from tandem.service.text import protect
from tests.service.http.live import Live
from tests.service.support import Served, assert_error, running
from tests.service.translation.test_pipeline import TEXT, submissions
from tests.service.translation.test_pivot import Chain, chain, said
from tests.shipped import SHIPPED

__all__ = ["both", "chain", "submissions"]


@pytest.mark.anyio
async def test_markup_keeps_its_tags_and_what_is_protected(service: Served) -> None:
    html = "<p class=x>Wo ist <b>der Bahnhof</b> {n}?</p>\n<ul><li>das Haus<li><code>x = 1</code> ist gut</ul>"
    body = (await service.translate(html, source="auto", format="html", protect=["placeholders"])).json()
    assert body["translatedText"] == html
    assert body["detectedLanguage"]["language"] == "de"
    assert body["protected"] == [{"text": "{n}", "kept": True}]


@pytest.mark.anyio
async def test_terms_in_markup_are_enforced_and_details_count_the_text(service: Served) -> None:
    fields = {"format": "html", "glossary": {"Haus": "home"}, "details": True}
    body = (await service.translate("<p>das <i>Haus</i> ist alt.</p><p>das Haus.</p>", **fields)).json()
    text = body["translatedText"]
    assert text.count("home") == 2 and "Haus" not in text and text.count("<i>") == text.count("</i>") == 1
    spans = [(one["source"], one["target"]) for one in body["details"][0]["sentences"]]
    read, written = "das Haus ist alt.\ndas Haus.", "das home ist alt.\ndas home."
    assert [read[slice(*one.values())] for one, _ in spans] == read.split("\n")
    assert [written[slice(*one.values())] for _, one in spans] == written.split("\n")


@pytest.mark.anyio
async def test_code_in_markup_is_read_by_no_model(service: Served) -> None:
    markup = '<p>print("guten morgen")</p>'
    assert (await service.translate(markup, format="html")).json()["translatedText"] == markup
    assert service.read_texts == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "read"),
    [("<p>das <b>haus 🍕</b> ist</p>", ["das haus ist"]), ("<b>" + "a" * 150 + "</b>" + "a" * 150, [])],
)
async def test_what_no_model_reads_comes_back(service: Served, text: str, read: list[str]) -> None:
    reply = await service.translate(text, format="html", protect=["urls"])
    assert reply.json() == {"translatedText": text, "protected": []}
    decoded = [service.bundle.source_vocabularies[0].decode(ids) for ids in service.graphs.encoded]
    assert sorted(" ".join(re.sub("⟨ph[0-9]⟩", " ", seen).split()) for seen in decoded) == sorted(read)


@pytest.mark.anyio
async def test_expressions_that_take_too_long_are_refused(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = ["numbers", "regex:a.c"]
    monkeypatch.setattr(protect, "MAX_SECONDS", 0.0)
    reply = await service.translate("Abc 1 abc.", protect=entries, format="html")
    body = assert_error(reply, 422, "invalid_field")
    assert body["detail"][0]["field"] == "protect.1" and body["detail"][0]["value"] == "regex:a.c"


@pytest.mark.anyio
async def test_parts_that_are_kept_are_kept_in_what_a_model_back_chooses(both: Both) -> None:
    page = '<p>Das <b>Haus ist</b> alt. Wo <a href="/ist">ist der</a> Bahnhof?</p>'
    assert (await both.translate(page, format="html", rerank=True))["translatedText"] == page


@pytest.mark.anyio
@pytest.mark.parametrize("text", [[TEXT * 10, "das haus"], "das haus"])
async def test_markup_is_read_in_one_turn_and_written_in_another(
    service: Served, submissions: Callable[[Served], list[Any]], text: str | list[str]
) -> None:
    """However short it is: it may take long whatever its length."""
    noted = submissions(service)
    assert (await service.translate(text, format="html")).status_code == 200
    assert len(noted) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("haus", ["ha\u00adus", "ha\u200bus", "\u2060haus\u00ad"])
async def test_terms_are_found_with_soft_hyphens_in_them(service: Served, haus: str) -> None:
    text = f"<p>das {haus} ist {{x}} alt</p>"
    body = (await service.translate(text, glossary={"haus": "house"}, format="html")).json()
    assert "das house ist {x} alt" in body["translatedText"]
    assert body["glossary"] == [{"source": "haus", "target": "house", "found": True}]


@pytest.mark.anyio
async def test_markup_goes_through_a_third_language(chain: Chain) -> None:
    body = (await chain.translate(PAGE, format="html")).json()
    assert body["translatedText"].split() == said(PAGE).split() and body["via"] == "en"


@pytest.mark.anyio
async def test_the_shipped_model_translates_markup_between_french_and_german() -> None:
    page = "<p>Où est <a href='/g'>la gare</a>, {nom} ? J'ai un <b>petit chien</b> et un chat.</p>"
    fields = {"q": page, "source": "fr", "target": "de", "format": "html", "protect": ["placeholders"]}
    settings = Settings(bundles=(SHIPPED,), workers=1, shutdown_timeout=5)
    async with running(create_app(settings, build_engine(settings))) as client:
        there = await client.post("/translate", json=fields)
    translated = there.json()["translatedText"]
    assert there.json()["via"] == "en" and there.json()["protected"] == [{"text": "{nom}", "kept": True}]
    assert tags(translated) == tags(page) and elements(translated) == elements(page)
    for word in ("Bahnhof</a>", "Hund</b>", "Katze"):
        assert word in translated


def test_programs_translate_markup() -> None:
    with Translator(SHIPPED) as translator:
        page = translator.translate("<p>Das <b>Haus</b> ist alt.</p>", source="de", target="en", html=True).text
    assert page.startswith("<p>") and "<b>" in page


def mastodon(url: str, texts: list[str], source: str | None, key: str | None) -> httpx.Response:
    """Mastodon's request: JSON with all texts of a post as HTML, and a key that is null where none is set."""
    body = {"q": texts, "source": source or "auto", "target": "en", "format": "html", "api_key": key}
    return httpx.post(f"{url}/translate", content=json.dumps(body), headers={"Content-Type": "application/json"})


POST = [
    '<p>guten morgen <span class="h-card" translate="no"><a href="https://example.org/@ada" class="u-url mention">@'
    "<span>ada</span></a></span>, das <strong>haus</strong> ist gross<br>und alt</p><p>wie geht es dir?</p>",
    "Das ist ein altes Haus.",
]


@pytest.mark.parametrize("source", ["de", None])
def test_mastodon(server: Live, source: str | None) -> None:
    reply = mastodon(server.url, POST, source, None)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert found["translatedText"] == POST
    if source is None:
        assert [one["language"] for one in found["detectedLanguage"]] == ["de", "de"]
        assert all(0 <= one["confidence"] <= 100 for one in found["detectedLanguage"])
    assert set(found) == {"translatedText"} | ({"detectedLanguage"} if source is None else set())
