"""The same answer whatever the batch, to the last bit: tokens, scores and attention of the shipped model on a CPU.

ONNX Runtime with one thread. What a sentence is decoded beside, when it joins and who leaves must change nothing; every
test compares with the sentence decoded alone, and floats by their bits.
"""

from __future__ import annotations

import asyncio
import lzma
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.bundle import Bundle
from tandem.models.search import Array, DecodeBatch, Graphs, Hypothesis, Sampling, SearchOptions, Sentence
from tandem.models.translation.translator import encode_lines
from tandem.models.vocabulary import EOS
from tandem.service.engine import Decoded, Engine, EngineOptions, Job, Priority
from tandem.service.runtimes import open_graphs
from tests.models.search.tables import run_out
from tests.service.support import PATIENCE
from tests.shipped import ROOT, SHIPPED

CORPORA = Path(os.environ.get("CORPORA", ROOT / "corpora"))  # where corpora lie, if they are there
CORPUS = CORPORA / "tatoeba-de-en" / "test.de.xz"

TEXT = (
    "der Nachbar bringt heute Abend drei kleine Katzen in den Garten hinter dem alten Haus und fragt ob jemand weiß "
    "wohin sie gehören weil es regnet obwohl niemand zu Hause war Züge fahren selten pünktlich aber morgen früh um "
    "sieben wollen wir trotzdem nach Hamburg reisen dort wohnt meine Schwester mit ihren Kindern am Wasser "
)
# Padding and blocks of matrix kernels change at powers of two: lengths on both sides of each, and the very short.
SHORT = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 19, 21, 23, 24, 27, 29, 31, 32, 33, 35, 39, 41)
LENGTHS = (*SHORT, 47, 49, 55, 60, 63, 64, 65, 70, 97, 128, 129, 150)
PLAIN = SearchOptions(beam_size=5, max_length=20)
KINDS = (
    PLAIN,
    replace(PLAIN, n_best=5, length_penalty=0.6, length_penalty_form="gnmt"),
    replace(PLAIN, prefix=(40, 51)),
    replace(PLAIN, suppressed=(5, 17, 60, 61), max_length=9),
    replace(PLAIN, min_length=12, no_repeat_ngram_size=2),
    replace(PLAIN, sampling=Sampling(temperature=1.3, top_k=50, seed=7), n_best=3, max_length=12),
    replace(PLAIN, exhaustive=True, n_best=2, max_length=14),
    replace(PLAIN, coverage_penalty=0.2, n_best=3, max_length=14),
    replace(PLAIN, attention=True, max_length=11),
)


def bits(hypotheses: Sequence[Hypothesis]) -> tuple[Any, ...]:
    """All that a caller gets, floats by their bits."""
    return tuple(
        (
            one.tokens,
            one.finished,
            one.score.hex(),
            one.normalised.hex(),
            tuple(score.hex() for score in one.token_scores),
            tuple((weights.shape, weights.tobytes()) for weights in one.attention or ()),
        )
        for one in hypotheses
    )


@dataclass
class Answers:
    """What sentences get when they are decoded alone, looked up once."""

    graphs: Graphs
    known: dict[tuple[bytes, SearchOptions], tuple[Any, ...]] = field(default_factory=dict)

    def alone(self, source: Array, options: SearchOptions) -> tuple[Any, ...]:
        key = (source.tobytes(), options)
        if key not in self.known:
            batch = DecodeBatch(self.graphs, beam_size=options.beam_size)
            batch.join([Sentence(0, (source,), options)])
            self.known[key] = next(iter(_run(batch).values()))
        return self.known[key]

    def check(self, sentences: Mapping[Any, tuple[Array, SearchOptions]], found: Mapping[Any, tuple[Any, ...]]) -> None:
        """Every answer is the one that its sentence gets alone."""
        wrong = [name for name, answer in found.items() if answer != self.alone(*sentences[name])]
        described = [(len(sentences[name][0]), sentences[name][1]) for name in wrong]
        assert not wrong, f"{len(wrong)} of {len(found)} differ (source tokens, options): {described[:5]}"


def _run(batch: DecodeBatch) -> dict[Any, tuple[Any, ...]]:
    return {name: bits(hypotheses) for name, hypotheses in run_out(batch).items()}


@pytest.fixture(scope="module", params=["int8", pytest.param("float32", marks=pytest.mark.slow)])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Graphs]:
    """The shipped bundle and its graphs of a precision; those that are not shipped are built from its weights.

    Eight bits hide much of what changes in the last one: float32 is the sharper test.
    """
    precision, folder = request.param, SHIPPED
    if precision != "int8":
        export = pytest.importorskip("tandem.training.export.bundle", reason="building graphs needs the train extra")
        folder = tmp_path_factory.mktemp("same") / SHIPPED.name
        shutil.copytree(SHIPPED, folder, ignore=shutil.ignore_patterns("float32", "torchscript"))
        export.add_precision(folder, precision)
    bundle = Bundle.load(folder)
    return bundle, open_graphs(bundle, "onnx", precision, threads=1)


@pytest.fixture(scope="module")
def answers(running: tuple[Bundle, Graphs]) -> Answers:
    return Answers(running[1])


@pytest.fixture(scope="module")
def sources(running: tuple[Bundle, Graphs]) -> list[Array]:
    """One source of every length, EOS included."""
    vocabulary = running[0].source_vocabularies[0]
    rng = np.random.default_rng(5)
    found = []
    for length in LENGTHS:
        start = TEXT.index(" ", int(rng.integers(len(TEXT) - 1)))
        found.append(np.array([*vocabulary.encode(TEXT[start + 1 :] + TEXT * 4)[: length - 1], EOS], np.int64))
    assert [len(one) for one in found] == list(LENGTHS)
    return found


