"""Rewriting as a request meets it: capitals, what no model reads, and what is looked up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.rewriting.lexicon import Lexicon
from tandem.extras.rewriting.tests.support import with_lexicon
from tandem.models.bundle import Bundle
from tandem.models.bundle.manifest import Limits
from tests.service.aligning import ask
from tests.service.support import Served, served, tiny_bundle
from tests.service.translation.test_protect import UNTAUGHT

pytestmark = pytest.mark.anyio


@pytest.fixture
async def knowing(bundles: dict[str, Bundle]) -> AsyncIterator[Served]:
    """A service whose bundle has a lexicon, of one word."""
    known = with_lexicon(bundles["de-en"], Lexicon({("de", "en"): {"wo": ("where",)}}))
    async with served({**bundles, "de-en": known}) as running:
        yield running


@pytest.mark.parametrize("markup", [False, True])
async def test_sentences_in_capitals_are_read_like_others(knowing: Served, markup: bool) -> None:
    text = "<b>WO IST</b> DER {name}? DAS HAUS IST ALT" if markup else "WO IST DER {name}? DAS HAUS IST ALT"
    body = (await knowing.translate(text, alternatives=1, format="html" if markup else "text")).json()
    assert body["translatedText"] == text
    assert {one.replace("⟨ph0⟩", "{name}") for one in knowing.read_texts} == {"Wo ist der {name}?", "Das haus ist alt"}


async def test_a_stream_of_capitals_is_in_capitals(knowing: Served) -> None:
    body = {"q": "WO IST DAS HAUS?", "source": "de", "target": "en", "stream": True}
    async with knowing.client.stream("POST", "/translate", json=body) as reply:
        lines = [line async for line in reply.aiter_lines() if line.startswith("data:")]
    assert len(lines) == 2 and all("WO IST DAS HAUS?" in line for line in lines)
    assert knowing.read_texts == ["Wo ist das haus?"]


@pytest.mark.parametrize("text", ["DIE NATO UND DIE USA", "WARNUNG: bitte NICHT löschen", "die nato und die usa"])
async def test_capitals_stay_where_no_lexicon_can_say_how_words_are_written(service: Served, text: str) -> None:
    assert (await service.translate(text)).json() == {"translatedText": text}
    assert service.read_texts == [text]


@pytest.mark.parametrize("text", ["DIE NATO UND DIE USA", "bitte NICHT löschen"])
@pytest.mark.parametrize("fields", [{"lexicon": False}, {"lexicon": True, "of": ("fr", "en")}])
async def test_a_lexicon_that_is_not_asked_changes_no_capitals(
    bundles: dict[str, Bundle], text: str, fields: dict[str, Any]
) -> None:
    lexicon = Lexicon({fields.get("of", ("de", "en")): {"nato": ("NATO",)}})
    async with served({**bundles, "de-en": with_lexicon(bundles["de-en"], lexicon)}) as running:
        assert (await running.translate(text, lexicon=fields["lexicon"])).json() == {"translatedText": text}
        assert running.read_texts == [text]


async def test_dates_times_and_amounts_are_written_as_the_target_does(service: Served) -> None:
    texts = ["Am 3. Mai 2024 ist das haus alt.", "das haus um 15 Uhr", "haus 1.250,5 km", "das haus"]
    reply = await service.translate(texts, protect=["emails"])
    written = ["On May 3, 2024 ist das haus alt.", "das haus at 3 pm", "haus 1,250.5 km", "das haus"]
    assert reply.json() == {"translatedText": written, "protected": [[]] * 4}
    assert len(service.graphs.encoded) == len(texts)  # none was read twice
    reply = await service.translate(texts[1:], protect=["numbers"])
    assert reply.json()["translatedText"] == texts[1:]


async def test_an_amount_alone_is_written_as_in_a_sentence(service: Served) -> None:
    text = "1.204,72 €\n- 12,5 %\n12:30\n2024 – 5\nwo: 1.204,72 €"
    written = "€1,204.72\n- 12.5 %\n12:30\n2024 – 5\nwo: €1,204.72"
    assert (await service.translate(text)).json() == {"translatedText": written}
    table = "<td>1.204,72 €</td><td><b>12,5 %</b></td><td>7</td><td>wo 1.204,72 €</td>"
    reply = (await service.translate(table, format="html")).json()["translatedText"]
    assert reply == "<td>€1,204.72</td><td><b>12.5 %</b></td><td>7</td><td>wo €1,204.72</td>"


async def test_figures_beyond_the_placeholders_are_read(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path, limits=Limits(max_source_tokens=400, max_target_tokens=400))
    async with served({"de-en": bundle}) as service:
        names = len(bundle.source_vocabularies[0].placeholders)
        text = "das " + " haus ".join(f"{number},5" for number in range(names + 2))
        reply = (await service.translate(text, max_length=400)).json()["translatedText"]
    assert reply == text.replace(",", ".", names)


async def test_figures_are_read_by_models_without_placeholders(tmp_path: Path) -> None:
    async with served({"de-en": tiny_bundle(tmp_path, training=UNTAUGHT)}) as service:
        assert (await service.translate("das haus um 15 Uhr")).json() == {"translatedText": "das haus um 15 Uhr"}


async def test_all_of_a_phrase_that_is_looked_up_aligns_with_all_of_its_translation(bundles: dict[str, Bundle]) -> None:
    known = with_lexicon(bundles["de-en"], Lexicon({("de", "en"): {"auf Wiedersehen": ("goodbye",)}}))
    fields = {"q": "Das Haus. Auf Wiedersehen!", "source": "de", "target": "en", "alignments": True}
    response = await ask(known, "/translate", **fields)
    assert response.status_code == 200, response.text
    _, phrase = response.json()["details"][0]["sentences"]
    spans = {"source": {"start": 10, "end": 26}, "target": {"start": 10, "end": 18}}
    assert (phrase["lexicon"], response.json()["translatedText"]) == (True, "Das Haus. Goodbye!")
    assert phrase["alignment"] == {
        "tokens": {"source": ["Auf Wiedersehen!"], "target": ["Goodbye!"]},
        "words": [spans],
    }


async def test_dates_and_entries_are_found_with_soft_hyphens_in_them(knowing: Served) -> None:
    texts = ["das ist am 3. Ja\u00adnu\u00adar alt", "w\u200bo"]
    body = (await knowing.translate(texts)).json()
    assert body["translatedText"] == ["das ist on January 3 alt", "where"]
