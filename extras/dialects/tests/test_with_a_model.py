"""The clients with a trained model, where there is one: what they get is German turned into English."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import deepl
import httpx
import pytest
from libretranslatepy import LibreTranslateAPI  # type: ignore[import-untyped]

from tandem.service.bundles.loading import build_engine
from tandem.service.settings import Settings
from tests.service.http.live import Live, live
from tests.shipped import SHIPPED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SHIPPED / "manifest.json").exists(), reason="no trained model in bundles/de-fr-en"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    settings = Settings(bundles=(SHIPPED,), workers=1, shutdown_timeout=5)
    with live(settings, build_engine(settings)) as running:
        yield running


@pytest.fixture
def client(server: Live) -> Iterator[deepl.DeepLClient]:
    with closing(deepl.DeepLClient("any", server_url=server.url)) as found:
        yield found


def test_deepls_client(client: deepl.DeepLClient) -> None:
    texts = ["Zwei Hunde spielen im Schnee.", "Ein Mann liest ein Buch.\n\nEine Frau kocht."]
    found = client.translate_text(texts, target_lang="EN-US")
    assert isinstance(found, list)
    assert [one.detected_source_lang for one in found] == ["DE", "DE"]
    assert "dogs" in found[0].text and "snow" in found[0].text
    assert "book" in found[1].text and "\n\n" in found[1].text


def test_deepls_client_with_markup_and_glossary(client: deepl.DeepLClient) -> None:
    made = client.create_glossary("Animals", "DE", "EN", {"Hunde": "hounds"})
    html = '<p>Zwei <b class="x">Hunde</b> spielen im <a href="https://example.org/a?b=1&amp;c=2">Schnee</a>.</p>'
    options = {"source_lang": "DE", "target_lang": "EN-GB", "tag_handling": "html", "glossary": made}
    found = str(client.translate_text(html, **options))  # type: ignore[arg-type]
    assert '<b class="x">' in found and '<a href="https://example.org/a?b=1&amp;c=2">' in found
    assert found.startswith("<p>") and found.endswith("</p>")
    assert "hounds" in found and "snow" in found and "Hunde" not in found
    client.delete_glossary(made)


def test_libretranslates_client(server: Live) -> None:
    client = LibreTranslateAPI(server.url)
    assert "dogs" in client.translate("Zwei Hunde spielen im Schnee.", "auto", "en")
    assert client.detect("Zwei Hunde spielen im Schnee.")[0]["language"] == "de"


def test_mastodons_request(server: Live) -> None:
    tag = '<a href="https://example.org/tags/Schnee" rel="tag">#<span>Schnee</span></a>'
    post = f"<p>Zwei Hunde spielen im Schnee. {tag}</p>"
    body = {"q": [post], "source": "de", "target": "en", "format": "html", "api_key": None}
    (found,) = httpx.post(f"{server.url}/translate", json=body, timeout=30).json()["translatedText"]
    assert "dogs" in found and '<a href="https://example.org/tags/Schnee" rel="tag">' in found
    assert found.count("<span>") == found.count("</span>") == 1 and found.endswith("</p>")