def test_in_a_batch_of_64(answers: Answers, sources: list[Array]) -> None:
    sentences = {n: (sources[n % len(sources)], PLAIN) for n in range(64)}
    batch = DecodeBatch(answers.graphs, beam_size=5)
    batch.join([Sentence(n, (source,), options) for n, (source, options) in sentences.items()])
    found = _run(batch)
    assert len(found) == 64
    answers.check(sentences, found)


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_with_other_options_beside_it(answers: Answers, sources: list[Array], turn: int) -> None:
    """N-best lists, prefixes, bans, bounds, samples, coverage and attention in one batch, each beside other lengths."""
    sentences = {n: (source, KINDS[(n * (2 * turn + 1) + turn) % len(KINDS)]) for n, source in enumerate(sources)}
    batch = DecodeBatch(answers.graphs, beam_size=5)
    batch.join([Sentence(n, (source,), options) for n, (source, options) in sentences.items()])
    found = _run(batch)
    assert len(found) == len(sources)
    answers.check(sentences, found)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_joining_late_while_others_leave(answers: Answers, sources: list[Array], seed: int) -> None:
    """Sentences join a few at a time in random order; some mates are taken away half-way, others are done early."""
    rng = np.random.default_rng(seed)
    beam = (5, 1, 3)[seed]
    kinds = [replace(one, beam_size=beam, n_best=min(one.n_best, beam)) for one in KINDS]
    sentences = {n: (source, kinds[int(rng.integers(len(kinds)))]) for n, source in enumerate(sources)}
    left = [int(n) for n in rng.permutation(len(sentences))]
    batch, gone = DecodeBatch(answers.graphs, beam_size=beam), set[int]()
    found: dict[Any, tuple[Any, ...]] = {}
    while left or len(batch):
        count = int(rng.integers(0, 5))
        joining, left = left[:count], left[count:]
        batch.join([Sentence(n, (sentences[n][0],), sentences[n][1]) for n in joining])
        if len(batch.ids) > 4 and rng.random() < 0.2:
            gone.add(leaving := int(str(rng.choice([int(str(one)) for one in batch.ids]))))
            batch.remove([leaving])
        if len(batch):
            found |= {one.id: bits(one.hypotheses) for one in batch.step()}
    assert found.keys() | gone == sentences.keys()
    answers.check(sentences, found)


async def _through_the_engine(
    bundle: Bundle, graphs: Graphs, sentences: Mapping[int, tuple[Array, SearchOptions]], workers: int
) -> dict[int, tuple[Any, ...]]:
    """Decode with several workers, arrivals spread over the running batches, a few of them taken back."""
    rng = np.random.default_rng(1)
    engine = Engine(EngineOptions(workers=workers))
    engine.add(bundle, graphs)
    engine.start()
    name = bundle.manifest.name
    futures: dict[int, asyncio.Future[Decoded]] = {}
    try:
        waiting = [int(n) for n in rng.permutation(list(sentences))]
        while waiting:
            count = int(rng.integers(1, 6))
            arriving, waiting = waiting[:count], waiting[count:]
            jobs = [
                Job(name, (tuple(sentences[n][0].tolist()),), sentences[n][1], Priority(int(rng.integers(2))))
                for n in arriving
            ]
            futures |= dict(zip(arriving, engine.submit(jobs), strict=True))
            for extra in engine.submit(jobs[:1]):  # a client who hangs up
                extra.cancel()
            going = [one for one in futures.values() if not one.done()]
            if len(going) > 24:
                await asyncio.wait(going, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        return {n: bits((await asyncio.wait_for(one, PATIENCE)).hypotheses) for n, one in futures.items()}
    finally:
        await asyncio.to_thread(engine.stop, PATIENCE)


@pytest.mark.anyio
async def test_through_an_engine_with_several_workers(
    running: tuple[Bundle, Graphs], answers: Answers, sources: list[Array]
) -> None:
    kinds = [*KINDS, replace(PLAIN, beam_size=1), replace(PLAIN, beam_size=3, n_best=2)]
    sentences = {n: (source, kinds[n % len(kinds)]) for n, source in enumerate([*sources, *sources[::-1]])}
    found = await _through_the_engine(*running, sentences, workers=3)
    assert found.keys() == sentences.keys()
    answers.check(sentences, found)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_test_set(running: tuple[Bundle, Graphs], answers: Answers) -> None:
    """Every second sentence alone, in batches of 64 as they come and sorted by length, and through an engine."""
    if not CORPUS.exists():
        pytest.skip(f"needs {CORPUS.parent.name}/{CORPUS.name} in the folder that CORPORA names, or in corpora")
    bundle, graphs = running
    lines = lzma.decompress(CORPUS.read_bytes()).decode("utf-8").splitlines()[::2]
    encoded = encode_lines(bundle.source_vocabularies[0], lines, bundle.manifest.limits.max_source_tokens)
    options = replace(bundle.manifest.decoding, n_best=bundle.manifest.decoding.beam_size)
    sentences = {n: (source, options) for n, source in enumerate(encoded)}
    by_length = sorted(sentences, key=lambda n: len(sentences[n][0]))
    for order in (list(sentences), by_length):
        for start in range(0, len(order), 64):
            batch = DecodeBatch(graphs, beam_size=options.beam_size)
            batch.join([Sentence(n, (sentences[n][0],), options) for n in order[start : start + 64]])
            answers.check(sentences, _run(batch))
    found = await _through_the_engine(bundle, graphs, sentences, workers=2)
    assert found.keys() == sentences.keys()
    answers.check(sentences, found)
