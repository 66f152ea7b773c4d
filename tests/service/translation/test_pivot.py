"""Pairs that no bundle translates go through a third language, as one request with everything that it asks for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tandem.models.bundle import Bundle, Limits, Training
from tandem.models.search import Array
from tandem.service.app import create_app
from tandem.service.bundles.catalog import Catalog
from tandem.service.bundles.loading import build_engine
from tandem.service.engine import Engine
from tandem.service.errors import PairNotServed
from tandem.service.settings import Settings
from tests.service.aligning import AligningGraphs
from tests.service.support import assert_error, copying, make_engine, running, tiny_bundle, tiny_vocabulary, until
from tests.shipped import SHIPPED

pytestmark = pytest.mark.anyio
VOCABULARY = tiny_vocabulary()
IST, B, H = (VOCABULARY.id_of(f"\u2581{word}") for word in ("ist", "b", "h"))
TEXT = " - Das Haus ist alt. Wo ist der Bahnhof?\n\nGuten Morgen"
FRENCH, ENGLISH = "Bonjour, où est la gare aujourd'hui ?", "Where is the train station of this town?"
UNTAUGHT = Training((), {"data": {"placeholder_share": 0}}, 0, 0)


@dataclass
class Wording(AligningGraphs):
    """Copies, but writes some tokens as others."""

    words: Mapping[int, int] = field(default_factory=dict)

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        results = super().run(graph, inputs)
        if graph == "encode":
            for read, written in self.words.items():
                results["memory.tokens"][inputs["source0"] == read] = written
        return results


@dataclass
class Chain:
    """An app that translates French into English, and English into German: " ist" into " b", and " b" into " h"."""

    client: httpx.AsyncClient
    engine: Engine
    first: Wording
    second: Wording

    async def translate(self, q: Any, **fields: Any) -> httpx.Response:
        return await self.client.post("/translate", json={"q": q, "source": "fr", "target": "de", **fields})


@asynccontextmanager
async def chained(
    folder: Path, settings: Settings | None = None, of: Sequence[Mapping[str, Any]] = ({}, {})
) -> AsyncIterator[Chain]:
    """``of``: what is changed of either bundle's manifest."""
    first = tiny_bundle(folder, "fr-en", source_languages=("fr",), **of[0])
    second = tiny_bundle(folder, "en-de", source_languages=("en",), target_language="de", **of[1])
    graphs = Wording(VOCABULARY.size, words={IST: B}), Wording(VOCABULARY.size, words={B: H})
    engine = make_engine((first, graphs[0]), (second, graphs[1]))
    async with running(create_app(settings or Settings(shutdown_timeout=5), engine)) as client:
        for one in graphs:  # the probes at the start
            one.together.clear()
            one.entered.clear()
        yield Chain(client, engine, *graphs)


@pytest.fixture
async def chain(tmp_path: Path) -> AsyncIterator[Chain]:
    async with chained(tmp_path) as running_chain:
        yield running_chain


def said(text: str) -> str:
    """What becomes of a text."""
    return text.replace(" ist", " h")


async def test_what_the_first_writes_is_what_the_second_reads(chain: Chain) -> None:
    body = (await chain.translate([TEXT, "123"], details=True, alternatives=1)).json()
    assert body["translatedText"] == [said(TEXT), "123"]
    assert (body["via"], body["model"]) == (["en", None], "fr-en, en-de")
    between = [sentence.replace(" ist", " b") for sentence in ("Das Haus ist alt.", "Wo ist der Bahnhof?")]
    read = {tuple(VOCABULARY.encode(text)) for text in (*between, "Guten Morgen")}
    assert {ids[:-1] for ids in chain.second.encoded} == read
    assert [len(alternatives) for alternatives in body["alternatives"]] == [1, 0]
    sentences = body["details"][0]["sentences"]
    spans = [(TEXT[slice(*one["source"].values())], said(TEXT)[slice(*one["target"].values())]) for one in sentences]
    assert len(spans) == 3 and all(said(source) == target for source, target in spans)
    tokens = sum(len(ids) - 1 for ids in chain.first.encoded)
    assert body["usage"] == {"characters": len(TEXT) + 3, "source_tokens": tokens, "target_tokens": tokens}
    assert 'tandem_pivoted_sentences_total{source="fr",target="de",via="en"} 3.0' in (
        (await chain.client.get("/metrics")).text
    )
    assert (await chain.translate("Guten Morgen", prefix="alt")).json()["translatedText"].startswith("alt")


