"""A real model of several sources through the whole service, in all three runtimes."""

from __future__ import annotations

import json
import shutil
import weakref
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import pytest

from tandem.models.bundle import Bundle, Vocabularies, VocabularyFile, add_built
from tandem.models.config import to_mapping
from tandem.models.search import SearchOptions, translate_batch
from tandem.service.app import create_app
from tandem.service.ports import Extra
from tandem.service.runtimes import Placement, open_graphs
from tandem.service.settings import Settings
from tests.service.support import running, tiny_bundle, tiny_vocabulary

torch = pytest.importorskip("torch")
Runtime = Literal["onnx", "torchscript", "torch"]
pytestmark = pytest.mark.anyio
SOURCE, TRANSLATION = "one two three", "das haus ist alt"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A post-editor with random weights and TorchScript."""
    from tandem.models.architectures.registry import build_model, load_config
    from tandem.models.steps.loading import load_bundle_model, model_tensors
    from tandem.training.export.torchscript import trace_graphs

    size = tiny_vocabulary().size
    keys = {"embedding": 8, "encoder_width": 8, "attention_width": 8, "decoder_width": 8, "strategy": "hierarchical"}
    config = load_config("multisource", {"source_vocabularies": [size] * 2, "target_vocabulary": size, **keys}, "test")
    torch.manual_seed(0)
    model = build_model("multisource", config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.4)
    weights = {name: tensor.detach().numpy() for name, tensor in model_tensors(model).items()}
    file = VocabularyFile("source.model")
    folder: Path = tmp_path_factory.mktemp("several")
    made = tiny_bundle(
        folder,
        "repair",
        task="postedit",
        source_languages=("en", "de"),
        target_language="de",
        architecture="multisource",
        config=to_mapping(config),
        weights=weights,
        vocabularies=Vocabularies((file, file), file),
        decoding=SearchOptions(beam_size=3, max_length=12),
    )
    final = load_bundle_model(made)
    add_built(made.path, "torchscript", trace_graphs(final))
    return Bundle.load(made.path)


@pytest.fixture(
    scope="module",
    params=[pytest.param("onnx", marks=pytest.mark.slow), "torchscript", "torch"],  # exporting is slow
)
def runtime(request: pytest.FixtureRequest, bundle: Bundle) -> Runtime:
    """Each runtime, with the graphs that it runs."""
    runtime: Runtime = request.param
    if runtime == "onnx":
        from tandem.training.export.bundle import add_precision

        add_precision(bundle.path, "float32")
    return runtime


def settings(path: Path, runtime: Runtime) -> Settings:
    return Settings(bundles=(path,), runtime=runtime, precision="float32", workers=1, shutdown_timeout=5)


def expected(bundle: Bundle, *texts: str) -> tuple[str, float]:
    """Text and score of PyTorch's best hypothesis, with the tokens that users never get left out."""
    from tandem.models.steps.loading import load_bundle_model
    from tandem.models.steps.torch_graphs import TorchGraphs
    from tandem.service.bundles.served import ServedModel
    from tandem.service.translation.plans import search_options
    from tandem.service.translation.requests import DecodeRequest

    model = ServedModel.of(bundle)
    options = search_options(DecodeRequest(q=texts, details=True), model, Settings())
    sources = tuple(np.array(ids) for ids in model.encode(texts))
    ((best,),) = translate_batch(TorchGraphs(load_bundle_model(bundle)), [sources], options)
    return model.decode(best, texts), best.score


def check(reply: Any, wanted: tuple[str, float]) -> None:
    assert reply.status_code == 200, reply.text
    assert reply.json()["translatedText"] == wanted[0]
    assert reply.json()["details"][0]["sentences"][0]["score"] == pytest.approx(wanted[1], abs=1e-3)


async def test_postedit(bundle: Bundle, runtime: Runtime) -> None:
    async with running(create_app(settings(bundle.path, runtime))) as client:
        fields = {"q": SOURCE, "translation": TRANSLATION, "scores": True}
        check(await client.post("/postedit", json=fields), expected(bundle, SOURCE, TRANSLATION))


async def test_two_languages_at_once(bundle: Bundle, runtime: Runtime, tmp_path: Path) -> None:
    """The same model as a translator from English and German together."""
    copy = tmp_path / "together"
    shutil.copytree(bundle.path, copy)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    changes = {"task": "translate", "target_language": "fr", "name": "together"}
    (copy / "manifest.json").write_text(json.dumps(manifest | changes), encoding="utf-8")
    async with running(create_app(settings(copy, runtime))) as client:
        fields = {"q": TRANSLATION, "source": "de", "target": "fr", "others": {"en": SOURCE}, "scores": True}
        check(await client.post("/translate", json=fields), expected(bundle, SOURCE, TRANSLATION))


def test_torch_decodes_with_the_general_search_unless_an_extra_brings_one(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tandem.models.steps.device_search import DeviceCounters, DeviceSearch, SearchRoom
    from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
    from tandem.service.runtimes import torch as runtime

    class Own(DeviceSearch):
        def __init__(self, model: AnyModel, room: SearchRoom) -> None:
            self.slots, self.counters, self.device = room.sentences, DeviceCounters(sentences=7), torch.device("cpu")
            self.room = room

        specs: Any = None

        def run(self, *_: Any, **__: Any) -> NoReturn:
            raise AssertionError("nothing is decoded")

        start_batch = run

    brought: tuple[Extra, ...] = ()
    monkeypatch.setattr(runtime, "extras", lambda: brought)
    monkeypatch.setattr(runtime, "_opened", weakref.WeakSet())  # without those of other tests
    general = open_graphs(bundle, "torch")
    assert type(general) is TorchGraphs and not list(runtime.device_work())
    assert runtime.device_memory() == {}  # it is on the CPU
    brought = (Extra(name="other"), Extra(name="own", searches={"cpu": "own.search:open"}))
    monkeypatch.setattr(runtime, "load", {"own.search:open": Own}.__getitem__)
    found = open_graphs(bundle, "torch", placement=Placement(sentences=5, memory=0.4))
    limits = bundle.manifest.limits
    assert isinstance(found, Own) and found.room == SearchRoom(
        sentences=5, source=limits.max_source_tokens + 1, target=limits.max_target_tokens + 1, memory=0.4
    )
    assert list(runtime.device_work()) == [("cpu", found.counters)]
