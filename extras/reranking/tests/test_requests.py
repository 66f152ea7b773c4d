"""The model of the other direction chooses among hypotheses: a translator that gets a word wrong, and one that copies.

The first finds " b" a little likelier than the " ist" that it reads, in one sentence of a text as in another; the
second finds any other word than it reads all but impossible, so that it prefers the hypothesis with " ist".
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import numpy as np
import pytest

from tandem.models.bundle import Limits, Training
from tandem.models.search import Array
from tandem.service.app import create_app
from tandem.service.bundles.catalog import Catalog
from tandem.service.engine import Engine
from tandem.service.settings import Settings
from tests.service.aligning import AligningGraphs
from tests.service.support import CopyGraphs, assert_error, copying, make_engine, running, tiny_bundle, tiny_vocabulary

pytestmark = pytest.mark.anyio
VOCABULARY = tiny_vocabulary()
IST, B = (VOCABULARY.id_of(f"\u2581{word}") for word in ("ist", "b"))
ALT = min({*VOCABULARY.encode("Das Haus ist alt.")} - {*VOCABULARY.encode("Wo ist der Bahnhof? Guten Morgen")})
TEXT = "Das Haus ist alt. Wo ist der Bahnhof?\n\nGuten Morgen"
WRONG = TEXT.replace(" ist", " b")
UNTAUGHT = Training((), {"data": {"placeholder_share": 0}}, 0, 0)


@dataclass
class Mistaken(AligningGraphs):
    """Copies, but finds another token a little likelier than one that it reads."""

    def _logits(self, inputs: Mapping[str, Array]) -> Array:
        logits = super()._logits(inputs)
        rows = np.argmax(logits, axis=1) == IST
        logits[rows, B] = logits[rows, IST] + 0.5
        return logits


@dataclass
class Both:
    """An app of German-English, which is mistaken, and English-German, which judges it."""

    client: httpx.AsyncClient
    engine: Engine
    judge: CopyGraphs

    async def post(self, q: Any = TEXT, **fields: Any) -> httpx.Response:
        return await self.client.post("/translate", json={"q": q, "source": "de", "target": "en", **fields})

    async def translate(self, q: Any = TEXT, **fields: Any) -> Any:
        reply = await self.post(q, **fields)
        assert reply.status_code == 200, reply.text
        return reply.json()


@asynccontextmanager
async def apps(
    folder: Path,
    judge: CopyGraphs | None = None,
    settings: Settings | None = None,
    of: Mapping[str, Any] = MappingProxyType({}),
) -> AsyncIterator[Both]:
    """``of``: what is changed of the judge's manifest."""
    forward = tiny_bundle(folder, "de-en")
    back = tiny_bundle(folder, "en-de", source_languages=("en",), target_language="de", **of)
    graphs = judge or copying(back)
    engine = make_engine((forward, Mistaken(VOCABULARY.size)), (back, graphs))
    async with running(create_app(settings or Settings(shutdown_timeout=5), engine)) as client:
        graphs.together.clear()  # the probes at the start
        yield Both(client, engine, graphs)


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with apps(tmp_path) as running_both:
        yield running_both


async def test_the_judge_chooses(both: Both) -> None:
    plain = await both.translate(details=True, alternatives=1)
    assert (plain["translatedText"], both.judge.together) == (WRONG, [])
    ranked = await both.translate(details=True, alternatives=1, rerank=True)
    assert ranked["translatedText"] == TEXT
    assert [len(texts["alternatives"]) for texts in (plain, ranked)] == [1, 1]
    assert set(VOCABULARY.encode("Guten Morgen")) <= set(sum(both.judge.encoded, ())), "every sentence is judged"
    usages = [one["usage"] for one in (plain, ranked)]
    assert usages[0] == usages[1]
    (first, *_), (better, *_) = (one["details"][0]["sentences"] for one in (plain, ranked))
    assert first["score"] > better["score"], "the score stays the model's own"


async def test_hypotheses_are_judged_with_the_source_that_they_are_of(both: Both) -> None:
    await both.translate("Das Haus ist alt.", rerank=True, beam_size=3)
    assert len(both.judge.encoded) == 3 and len(set(both.judge.encoded)) == 3
    assert {ids[-1] for ids in both.judge.encoded} == {VOCABULARY.eos}
    assert (*VOCABULARY.encode("Das Haus ist alt."), VOCABULARY.eos) in both.judge.encoded


async def test_equal_sentences_are_judged_once(both: Both) -> None:
    body = await both.translate(["Das Haus ist alt."] * 3, rerank=True, beam_size=2)
    assert body["translatedText"] == ["Das Haus ist alt."] * 3
    assert len(both.judge.encoded) == 2


async def test_a_server_may_want_it_of_all_requests(tmp_path: Path) -> None:
    async with apps(tmp_path, settings=Settings(shutdown_timeout=5, rerank="always")) as both:
        assert (await both.translate())["translatedText"] == TEXT
        assert (await both.translate(rerank=False))["translatedText"] == WRONG
        drawn = {"sampling": {"temperature": 0.01, "seed": 1}}
        assert (await both.translate(**drawn))["translatedText"] == WRONG, "nobody chooses among draws"


async def test_a_server_may_want_it_of_large_requests(tmp_path: Path) -> None:
    async with apps(tmp_path, settings=Settings(shutdown_timeout=5, rerank="bulk", bulk_characters=30)) as both:
        assert (await both.translate("Das Haus ist alt."))["translatedText"] == "Das Haus b alt."
        assert (await both.translate("Das Haus ist alt.", priority="bulk"))["translatedText"] == "Das Haus ist alt."
        assert (await both.translate())["translatedText"] == TEXT
        assert (await both.translate(priority="interactive"))["translatedText"] == WRONG


