"""Confidence of sentences and words in `details`: of one model, of two in a row, and where there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.models.search import Array, Hypothesis
from tandem.models.search.confidence import Confidence, Evidence, Reliability, Scale
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.service.aligning import AligningGraphs
from tests.service.support import Served, make_engine, running, served, tiny_bundle
from tests.service.translation.test_pivot import chained

pytestmark = pytest.mark.anyio
NOTHING = Reliability(0.5, ())
LONGER_IS_WORSE = Scale((0.0, 0.0, -1.0), (-6.0, 0.0), (0.1, 0.9))
BY_LEAST_AND_MEAN = Scale((0.5, 0.3, 0.2), (-30.0, 0.0), (0.05, 0.95))
KNOWN = Confidence(LONGER_IS_WORSE, BY_LEAST_AND_MEAN, NOTHING, NOTHING)
ATTENTIVE = replace(
    KNOWN,
    attentive_sentences=Scale((0.0, 0.0, 0.0, 1.0, -1.0), (-1.0, 0.0), (0.0, 1.0)),
    attentive_words=Scale((0.0, 0.0, 0.0, -0.5, 1.0), (0.0, 1.0), (0.0, 0.8)),
)
TEXT = "Guten Morgen. Das Haus ist alt."


def expected(sentence: dict[str, Any]) -> tuple[float, list[tuple[str, float]]]:
    """What the scales above say of a sentence of the reply, from its tokens and their scores alone."""
    scores = sentence["token_scores"]
    length = np.interp(-np.log(len(scores)), (-6, 0), (0.1, 0.9))
    pieces = [re.sub("<0x(..)>", lambda byte: chr(int(byte[1], 16)), piece) for piece in sentence["tokens"]]
    starts = np.cumsum([piece.startswith("\u2581") for piece in pieces])
    words = []
    for _, group in groupby(zip(starts, pieces, scores[:-1], strict=True), key=lambda one: one[0]):
        written = [(piece, score) for _, piece, score in group if piece != "."]
        own = [score for _, score in written]
        weighed = 0.5 * min(own) + 0.3 * np.mean(own) + 0.2 * np.mean(scores)
        word = "".join(piece for piece, _ in written).removeprefix("\u2581")
        words.append((word, float(np.interp(weighed, (-30, 0), (0.05, 0.95)))))
    return float(length), words


def spelled(sentence: dict[str, Any], text: str) -> list[tuple[str, float]]:
    return [(text[word["start"] : word["end"]], word["confidence"]) for word in sentence["words"]]


async def sentences_of(service: Served, q: str, **fields: Any) -> tuple[str, list[dict[str, Any]]]:
    body = (await service.translate(q, **fields)).json()
    return body["translatedText"], body["details"][0]["sentences"]


async def test_sentences_and_words_are_judged_by_their_scores(tmp_path: Path) -> None:
    async with served({"de-en": tiny_bundle(tmp_path, confidence=KNOWN)}) as service:
        text, sentences = await sentences_of(service, TEXT, scores=True, prefix="Haus")  # which the model did not want
    assert len(sentences) == 2
    for sentence in sentences:
        confidence, words = expected(sentence)
        assert sentence["confidence"] == pytest.approx(confidence, abs=1e-3)
        assert [word for word, _ in spelled(sentence, text)] == [word for word, _ in words]
        np.testing.assert_allclose([c for _, c in spelled(sentence, text)], [c for _, c in words], atol=1e-3)
    forced, *others = spelled(sentences[0], text)
    assert forced[0] == "Haus" and forced[1] < 0.5 < min(confidence for _, confidence in others)
    assert [word for word, _ in spelled(sentences[1], text)] == ["Das", "Haus", "ist", "alt"]


async def test_nothing_is_said_of_hidden_parts(tmp_path: Path) -> None:
    async with served({"de-en": tiny_bundle(tmp_path, confidence=KNOWN)}) as service:
        text, (sentence,) = await sentences_of(service, "Das Haus kostet 1.000 Euro", protect=["numbers"], details=True)
        assert "1.000" in text
        assert "1.000" not in [word for word, _ in spelled(sentence, text)]
        plain = (await service.translate("123", details=True)).json()
        assert plain["details"] == [{"sentences": []}]


async def test_a_bundle_that_was_not_calibrated_says_nothing(service: Served) -> None:
    _, (sentence, _) = await sentences_of(service, TEXT, scores=True)
    assert "confidence" not in sentence and "words" not in sentence


async def test_of_two_models_both_count(tmp_path: Path) -> None:
    """The second one's confidence is worth what the first one's sentence is worth."""
    async with chained(tmp_path / "both", of=({"confidence": KNOWN}, {"confidence": KNOWN})) as chain:
        body = (await chain.translate(TEXT, scores=True)).json()
    text = body["translatedText"]
    for sentence in body["details"][0]["sentences"]:
        confidence, words = expected(sentence)  # the copy between has as many tokens
        assert sentence["confidence"] == pytest.approx(confidence**2, abs=1e-3)
        np.testing.assert_allclose(
            [c for _, c in spelled(sentence, text)], [c * confidence for _, c in words], atol=1e-3
        )


@pytest.mark.parametrize("of", [({"confidence": KNOWN}, {}), ({}, {"confidence": KNOWN})], ids=["first", "last"])
async def test_of_two_models_one_is_not_enough(tmp_path: Path, of: Any) -> None:
    async with chained(tmp_path, of=of) as chain:
        body = (await chain.translate("Guten Morgen", details=True)).json()
    assert not {"confidence", "words"} & body["details"][0]["sentences"][0].keys()


@dataclass
class Watched(AligningGraphs):
    """Each token looks at the one of its place alone, and the end at the end: one of T tokens. Says what was run."""

    ran: set[str] = field(default_factory=set)

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.ran.add(graph)
        return super().run(graph, inputs)


@pytest.mark.parametrize(("confidence", "aligns"), [(ATTENTIVE, True), (ATTENTIVE, False), (KNOWN, True)])
async def test_attention_counts_where_it_was_calibrated_and_is_there(
    tmp_path: Path, confidence: Confidence, aligns: bool
) -> None:
    bundle = tiny_bundle(tmp_path, confidence=confidence)
    graphs = Watched(bundle.target_vocabulary.size)
    graphs.specs = {name: spec for name, spec in graphs.specs.items() if aligns or name != "align"}
    async with running(create_app(Settings(shutdown_timeout=5), make_engine((bundle, graphs)))) as client:
        asked = {"q": TEXT, "source": "de", "target": "en"}
        graphs.ran.clear()
        await client.post("/translate", json=asked)
        assert "align" not in graphs.ran
        reply = (await client.post("/translate", json=asked | {"scores": True})).json()
    seen = aligns and confidence is ATTENTIVE
    assert ("align" in graphs.ran) == seen
    for sentence in reply["details"][0]["sentences"]:
        of_sentence, of_words = expected(sentence)
        if seen:
            of_sentence, of_words = 1 - 1 / len(sentence["token_scores"]), [(word, 0.8) for word, _ in of_words]
        assert sentence["confidence"] == pytest.approx(of_sentence, abs=1e-3)
        assert [one["confidence"] for one in sentence["words"]] == pytest.approx([c for _, c in of_words], abs=1e-3)


async def test_each_model_of_two_counts_as_it_was_calibrated(tmp_path: Path) -> None:
    async with chained(tmp_path, of=({"confidence": ATTENTIVE}, {"confidence": KNOWN})) as chain:
        (reply,) = (await chain.translate(TEXT, scores=True)).json()["details"]
    for sentence in reply["sentences"]:
        before = 1 - 1 / len(sentence["token_scores"])
        assert sentence["confidence"] == pytest.approx(before * expected(sentence)[0], abs=1e-3)


@pytest.mark.parametrize("sources", [0, 1, 2])
def test_what_is_weighed_of_attention(sources: int) -> None:
    """Of one source alone: its largest weights, its end, and what several tokens look at."""
    weights = np.array([[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.25, 0.25, 0.5]], np.float32)
    attention = (weights,) * sources or None
    evidence = Evidence.of(Hypothesis((7, 8), -3.0, -1.0, True, (-1.0, -1.5, -0.5), attention))
    of_sentence, (both, second) = evidence.of_sentence(), evidence.of_words([[0, 1], [1]])
    assert of_sentence[:3] == pytest.approx([-1.0, -1.5, np.log(3)])
    assert both[:3] == pytest.approx([-1.5, -1.25, -1.0])
    seen = sources == 1
    assert of_sentence[3:] == pytest.approx([np.log([0.8, 0.5, 0.5]).mean(), 0.8 / 3] if seen else [])
    assert both[3:] == pytest.approx([np.log(1.55), 0.8] if seen else [])
    assert second[3:] == pytest.approx([np.log(1.55), 0.5] if seen else [])
