"""Above a bound, graphs of bundles that nobody asks for are let go of, and open again when they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from tandem.models.bundle import Bundle
from tandem.models.search import Array, SearchOptions
from tandem.service.app import create_app
from tandem.service.bundles.readiness import Readiness
from tandem.service.engine import Engine, EngineOptions, Job
from tandem.service.engine.residency import Residency, Resident
from tandem.service.runtimes.onnx import OnnxGraphs
from tandem.service.settings import Settings
from tests.service.support import PATIENCE, CopyGraphs, decoding, running, tiny_bundle
from tests.shipped import BUNDLES, SHIPPED

pytestmark = pytest.mark.anyio
OPTIONS = SearchOptions(beam_size=2, max_length=20)
NAMES = ("de-en", "fr-en", "it-en")


class RestingGraphs(CopyGraphs):
    """Copies, and takes ten bytes while it is open."""

    footprint = 10
    resting = False

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.resting = False
        return super().run(graph, inputs)

    def rest(self) -> None:
        self.resting = True


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    folder: Path = tmp_path_factory.mktemp("residency")
    return [tiny_bundle(folder, name) for name in NAMES]


@asynccontextmanager
async def started(bundles: list[Bundle], bound: int | None) -> AsyncIterator[tuple[Engine, dict[str, RestingGraphs]]]:
    engine = Engine(EngineOptions(models_memory=bound))
    graphs = {one.manifest.name: RestingGraphs(one.target_vocabulary.size) for one in bundles}
    for one in bundles:
        engine.add(one, graphs[one.manifest.name])
    async with decoding(engine, graphs.values()):
        yield engine, graphs


def job(name: str) -> Job:
    return Job(name, ((20, 21, 3),), OPTIONS)


def awake(engine: Engine) -> list[str]:
    return [name for name in NAMES if engine.state_of(name) == "ready"]


async def test_who_was_not_asked_for_longest_rests(bundles: list[Bundle]) -> None:
    async with started(bundles, 25) as (engine, _):
        assert awake(engine) == ["fr-en", "it-en"]  # those that came last
        for name, left in (("de-en", ["de-en", "it-en"]), ("it-en", ["de-en", "it-en"]), ("fr-en", ["fr-en", "it-en"])):
            (decoded,) = await engine.decode([job(name)])
            assert decoded.hypotheses[0].tokens == (20, 21)
            assert awake(engine) == left
        engine.remove("fr-en")
        assert not engine.residency.resting("fr-en")


async def test_without_a_bound_nobody_rests(bundles: list[Bundle]) -> None:
    async with started(bundles, None) as (engine, _):
        await engine.decode([job(name) for name in NAMES])
        assert awake(engine) == list(NAMES)


async def test_who_is_at_work_does_not_rest(bundles: list[Bundle]) -> None:
    """Though the bound be passed; it holds again with the next that is asked for."""
    async with started(bundles, 5) as (engine, graphs):
        assert awake(engine) == ["it-en"]
        async with graphs["de-en"].held(lambda: asyncio.ensure_future(engine.decode([job("de-en")]))) as held:
            engine.residency.use("fr-en")
            graphs["fr-en"].resting = False
            assert awake(engine) == ["de-en", "fr-en"]
        await held
        await engine.decode([job("it-en")])
        assert awake(engine) == ["it-en"]


async def test_a_probe_wakes_nobody(bundles: list[Bundle]) -> None:
    async with started(bundles, 15) as (engine, graphs):
        assert await Readiness(engine, PATIENCE, 0.0).faults() == []
        assert awake(engine) == ["it-en"]
        assert [len(graphs[name].together) for name in NAMES] == [0, 0, 1]


def test_graphs_that_cannot_rest_are_left_alone() -> None:
    residency = Residency(1, lambda _: False)
    residency.add("one", CopyGraphs(100))
    residency.add("two", CopyGraphs(100))
    assert not residency.resting("one") and not isinstance(CopyGraphs(100), Resident)


async def test_both_shipped_bundles_answer_though_one_has_room() -> None:
    settings = Settings(bundles=(BUNDLES,), models_memory=1, cache_sentences=0)
    async with running(create_app(settings)) as client:
        for _ in range(2):
            body = {"q": "Wo ist der Bahnhof?", "source": "de", "target": "en"}
            assert "station" in (await client.post("/translate", json=body)).json()["translatedText"]
            assert await states(client) == {"de-fr-en": "ready", "arxiv-title": "resting"}
            text = (
                "We present a new method for training neural networks. It is faster. It was tested on three data sets."
            )
            reply = await client.post("/summarize", json={"q": text, "method": "model"})
            assert reply.status_code == 200 and reply.json()["summary"]
            assert await states(client) == {"de-fr-en": "resting", "arxiv-title": "ready"}
        assert (await client.get("/readyz")).status_code == 200


async def states(client: httpx.AsyncClient) -> dict[str, str]:
    return {one["name"]: one["state"] for one in (await client.get("/models")).json()}


def test_sessions_rest_and_open_again() -> None:
    graphs = OnnxGraphs(Bundle.load(SHIPPED), "int8", 1)
    assert isinstance(graphs, Resident)
    inputs = {"source0": np.full((1, 3), 7), "source0.length": np.array([3])}
    before = graphs.run("encode", inputs)
    assert graphs.footprint == sum(file.stat().st_size for file in (SHIPPED / "onnx/int8").iterdir())
    states = [graphs.resting]
    graphs.rest()
    states.append(graphs.resting)
    after = graphs.run("encode", inputs)
    assert [*states, graphs.resting] == [False, True, False]
    assert after.keys() == before.keys() and all(np.array_equal(after[name], before[name]) for name in before)
