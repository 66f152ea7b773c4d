"""One bundle, two directions: requests reach the right one, and everything that lists languages knows both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tandem.models.vocabulary import EOS
from tests.service.support import Served, assert_error, served, tiny_bundle

pytestmark = pytest.mark.anyio
PAIRS = (("de", "en"), ("en", "de"))
GERMAN, ENGLISH = "Wo ist denn heute der Bahnhof geblieben?", "Where is the train station of this town?"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Served]:
    async with served({"both": tiny_bundle(tmp_path, "both", pairs=PAIRS)}, first="both") as running:
        yield running


def tags(service: Served) -> list[str]:
    """The first piece of every sentence that the model has read."""
    return [service.bundle.target_vocabulary.piece_of(ids[0]) for ids in service.graphs.encoded]


async def test_a_request_reaches_its_direction(service: Served) -> None:
    for source, target in PAIRS:
        service.graphs.together.clear()
        body = (await service.translate("wo ist der bahnhof", source=source, target=target, details=True)).json()
        assert body["model"] == "both"
        assert "wo ist der bahnhof" in body["translatedText"]
        assert tags(service) == [f"⟨{target}⟩"]


async def test_a_detected_language_chooses_among_directions(service: Served) -> None:
    await service.translate(ENGLISH, source="auto", target="de")
    assert tags(service) == ["⟨de⟩"]
    service.graphs.together.clear()
    body = (await service.translate([GERMAN, ENGLISH], source="auto", target="en")).json()
    assert tags(service) == ["⟨en⟩"], "the English text is in the target language already"
    assert body["translatedText"][1] == ENGLISH


async def test_languages_and_models_name_both(service: Served) -> None:
    listed = (await service.client.get("/languages")).json()
    assert [(one["code"], one["targets"]) for one in listed] == [("de", ["en"]), ("en", ["de"])]
    (model,) = (await service.client.get("/models")).json()
    assert (model["source_languages"], model["target_language"]) == (["de"], "en")
    assert model["pairs"] == [{"source": "de", "target": "en"}, {"source": "en", "target": "de"}]


async def test_what_is_not_served_is_told_with_both(service: Served) -> None:
    body = assert_error(await service.translate("bonjour", source="fr"), 404, "language_not_served")
    assert "pairs served: de-en, en-de" in body["error"]
    assert (await service.translate("hallo", target="de")).json() == {"translatedText": "hallo"}
    body = assert_error(await service.translate("hallo", target="fr"), 404, "language_not_served")
    assert body["detail"]["pairs"] == [{"source": "de", "target": "en"}, {"source": "en", "target": "de"}]


async def test_a_model_of_one_direction_has_no_pairs(tmp_path: Path) -> None:
    async with served({"de-en": tiny_bundle(tmp_path)}) as running:
        (model,) = (await running.client.get("/models")).json()
        assert "pairs" not in model
        await running.translate("wo ist der bahnhof")
        assert "⟨en⟩" not in tags(running)
        assert [ids[-1] for ids in running.graphs.encoded] == [EOS]
