"""A model that copies its source, a tiny bundle, and an app around them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
from fastapi import FastAPI

from tandem.models.bundle import Bundle, Limits, VocabularyFile, write_bundle
from tandem.models.search import Array, GraphSpec, GraphSpecs, SearchOptions, TensorSpec
from tandem.models.vocabulary import SentencePieceVocabulary, train_sentencepiece
from tandem.service.app import create_app
from tandem.service.engine import Engine, EngineOptions, SchedulerLimits
from tandem.service.settings import PREFIX, Settings
from tests.models.bundle.manifests import small_manifest
from tests.models.search.tables import best_candidates

LINES = ("wo ist der bahnhof heute", "guten morgen wie geht es dir", "das haus ist gross und alt", "one two three four")
Begun = TypeVar("Begun")
PATIENCE = 30.0  # seconds after which a test that waits for something has failed


@dataclass
class Clock:
    """Time that stands still unless a test moves it, in seconds since 1970."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def tiny_vocabulary() -> SentencePieceVocabulary:
    return train_sentencepiece(LINES * 4, size=330, languages=("de", "en"), seed=1)


def tiny_bundle(folder: Path, name: str = "de-en", **changes: Any) -> Bundle:
    """A bundle whose model is ``CopyGraphs``: it has vocabularies and a manifest, and weights that nobody reads."""
    vocabulary = tiny_vocabulary()
    file = VocabularyFile("source.model")
    fields: dict[str, Any] = {
        "architecture": "copy",
        "decoding": SearchOptions(beam_size=4, max_length=200),
        "limits": Limits(max_source_tokens=40, max_target_tokens=200),
        "stages": ("rewriting",),
    }
    weights = changes.pop("weights", {"weight": np.ones(1, np.float32)})
    manifest = small_manifest((file,), file, **(fields | {"name": name} | changes))
    return write_bundle(folder / name, manifest, weights, {"source.model": vocabulary})


def _tensor(name: str, dtype: str, *axes: str, padding: float = 0.0, kind: str = "control") -> TensorSpec:
    return TensorSpec(name, dtype, axes, padding, kind)


def _copy_specs(size: int, sources: int, copied: int) -> dict[str, GraphSpec]:
    memory = (
        _tensor("memory.tokens", "int64", "sentence", f"source{copied}", kind="memory"),
        _tensor("memory.lengths", "int64", "sentence", kind="memory"),
    )
    given = tuple(
        tensor
        for number in range(sources)
        for tensor in (
            _tensor(f"source{number}", "int64", "sentence", f"source{number}", kind="source"),
            _tensor(f"source{number}.length", "int64", "sentence", kind="length"),
        )
    )
    control = tuple(_tensor(name, "int64", "row") for name in ("token", "parent", "position"))
    search = (
        _tensor("score", "float32", "row"),
        _tensor("banned", "int64", "row", "ban", padding=size),
        _tensor("forced", "int64", "row", padding=-1),
        _tensor("count", "int64"),
    )
    results = (
        _tensor("scores", "float32", "sentence", "candidate", kind="result"),
        _tensor("tokens", "int64", "sentence", "candidate", kind="result"),
        _tensor("parents", "int64", "sentence", "candidate", kind="result"),
        _tensor("logsumexp", "float32", "row", kind="result"),
    )
    return {
        "encode": GraphSpec(given, memory),
        "step": GraphSpec((*control, *search, *memory), results),
        "step_logits": GraphSpec(
            (*control, *memory), (_tensor("logits", "float32", "row", f"fixed:{size}", kind="result"),)
        ),
    }


