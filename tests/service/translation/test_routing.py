"""Each text of a request goes its own way: its language is detected by itself, and its bundle decodes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tandem.models.bundle import Bundle
from tests.service.support import Served, assert_error, served, tiny_bundle

pytestmark = pytest.mark.anyio
GERMAN, FRENCH = "Wo ist denn heute der Bahnhof geblieben?", "Bonjour, où est la gare aujourd'hui ?"
ENGLISH = "Where is the train station of this town?"


@pytest.fixture(scope="module")
def two_pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder: Path = tmp_path_factory.mktemp("pairs")
    return {
        "de-en": tiny_bundle(folder, "de-en"),
        "fr-en": tiny_bundle(folder, "fr-en", source_languages=("fr",)),
        "en-de": tiny_bundle(folder, "en-de", source_languages=("en",), target_language="de"),
    }


@pytest.fixture
async def service(two_pairs: dict[str, Bundle]) -> AsyncIterator[Served]:
    async with served(two_pairs) as running:
        yield running


async def test_texts_of_one_request_go_to_different_bundles_and_keep_their_order(service: Served) -> None:
    texts = [FRENCH, GERMAN, "😀", FRENCH + " " + FRENCH, ENGLISH]
    body = (await service.translate(texts, source="auto", details=True, alternatives=1)).json()
    assert body["translatedText"] == texts
    assert [one["language"] for one in body["detectedLanguage"]][:2] == ["fr", "de"]
    assert body["detectedLanguage"][4]["language"] == "en"
    assert body["detectedLanguage"][2]["confidence"] == 0
    assert body["model"] == "fr-en, de-en"
    assert [len(one["sentences"]) for one in body["details"]] == [1, 1, 0, 2, 0]
    assert len(service.graphs.encoded) == 1, "the German bundle read the German text alone"
    assert [len(one) for one in body["alternatives"]] == [1, 1, 0, 1, 0]  # none where nothing is decoded


async def test_one_text_has_one_language_and_a_named_source_none(service: Served) -> None:
    body = (await service.client.post("/translate", json={"q": GERMAN, "target": "en"})).json()
    assert body["translatedText"] == GERMAN
    assert body["detectedLanguage"]["language"] == "de" and 50 < body["detectedLanguage"]["confidence"] <= 100
    assert "detectedLanguage" not in (await service.translate(GERMAN)).json()


async def test_a_text_in_the_target_language_comes_back_unread(service: Served) -> None:
    body = (await service.translate(ENGLISH, source="auto", target="en-GB", protect=["urls"])).json()
    assert (body["translatedText"], body["protected"]) == (ENGLISH, [])
    assert service.graphs.encoded == []


@pytest.mark.parametrize(("text", "target"), [("Danke", "de"), ("Bis morgen", "de"), ("Log in now", "en")])
async def test_a_short_text_in_the_target_language_comes_back_unread(text: str, target: str, service: Served) -> None:
    body = (await service.translate(text, source="auto", target=target)).json()
    assert (body["translatedText"], body["detectedLanguage"]["language"]) == (text, target)
    assert service.graphs.encoded == []


@pytest.mark.parametrize("text", ["", "  \n", "😀 🎉", "123", "👨‍👩‍👧"])
async def test_nothing_to_translate_comes_back_with_a_language_of_no_confidence(service: Served, text: str) -> None:
    body = (await service.translate(text, source="auto", glossary={"a": "b"}, protect=["numbers"])).json()
    assert body["translatedText"] == text
    assert body["detectedLanguage"] == {"language": "de", "confidence": 0.0}


async def test_a_language_that_is_not_served_is_named_with_its_text(service: Served) -> None:
    texts = [GERMAN, "Bu sabah istasyona gittim ama trenin saati çoktan değişmişti, çok üzüldüm."]
    body = assert_error(await service.translate(texts, source="auto"), 404, "language_not_served")
    assert body["error"].startswith("q.1: seems to be in 'tr', and ") and "de-en" in body["error"]
    assert body["detail"]["pairs"]


async def test_a_guess_that_is_not_sure_refuses_no_text(service: Served) -> None:
    """Few words say little: these seem to be Danish, Norwegian, Malay and Latin; the last may be English too."""
    texts = ["jpg file", "toggle sidebar", "kebab menu", "unsubscribe"]
    body = (await service.translate(texts, source="auto")).json()
    assert body["translatedText"] == texts
    languages = [one["language"] for one in body["detectedLanguage"]]
    assert set(languages[:3]) <= {"de", "fr", "en"} and languages[3] == "en"
    assert all(one["confidence"] < 50 for one in body["detectedLanguage"])


@pytest.mark.parametrize("target", ["fr", "tr"])
async def test_a_target_that_is_not_served_is_named_and_not_the_text(service: Served, target: str) -> None:
    response = await service.translate(ENGLISH, source="auto", target=target)
    assert response.status_code == 404
    assert response.json()["error"].startswith(f"nothing is translated into '{target}' here; pairs served: ")
    assert response.json()["code"] in ("pair_not_served", "language_not_served")


async def test_a_model_that_is_named_translates_what_it_knows(service: Served) -> None:
    body = (await service.translate(FRENCH, source="auto", model="fr-en", details=True)).json()
    assert (body["model"], body["detectedLanguage"]["language"]) == ("fr-en", "fr")
    assert_error(await service.translate(FRENCH, source="auto", model="none"), 404, "model_not_found")


async def test_a_bad_text_names_its_place_in_the_request(service: Served) -> None:
    """Also where it is the first one that its bundle reads."""
    fields = {"protect": ["regex:("], "source": "auto"}
    body = assert_error(await service.translate([GERMAN, FRENCH], **fields), 422, "invalid_field")
    assert body["detail"][0]["field"] == "protect.0"


async def test_markup_in_several_languages_is_refused(many_sources: dict[str, Bundle]) -> None:
    others = {"fr": "la maison", "cs": "dům"}
    async with served(many_sources) as service:
        response = await service.translate("das Haus", others=others, format="html")
    body = assert_error(response, 422, "invalid_field")
    assert body["detail"][0]["field"] == "format"


async def test_markup_is_refused_where_no_extra_reads_it(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.service.translation.texts.markup_reader", lambda: None)
    body = assert_error(await service.translate("<p>das Haus</p>", format="html"), 422, "invalid_field")
    assert body["detail"][0]["field"] == "format" and body["detail"][0]["value"] == "html"
    monkeypatch.setattr("tandem.service.translation.units.markup_reader", lambda: None)
    assert (await service.translate("das <b>Haus</b> ist alt")).json()["translatedText"] == "das <b>Haus</b> ist alt"