async def test_each_text_goes_its_own_way(chain: Chain) -> None:
    body = (await chain.translate([FRENCH, ENGLISH, FRENCH], source="auto")).json()
    assert body["translatedText"] == [FRENCH, ENGLISH, FRENCH]
    assert body["via"] == ["en", None, "en"]
    assert [one["language"] for one in body["detectedLanguage"]] == ["fr", "en", "fr"]
    assert "via" not in (await chain.translate(ENGLISH, source="en")).json()


async def test_everybody_is_told_what_can_be_reached(chain: Chain) -> None:
    assert (await chain.client.get("/languages")).json() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "fr", "name": "French", "targets": ["en", "de"], "via": {"de": "en"}},
    ]
    form = {"q": TEXT, "source": "fr", "target": "de"}
    assert (await chain.client.post("/translate", data=form)).json() == {"translatedText": said(TEXT), "via": "en"}


@pytest.mark.parametrize(
    ("settings", "fields"),
    [({}, {"pivot": False}), ({"pivot": False}, {}), ({"pivot_languages": ("cs", "it")}, {})],
    ids=["not asked for", "switched off", "not allowed"],
)
async def test_what_may_not_go_through_another_language_is_not_served(
    tmp_path: Path, settings: dict[str, Any], fields: dict[str, Any]
) -> None:
    async with chained(tmp_path, Settings(shutdown_timeout=5, **settings)) as chain:
        body = assert_error(await chain.translate(TEXT, **fields), 404, "pair_not_served")
        assert body["error"].endswith("does not translate fr-de; pairs served: en-de, fr-en")
        assert_error(await chain.translate(FRENCH, source="auto", **fields), 404, "pair_not_served")
        listed = (await chain.client.get("/languages")).json()
        assert any("via" in one for one in listed) == (settings == {})
    assert chain.first.encoded == []


@pytest.mark.parametrize("taught", [(True, True), (True, False), (False, True)])
async def test_hidden_parts_and_terms_go_all_the_way(tmp_path: Path, taught: tuple[bool, bool]) -> None:
    of = [{} if one else {"training": UNTAUGHT} for one in taught]
    text, terms = "Wo ist {n} heute? Das Haus ist alt, {n}.", {"Haus": "home"}
    async with chained(tmp_path, of=of) as chain:
        body = (await chain.translate(text, protect=["placeholders"], glossary=terms)).json()
    assert body["translatedText"] == said(text).replace("Haus", "home")
    assert body["protected"] == [{"text": "{n}", "kept": True}]
    assert body["glossary"] == [{"source": "Haus", "target": "home", "found": True}]


async def test_nothing_went_through_a_language_where_nothing_was_decoded(chain: Chain) -> None:
    body = (await chain.translate(["{n}", "Haus {n}"], protect=["{n}", "Haus"])).json()
    assert body["translatedText"] == ["{n}", "Haus {n}"] and "via" not in body
    assert "tandem_pivoted_sentences_total{" not in (await chain.client.get("/metrics")).text


async def test_what_is_too_long_for_the_second_is_read_in_pieces(tmp_path: Path) -> None:
    text = "wo ist das haus heute und guten morgen das haus ist alt"
    of: tuple[dict[str, Any], dict[str, Any]] = {}, {"limits": Limits(6, 200)}
    async with chained(tmp_path, of=of) as chain:
        body = (await chain.translate([text, "wo ist {n} heute und das haus"], details=True, protect=["{n}"])).json()
    assert body["translatedText"] == [said(text), "wo h {n} heute und das haus"]
    assert len(body["details"][0]["sentences"]) == 1
    assert max(map(len, chain.first.encoded)) > 7 >= max(map(len, chain.second.encoded))