@dataclass
class CopyGraphs:
    """Copies a source token by token.

    Attributes:
        size: of the vocabulary.
        sources: how many it reads; ``copied`` is the number of the one that it copies.
        crash_encode, crash_step: a source with this token makes the graph raise.
        endless: never ends a sentence by itself.
        gate: steps wait here; set unless a test holds them.
        entered: set once a step has begun.
        together: the sources of each sentence that encode saw, without padding.
    """

    size: int
    sources: int = 1
    copied: int = 0
    crash_encode: int = -1
    crash_step: int = -1
    endless: bool = False
    gate: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)
    together: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.specs: GraphSpecs = _copy_specs(self.size, self.sources, self.copied)
        self.gate.set()

    @property
    def encoded(self) -> list[tuple[int, ...]]:
        """What encode saw of the copied source."""
        return [one[self.copied] for one in self.together]

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if graph == "encode":
            return self._encode(inputs)
        self.entered.set()
        assert self.gate.wait(PATIENCE)
        if (inputs["memory.tokens"] == self.crash_step).any():
            raise RuntimeError("the step crashed: /secret/path")
        logits = self._logits(inputs)
        if graph == "step_logits":
            return {"logits": logits}
        return best_candidates(inputs, logits, len(logits) // len(inputs["memory.lengths"]))

    @asynccontextmanager
    async def held(self, begin: Callable[[], Begun]) -> AsyncIterator[Begun]:
        """Begin something whose first step then waits until the block ends, or until the gate is opened."""
        self.gate.clear()
        self.entered.clear()
        begun = begin()
        try:
            assert await asyncio.to_thread(self.entered.wait, PATIENCE)
            yield begun
        finally:
            self.gate.set()

    def _encode(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        sides = [(inputs[f"source{number}"], inputs[f"source{number}.length"]) for number in range(self.sources)]
        cut = ([tuple(row[:length].tolist()) for row, length in zip(*side, strict=True)] for side in sides)
        self.together += list(zip(*cut, strict=True))
        tokens, lengths = sides[self.copied]
        if (tokens == self.crash_encode).any():
            raise RuntimeError("the encoder crashed: /secret/path")
        return {"memory.tokens": tokens.copy(), "memory.lengths": lengths.copy()}

    def _logits(self, inputs: Mapping[str, Array]) -> Array:
        rows, sentences = len(inputs["token"]), len(inputs["memory.lengths"])
        logits = np.tile(-(np.arange(self.size) % 13).astype(np.float32), (rows, 1))
        for row in range(rows):
            sentence = row * sentences // rows
            last = int(inputs["memory.lengths"][sentence]) - 1
            position = int(inputs["position"][row])
            token = int(inputs["memory.tokens"][sentence, position if position < last else last])
            logits[row, 20 if self.endless else token] += 40.0
        return logits


def make_engine(*served: tuple[Bundle, CopyGraphs], **limits: Any) -> Engine:
    engine = Engine(EngineOptions(workers=1, cache_sentences=0, limits=SchedulerLimits(**limits)))
    for bundle, graphs in served:
        engine.add(bundle, graphs)
    return engine


@asynccontextmanager
async def decoding(engine: Engine, graphs: Iterable[CopyGraphs]) -> AsyncIterator[None]:
    """An engine's workers, over bundles that have been added; none is held at the end."""
    engine.start()
    try:
        yield
    finally:
        for one in graphs:
            one.gate.set()
        await asyncio.to_thread(engine.stop, PATIENCE)


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an app that has started."""
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


@dataclass
class Served:
    """Everything a test of the HTTP side touches."""

    app: FastAPI
    client: httpx.AsyncClient
    engine: Engine
    graphs: CopyGraphs
    bundle: Bundle

    @property
    def read_texts(self) -> list[str]:
        """What the model read, in order."""
        return [self.bundle.source_vocabularies[0].decode(ids) for ids in self.graphs.encoded]

    async def translate(self, q: Any, **fields: Any) -> httpx.Response:
        return await self.client.post("/translate", json={"q": q, "source": "de", "target": "en", **fields})

    def held(self, q: str) -> AbstractAsyncContextManager[asyncio.Task[httpx.Response]]:
        """A request for a translation that is being decoded, and waits."""
        return self.graphs.held(lambda: asyncio.create_task(self.translate(q)))


@asynccontextmanager
async def served(
    bundles: Mapping[str, Bundle], settings: Settings | None = None, *, first: str = "de-en", **limits: Any
) -> AsyncIterator[Served]:
    """An app with the copying bundles; the one that is named ``first`` is looked at.

    A post-editor copies the translation, what reads several languages the second of them.
    """
    pairs = {name: (bundle, copying(bundle)) for name, bundle in bundles.items()}
    engine = make_engine(*pairs.values(), **limits)
    variables = frozenset((name, value) for name, value in os.environ.items() if name.upper().startswith(PREFIX))
    app = create_app(settings or _settings(variables), engine)
    bundle, graphs = pairs[first]
    async with running(app) as client:
        graphs.entered.clear()  # the probes at the start have stepped
        graphs.together.clear()
        yield Served(app, client, engine, graphs, bundle)


@cache
def _settings(variables: frozenset[tuple[str, str]]) -> Settings:
    """What is usual, with the variables as they are: reading them takes half of the time of making an app."""
    return Settings(shutdown_timeout=5)


def copying(bundle: Bundle) -> CopyGraphs:
    """Graphs with a bundle's number of sources."""
    sources = len(bundle.source_vocabularies)
    return CopyGraphs(bundle.target_vocabulary.size, sources, copied=min(1, sources - 1))


def assert_error(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Every error has one shape, and gives nothing away."""
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    assert set(body) <= {"error", "code", "detail", "request_id"}
    assert body["code"] == code
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["error"]
    for secret in ("Traceback", "/secret", "/srv", "/tmp", ".py"):
        assert secret not in response.text
    return body


async def until(condition: Callable[[], bool]) -> None:
    """Return once it holds; fails where that takes too long."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)
