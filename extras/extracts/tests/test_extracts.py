"""Summaries without a model: where they are given, and that they are the text's own sentences."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tandem import Translator
from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.support import Served, assert_error, served, tiny_bundle
from tests.shipped import BUNDLES

pytestmark = pytest.mark.anyio

MAIL = """Hi Anna,
thanks for your message. The new printers are delayed by two weeks, because the supplier of the printers has a shortage
of parts. We now expect the printers on 14 March.

- The branch offices keep their old printers until then.
- Offices that cannot be reached let us know by Friday

Best regards
Tom"""
DELAY = "The new printers are delayed by two weeks, because the supplier of the printers has a shortage of parts."
GERMAN = (
    "Der Gemeinderat hat gestern beschlossen, das alte Freibad zu erneuern. Die Arbeiten am Freibad beginnen im Mai."
)


@pytest.fixture(scope="module")
def titles(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A model of English titles whose vocabulary has every letter of ordinary text as a piece of its own."""
    return tiny_bundle(tmp_path_factory.mktemp("titles"), "titles", task="summarize", source_languages=("en",))


@pytest.fixture
async def choosy(titles: Bundle) -> AsyncIterator[Served]:
    """It was trained on text of which a token is ten characters."""
    bundle = replace(titles, manifest=replace(titles.manifest, characters_per_token=10.0))
    async with served({"titles": bundle}, first="titles") as service:
        yield service


async def summarize(service: Served, **fields: object) -> dict[str, Any]:
    response = await service.client.post("/summarize", json=fields)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_a_text_that_the_model_was_not_made_for_is_answered_with_its_own_sentences(choosy: Served) -> None:
    body = await summarize(choosy, q=MAIL)
    assert body["method"] == "extract" and body["truncated"] is False and "model" not in body
    assert DELAY in body["summary"]
    assert not any(greeting in body["summary"] for greeting in ("Hi Anna", "Best regards", "Tom"))
    assert not choosy.graphs.encoded


async def test_a_bundle_that_was_not_measured_summarizes_all(titles: Bundle) -> None:
    async with served({"titles": titles}, first="titles") as service:
        assert (await summarize(service, q=MAIL))["method"] == "model"


@pytest.mark.parametrize("fields", [{"method": "model"}, {"model": "titles"}], ids=str)
async def test_a_model_that_is_asked_for_answers(choosy: Served, fields: dict[str, str]) -> None:
    body = await summarize(choosy, q=MAIL, **fields)
    assert (body["method"], body["model"]) == ("model", "titles")


async def test_texts_in_languages_that_no_model_summarizes_are_extracted(choosy: Served) -> None:
    body = await summarize(choosy, q=[GERMAN, MAIL], sentences=1)
    assert body["method"] == ["extract", "extract"]
    assert body["summary"] == [GERMAN.split(". ")[0] + ".", DELAY]
    assert (await summarize(choosy, q=GERMAN, language="de", sentences=9))["summary"] == GERMAN
    assert_error(await choosy.client.post("/summarize", json={"q": GERMAN, "method": "model"}), 422, "invalid_field")


async def test_without_any_summarizer_texts_are_extracted_and_a_model_is_missing(bundles: dict[str, Bundle]) -> None:
    async with served({"de-en": bundles["de-en"]}, Settings(shutdown_timeout=5)) as service:
        assert (await summarize(service, q=MAIL, sentences=1))["summary"] == DELAY
        response = await service.client.post("/summarize", json={"q": MAIL, "method": "model"})
        assert_error(response, 404, "model_not_found")


async def test_details_say_where_the_sentences_stand(choosy: Served) -> None:
    body = await summarize(choosy, q=MAIL, details=True, sentences=2)
    (text,) = body["details"]
    assert len(text["sentences"]) == 2
    for sentence in text["sentences"]:
        source = MAIL[sentence["source"]["start"] : sentence["source"]["end"]]
        target = body["summary"][sentence["target"]["start"] : sentence["target"]["end"]]
        assert " ".join(source.split()) == target and sentence["tokens"] == [] and "score" not in sentence


@pytest.mark.parametrize("text", ["", " \n\n ", "12:30 – 14:00 ★"])
async def test_where_there_is_nothing_to_say_nothing_is_said(choosy: Served, text: str) -> None:
    assert (await summarize(choosy, q=text, method="extract"))["summary"] == ""


async def test_a_stream_has_the_extract_as_an_event(choosy: Served) -> None:
    fields = {"q": MAIL, "stream": True, "sentences": 1}
    events = (await choosy.client.post("/summarize", json=fields)).text
    assert events.index("event: summary") < events.index("event: done")
    assert events.count(DELAY) == 2


def test_the_shipped_model_knows_abstracts_from_other_text() -> None:
    from tandem.service.bundles.served import ServedModel
    from tandem.service.translation.summaries import is_made_for

    bundle = Bundle.load(BUNDLES / "arxiv-title")
    model = ServedModel.of(bundle)
    abstract = (
        "We study the stochastic block model and show that a spectral algorithm recovers the communities above the "
        "information-theoretic threshold. Our proof relies on a perturbation bound for eigenvectors of random matrices."
    )
    assert is_made_for(model, abstract)
    assert not is_made_for(model, MAIL)


async def test_without_the_extra_models_answer_alone(choosy: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.service.translation.texts.text_extractor", lambda: None)
    assert (await summarize(choosy, q=MAIL))["method"] == "model"
    refused = await choosy.client.post("/summarize", json={"q": MAIL, "method": "extract"})
    assert assert_error(refused, 422, "invalid_field")["detail"][0]["field"] == "method"
    assert_error(await choosy.client.post("/summarize", json={"q": GERMAN}), 422, "invalid_field")


def test_programs_get_extracts() -> None:
    text = "We present a new method for training neural networks. It is faster. It was tested on three data sets."
    with Translator([BUNDLES / "arxiv-title"]) as summarizer:
        extract = summarizer.summarize([text], method="extract", sentences=1)
    assert extract[0].method == "extract" and extract[0].text in text