async def test_a_stream_has_what_the_second_writes(chain: Chain) -> None:
    reply = await chain.translate("Das Haus ist alt. Wo ist der Bahnhof?", stream=True)
    events = [json.loads(line.removeprefix("data: ")) for line in reply.text.splitlines() if line.startswith("data")]
    assert {one["sentence"]: one["translation"] for one in events[:-1]} == {
        0: "Das Haus h alt.", 1: "Wo h der Bahnhof?",
    }  # fmt: skip
    assert events[-1] == {"translatedText": "Das Haus h alt. Wo h der Bahnhof?", "via": "en"}


@pytest.mark.parametrize("leaves", [False, True], ids=["the deadline passes", "the client leaves"])
async def test_the_end_of_a_request_ends_its_second_hop(chain: Chain, leaves: bool) -> None:
    chain.second.gate.clear()
    try:
        task = asyncio.create_task(chain.translate(TEXT, **({} if leaves else {"timeout": 0.5})))
        await until(chain.second.entered.is_set)
        if leaves:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            assert_error(await task, 504, "deadline")
    finally:
        chain.second.gate.set()
    await until(lambda: chain.engine.dispatcher.sentences == (0, 0))
    assert chain.engine.dispatcher.counters.cancelled + chain.engine.dispatcher.counters.expired == 3


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("pairs")
    languages = [name.split("-") for name in ("fr-cs", "cs-de", "fr-en", "en-de", "fr-de", "de-en")]
    return {f"{s}-{t}": tiny_bundle(folder, f"{s}-{t}", source_languages=(s,), target_language=t) for s, t in languages}


@pytest.mark.parametrize(
    ("names", "pivots", "asked", "models"),
    [
        ("fr-cs cs-de fr-en en-de", (), "fr:de", "fr-en en-de"),  # English first
        ("fr-cs cs-de fr-en en-de", ("cs", "en"), "fr:de", "fr-cs cs-de"),  # what is preferred
        ("fr-cs cs-de", (), "fr-CA:de-AT", "fr-cs cs-de"),
        ("fr-cs cs-de", ("en",), "fr:de", ""),
        ("fr-cs cs-de", None, "fr:de", ""),
        ("fr-cs cs-de fr-en en-de fr-de", ("cs",), "fr:de", "fr-de"),  # one bundle rather than two
        ("fr-en en-de de-en", (), "de:de", ""),  # a third language, and not back again
        ("fr-en cs-de", (), "fr:de", ""),
    ],
)
def test_the_way_is_the_best_that_is_allowed(
    pairs: dict[str, Bundle], names: str, pivots: tuple[str, ...] | None, asked: str, models: str
) -> None:
    engine = make_engine(*((pairs[name], copying(pairs[name])) for name in names.split()))
    catalog, (source, target) = Catalog(engine, pivots), asked.split(":")
    listed = {one.code: one.via or {} for one in catalog.languages()}
    if models:
        route = catalog.translator(source, target, None)
        assert " ".join(model.name for model in route.models) == models
        assert listed["fr"].get("de") == route.via
        assert "fr" in catalog.source_languages("de", pivot=True)
    else:
        assert not listed.get(source, {}).get(target)
        with pytest.raises(PairNotServed):
            catalog.translator(source, target, None)


async def test_the_shipped_model_translates_between_french_and_german() -> None:
    """Through English, by itself twice; of what is not reached the message says what is, and by which way."""
    bundle = SHIPPED
    text = "Où est la gare, {nom} ? J'ai un petit chien et un chat."
    fields = {"q": text, "source": "fr", "target": "de", "protect": ["placeholders"]}
    back = {"q": "Wo ist der Bahnhof? Ich habe eine Katze.", "source": "de", "target": "fr"}
    settings = Settings(bundles=(bundle,), workers=1, shutdown_timeout=5)
    async with running(create_app(settings, build_engine(settings))) as client:
        there, returned, refused = [
            await client.post("/translate", json=body) for body in (fields, back, back | {"target": "es"})
        ]
    translated = there.json()["translatedText"]
    assert there.json()["via"] == "en" and there.json()["protected"] == [{"text": "{nom}", "kept": True}]
    for word in ("Bahnhof", "Hund", "Katze"):
        assert word in translated
    assert returned.json()["via"] == "en"
    assert all(word in returned.json()["translatedText"] for word in ("gare", "chat"))
    assert (
        "en-fr, fr-en, de-fr through en, fr-de through en" in assert_error(refused, 404, "language_not_served")["error"]
    )
