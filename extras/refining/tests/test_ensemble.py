"""The bundle of an ensemble: what it takes from its members, what is refused, and that it is served like any other."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import pytest
import torch

from tandem.extras.refining.ensemble import Assembly, ensemble, ensemble_bundle
from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError, ConfigError, CorpusError
from tandem.models.search import translate_batch
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.vocabulary import WordVocabulary
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.models.architectures.examples import LEARNERS, batch, sentences, targets
from tests.training.export.conftest import Exported
from tests.training.toy import toy_recipe, toy_trainer

pytestmark = pytest.mark.slow  # three exports
MEMBERS = [member["architecture"] for member in LEARNERS["ensemble"]["members"]]


@pytest.fixture
def members(exports: Callable[[str], Exported]) -> list[Exported]:
    """The exported members."""
    return [exports(name) for name in MEMBERS]


@pytest.fixture
def together(exports: Callable[[str], Exported]) -> Exported:
    """The exported ensemble of them."""
    return exports("ensemble")


def changed(bundle: Bundle, folder: Path, **fields: Any) -> Path:
    """A copy of a bundle that says something else of itself."""
    copy = folder / "changed"
    shutil.copytree(bundle.path, copy)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    (copy / "manifest.json").write_text(json.dumps({**manifest, **fields}), encoding="utf-8")
    return copy


def test_it_predicts_the_mean_of_its_members(together: Exported, members: list[Exported]) -> None:
    """Of the members as their own bundles hold them."""
    model = load_bundle_model(together.bundle)
    target_BT = targets(2, 4)
    with torch.no_grad():
        sources = batch(sentences(model, (4, 2)))
        found = model.score(target_BT, model.encode(sources)).exp()
        own = [load_bundle_model(one.bundle) for one in members]
        scores = [torch.softmax(one.score(target_BT, one.encode(sources)), -1) for one in own]
    torch.testing.assert_close(found, (scores[0] + scores[1]) / 2)


def test_the_manifest_tells_of_all_members(together: Exported, members: list[Exported]) -> None:
    manifest, first = together.bundle.manifest, members[0].bundle.manifest
    assert manifest.name == together.bundle.path.name
    assert [one["architecture"] for one in manifest.config["members"]] == MEMBERS
    assert (manifest.task, manifest.decoding, manifest.limits) == (first.task, first.decoding, first.limits)
    assert manifest.training.corpora == first.training.corpora  # both had the same: once is enough
    assert (manifest.training.updates, manifest.training.target_tokens) == (14, 140)
    assert [one["name"] for one in manifest.training.recipe["members"]] == MEMBERS
    assert manifest.scores == ()
    assert "onnx/int8/step.onnx" in manifest.files


def test_limits_are_the_smallest_and_terms_are_all(
    members: list[Exported], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = [
        {"name": "toy", "licence": "CC0", "attribution": "nobody", "url": "", "segments": 500},
        {"name": "more", "licence": "MIT", "attribution": "someone", "url": "", "segments": 5},
    ]
    training = {"corpora": corpora, "recipe": {}, "updates": 1, "target_tokens": 1}
    limits = {"max_source_tokens": 7, "max_target_tokens": 99}
    other = changed(members[1].bundle, tmp_path, training=training, limits=limits, licence="MIT")
    assembly = Assembly("both", precisions=())
    with monkeypatch.context() as patched:
        patched.setattr("tandem.training.export.bundle.graph_modules", lambda model: {})
        with pytest.raises(BundleError, match="there is no 'encode' graph"):
            ensemble_bundle([members[0].bundle.path, other], tmp_path / "out", assembly)
    manifest = ensemble_bundle([members[0].bundle.path, other], tmp_path / "out", assembly).manifest
    assert (manifest.name, manifest.licence) == ("both", "MIT")  # the toy recipe names no licence
    assert (manifest.limits.max_source_tokens, manifest.limits.max_target_tokens) == (7, 11)
    assert [(one.name, one.segments) for one in manifest.training.corpora] == [("toy", 500), ("more", 5)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "summarize"}, "has the task 'summarize', but .* has 'translate'"),
        ({"source_languages": ["fr"]}, r"has the source_languages \('fr',\)"),
        ({"keep_unknown": True}, "has the keep_unknown True, but .* has False"),
        ({"target_language": "fr"}, "has the target_language 'fr', but .* has 'en'"),
    ],
)
def test_what_differs_is_named(members: list[Exported], tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    other = changed(members[1].bundle, tmp_path, **fields)
    with pytest.raises(BundleError, match=message):
        ensemble_bundle([members[0].bundle.path, other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_vocabularies_are_refused(
    members: list[Exported], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte by byte: the same words in another order are another vocabulary."""
    first, second = (one.bundle for one in members)
    words = second.target_vocabulary
    assert isinstance(words, WordVocabulary)
    pieces = [words.piece_of(token) for token in range(4, words.size)]
    object.__setattr__(second, "target_vocabulary", WordVocabulary(pieces[::-1]))
    by_path = {first.path: first, second.path: second}
    monkeypatch.setattr(Bundle, "load", staticmethod(by_path.__getitem__))
    try:
        with pytest.raises(BundleError, match="has another target vocabulary than") as raised:
            ensemble_bundle([first.path, second.path], tmp_path / "out")
    finally:
        object.__setattr__(second, "target_vocabulary", words)
    assert len(raised.value.faults) == 1