async def test_parts_that_are_kept_are_kept(both: Both) -> None:
    text = "Das Haus ist alt: https://example.org/ist ist ⟨ph3⟩."
    body = await both.translate(text, rerank=True, protect=["urls"])
    assert body["translatedText"] == text
    assert [one["kept"] for one in body["protected"]] == [True]


async def test_a_model_without_placeholders_judges_what_has_none(tmp_path: Path) -> None:
    async with apps(tmp_path, of={"training": UNTAUGHT}) as both:
        text = "Das Haus ist alt: https://example.org"
        assert (await both.translate("Das Haus ist alt.", rerank=True))["translatedText"] == "Das Haus ist alt."
        body = await both.translate(text, rerank=True, protect=["urls"])
        assert body["translatedText"] == text.replace(" ist", " b")


async def test_a_stream_tells_what_the_judge_has_chosen(both: Both) -> None:
    reply = await both.post(rerank=True, stream=True)
    events = [block.split("\n") for block in reply.text.strip().split("\n\n")]
    told = [json.loads(data.removeprefix("data: ")) for name, data in events if name == "event: sentence"]
    assert sorted((one["sentence"], one["translation"]) for one in told) == [
        (0, "Das Haus ist alt."),
        (1, "Wo ist der Bahnhof?"),
        (2, "Guten Morgen"),
    ]
    assert json.loads(events[-1][1].removeprefix("data: "))["translatedText"] == TEXT


async def test_a_judge_that_fails_leaves_the_order(tmp_path: Path) -> None:
    async with apps(tmp_path, CopyGraphs(VOCABULARY.size, crash_step=ALT)) as both:
        body = await both.translate(rerank=True, beam_size=2)
    assert body["translatedText"] == "Das Haus b alt. Wo ist der Bahnhof?\n\nGuten Morgen"


@pytest.mark.parametrize("limits", [Limits(10, 200), Limits(40, 10)])
async def test_what_the_judge_cannot_read_or_write_whole_keeps_its_order(tmp_path: Path, limits: Limits) -> None:
    async with apps(tmp_path, of={"limits": limits}) as both:
        assert (await both.translate("Wo ist?", rerank=True))["translatedText"] == "Wo ist?"
        both.judge.together.clear()
        assert (await both.translate("Das Haus ist alt.", rerank=True))["translatedText"] == "Das Haus b alt."
        assert both.judge.together == []


async def test_without_a_judge_it_is_refused(both: Both, tmp_path: Path) -> None:
    assert_error(await both.post(rerank=True, sampling={"seed": 1}), 422, "invalid_field")
    both.engine.remove("en-de")
    body = assert_error(await both.post(rerank=True), 422, "invalid_field")
    assert "rerank: must be false for de-en: nothing served translates en into de" in body["error"]
    assert (await both.translate())["translatedText"] == WRONG


async def test_judging_counts_as_twice_the_work(tmp_path: Path) -> None:
    async with apps(tmp_path, settings=Settings(shutdown_timeout=5, max_decoding_cost=4000)) as both:
        fields = {"q": "Das Haus ist alt.", "beam_size": 4, "max_length": 200}
        assert (await both.translate(**fields))["translatedText"] == "Das Haus b alt."
        assert (await both.translate(**fields, rerank=True))["translatedText"] == "Das Haus ist alt."
        too_much = {**fields, "max_length": 200, "q": "Das Haus ist alt. Wo ist der Bahnhof? Guten Morgen"}
        await both.translate(**too_much)
        assert_error(await both.post(**too_much, rerank=True), 422, "invalid_field")


async def test_both_ways_of_a_pair_through_a_third_language_are_judged(tmp_path: Path) -> None:
    pairs = {"de-en": ("de", "en"), "en-de": ("en", "de"), "en-fr": ("en", "fr"), "fr-en": ("fr", "en")}
    engine = make_engine(
        *(
            (
                tiny_bundle(tmp_path, name, source_languages=(source,), target_language=target),
                Mistaken(VOCABULARY.size) if name == "de-en" else CopyGraphs(VOCABULARY.size),
            )
            for name, (source, target) in pairs.items()
        )
    )
    async with running(create_app(Settings(shutdown_timeout=5), engine)) as client:
        fields = {"q": TEXT, "source": "de", "target": "fr"}
        plain = (await client.post("/translate", json=fields)).json()["translatedText"]
        assert plain == WRONG.replace("?", " ?")  # as French has it
        ranked = (await client.post("/translate", json={**fields, "rerank": True})).json()["translatedText"]
        assert ranked == TEXT.replace("?", " ?")
        engine.remove("fr-en")
        body = assert_error(await client.post("/translate", json={**fields, "rerank": True}), 422, "invalid_field")
        assert "must be false for en-fr" in body["error"]


async def test_a_bundle_of_both_directions_judges_itself(tmp_path: Path) -> None:
    alone = tiny_bundle(tmp_path, "alone", source_languages=("en",), target_language="de")
    own = tiny_bundle(tmp_path, "both", pairs=(("de", "en"), ("en", "de")))
    engine = make_engine((alone, CopyGraphs(VOCABULARY.size)), (own, CopyGraphs(VOCABULARY.size)))
    catalog = Catalog(engine)
    channel = catalog.channel(catalog.translator("de", "en", None))
    assert channel is not None and (channel.name, channel.target) == ("both", "de")
