"""``POST /translate`` with ``format: html``, with a model that copies and with the shipped one."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from tandem.extras.markup.tests.test_html import SOUP, elements, is_nested, tags, tidy
from tandem.models.bundle import Bundle
from tandem.service.app import create_app
from tandem.service.bundles.loading import build_engine
from tandem.service.settings import Settings
from tests.service.support import Served, assert_error, running, served
from tests.shipped import SHIPPED

pytestmark = pytest.mark.anyio

PAGE = """<!DOCTYPE html>
<html lang="de"><head><meta charset="utf-8"><title>Wo ist der Bahnhof?</title>
<style>p > b { color: red }</style><script>if (1 < 2) document.write("<p>Hallo</p>");</script></head>
<body class='x'><!-- Kopf -->
<h1>Das <em>alte</em> Haus</h1>
<p>Ich habe <b>einen <i>roten</i> Hund</b> und <a href="/katze?a=1&amp;b=2" title="Die Katze">eine Katze</a>.
   Tom &amp; Maria wohnen hier.<br>Es ist <span translate="no">Tandem</span>.</p>
<ul><li>Guten Morgen!<li>Ich mag <strong>Bücher</strong>, <img src=a.png alt="Bild"> und Musik.</ul>
<pre>  Nicht   übersetzen </pre><p>Ich habe &lt;script&gt;alert(1)&lt;/script&gt; gelesen.</p>
</body></html>
"""


async def test_html_of_a_model_that_copies_comes_back_as_it_was(service: Served) -> None:
    response = await service.translate(PAGE, format="html")
    assert response.status_code == 200, response.text
    assert response.json() == {"translatedText": PAGE}
    texts = ["<p>Wo <b>ist</b></p>", "", "<br>", "nur Text", "a\r\n<b>b", "<b> <code> alt</code><code>Haus</code> </b>"]
    texts.append("Haus <em>3 alt <code>rot</code><code>rot</code></em> Haus")  # one placeholder, twice
    assert (await service.translate(texts, format="html")).json() == {"translatedText": texts}


@pytest.mark.parametrize("way", ["json", "form"])
async def test_mastodons_and_weblates_requests_are_read(service: Served, way: str) -> None:
    fields = {"q": "<p>Das <b>Haus</b></p>", "source": "de", "target": "en", "format": "html"}
    data = {"data": fields} if way == "form" else {"json": fields}
    response = await service.client.post("/translate", **data)  # type: ignore[arg-type]
    assert response.json() == {"translatedText": fields["q"]}


async def test_any_markup_comes_back_from_a_model_that_copies(bundles: dict[str, Bundle]) -> None:
    drawn: list[str] = []

    @hypothesis_settings(max_examples=40, database=None, suppress_health_check=list(HealthCheck), deadline=None)
    @given(SOUP | tidy())
    def draw(text: str) -> None:
        drawn.append(text.replace("\0", ""))  # control characters of a text are dropped (models/text.py)

    draw()
    async with served(bundles, Settings(max_texts=100, shutdown_timeout=5)) as service:
        body = (await service.translate(drawn, format="html")).json()
    assert body["translatedText"] == drawn


async def test_paragraphs_without_end_tags_are_translated_one_by_one(service: Served) -> None:
    text = "<p>Hallo Welt\n" * 300
    body = (await service.translate(text, format="html", details=True)).json()
    assert body["translatedText"] == text
    assert len(body["details"][0]["sentences"]) == 300


async def test_texts_of_markup_are_split_in_sentences_block_by_block(service: Served) -> None:
    text = "<p>Guten Morgen. Wie <b>geht</b> es?</p><p>das\n haus</p>"
    body = (await service.translate(text, format="html", details=True)).json()
    (detail,) = body["details"]
    assert len(detail["sentences"]) == 3
    plain = "Guten Morgen. Wie geht es?\ndas haus"
    found = [plain[one["source"]["start"] : one["source"]["end"]] for one in detail["sentences"]]
    assert found == ["Guten Morgen.", "Wie geht es?", "das haus"]


async def test_the_language_of_markup_is_that_of_its_text(service: Served) -> None:
    text = "<div class='the house is very old and beautiful'>Das Haus ist gross und sehr alt.</div>"
    body = (await service.translate(text, format="html", source="auto")).json()
    assert body["detectedLanguage"]["language"] == "de"
    assert body["translatedText"] == text


async def test_too_much_markup_is_refused_by_name(bundles: dict[str, Bundle]) -> None:
    async with served(bundles, Settings(max_markup_depth=5, max_markup_elements=9, shutdown_timeout=5)) as service:
        deep = assert_error(await service.translate("<b>" * 6 + "x", format="html"), 422, "invalid_field")
        assert deep["detail"][0]["field"] == "q"
        assert deep["detail"][0]["value"] == 6
        assert "at most 5" in deep["error"]
        many = await service.translate(["x", "<b>x</b>" * 10], format="html")
        assert assert_error(many, 422, "invalid_field")["detail"][0]["field"] == "q.1"
        assert (await service.translate("<b>" * 6 + "x")).status_code == 200


async def test_a_small_page_keeps_its_markup_with_the_shipped_model() -> None:
    """Every tag once, well nested, nothing invented, and what is not text as it was."""
    folder = SHIPPED
    settings = Settings(bundles=(folder,), workers=1, shutdown_timeout=5)
    async with running(create_app(settings, build_engine(settings))) as client:
        fields = {"q": PAGE, "source": "de", "target": "en", "format": "html", "alternatives": 1, "beam_size": 3}
        response = await client.post("/translate", json=fields)
        body = response.json()
        for page in (body["translatedText"], *body["alternatives"]):
            assert tags(page) == tags(PAGE)
            assert elements(page) == elements(PAGE)
            assert is_nested(re.sub(r"<li>|<meta[^>]*>", "", page))
            for same in ('<span translate="no">Tandem</span>', "<pre>  Nicht   übersetzen </pre>", "<!-- Kopf -->"):
                assert same in page
            assert page.count("<script>") == 1
        best = body["translatedText"]
        assert "station?</title>" in best
        assert re.search(r"<b>[^<]*<i>red</i> dog</b>", best), best
        assert re.search(r'">[^<]*cat</a>', best), best
        assert re.search(r"<strong>books</strong>", best, re.IGNORECASE), best