def test_ensembles_of_ensembles_and_of_one_are_refused(
    together: Exported, members: list[Exported], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="member 1 is an ensemble itself"):
        ensemble_bundle([members[0].bundle.path, together.bundle.path], tmp_path / "out")
    with pytest.raises(ConfigError, match="at least two bundles, but 1 is given"):
        ensemble_bundle([members[0].bundle.path], tmp_path / "out")
    with pytest.raises(ConfigError, match="int3"):
        ensemble_bundle([members[0].bundle.path] * 2, tmp_path / "out", Assembly(precisions=("int3",)))


def test_paths_are_looked_at_before_anything_is_exported(members: list[Exported], tmp_path: Path) -> None:
    one, two = (member.bundle.path for member in members)
    with pytest.raises(ConfigError, match="is given twice"):
        ensemble_bundle([one, two, one], tmp_path / "out")
    with pytest.raises(ConfigError, match="is one of its members"):
        ensemble_bundle([one, two], two, Assembly(overwrite=True))
    with pytest.raises(BundleError, match="replace it with --force"):
        ensemble_bundle([one, two], tmp_path)
    with pytest.raises(CorpusError, match="the text to calibrate on is empty"):
        ensemble_bundle([one, two], tmp_path / "out", Assembly(lines=[[]]))


def test_training_one_as_a_whole_is_refused(prepared: Path, tmp_path: Path) -> None:
    recipe = replace(toy_recipe(), architecture="ensemble", model=LEARNERS["ensemble"])
    with pytest.raises(ConfigError, match="train its members apart"):
        toy_trainer(recipe, prepared, tmp_path / "run").train()
    assert not list(tmp_path.rglob("*.safetensors"))


def test_text_must_fit_the_sources(members: list[Exported], tmp_path: Path) -> None:
    paths = [one.bundle.path for one in members]
    with pytest.raises(CorpusError, match="1 sources of equally many lines, but given are"):
        ensemble_bundle(paths, tmp_path / "out", Assembly(lines=[["a"], ["b"]]))
    with pytest.raises(ConfigError, match="has 1 sources, but --text is given 2 times"):
        ensemble(paths, tmp_path / "out", "", [tmp_path / "a", tmp_path / "b"])


def test_it_is_served_like_any_other(together: Exported) -> None:
    """The fused 8-bit graphs answer over HTTP; float32 finds what PyTorch finds."""
    bundle = together.bundle
    text = "a b c d"

    async def answer(precision: Literal["int8", "float32"]) -> tuple[httpx.Response, httpx.Response]:
        settings = Settings(bundles=(bundle.path,), precision=precision, workers=1, shutdown_timeout=5)
        app = create_app(settings)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                fields = {"q": text, "source": "de", "target": "en", "scores": True}
                return await client.post("/translate", json=fields), await client.get("/models")

    reply, models = asyncio.run(answer("int8"))
    assert reply.status_code == 200, reply.text
    assert models.json()[0]["architecture"] == "ensemble"
    exact, _ = asyncio.run(answer("float32"))
    vocabulary = bundle.source_vocabularies[0]
    source = (np.array([*vocabulary.encode(text), vocabulary.eos]),)
    detail = exact.json()["details"][0]["sentences"][0]
    (expected,) = translate_batch(TorchGraphs(load_bundle_model(bundle)), [source], bundle.manifest.decoding)
    assert detail["tokens"] == [bundle.target_vocabulary.piece_of(token) for token in expected[0].tokens]
    assert detail["score"] == pytest.approx(expected[0].score, abs=1e-3)
