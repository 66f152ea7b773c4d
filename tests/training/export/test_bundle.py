"""What an exported bundle holds, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tandem.models.architectures.ensemble import Ensemble
from tandem.models.architectures.protocol import Seq2SeqModel
from tandem.models.architectures.registry import ARCHITECTURES, build_model
from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError, ConfigError, CorpusError
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.steps.torch_graphs import AnyModel
from tandem.training.checkpoint import TrainingProgress, load_into, load_model_tensors, save_checkpoint
from tandem.training.export.bundle import Shipping, add_precision, export_bundle, rounded
from tandem.training.recipe import recipe_mapping
from tests.training.export.conftest import Exported


def test_manifest_tells_recipe_and_data(one: Exported) -> None:
    manifest = one.bundle.manifest
    assert (manifest.name, manifest.architecture, manifest.task) == ("dpn", "dpn", "translate")
    assert manifest.training.corpora[0].attribution == "nobody"
    assert manifest.training.corpora[0].segments == 160
    training = manifest.training
    assert (training.updates, training.target_tokens, training.seconds) == (7, 70, 3.5)
    assert manifest.training.recipe["training"]["updates"] == one.recipe.training.updates
    assert (manifest.limits.max_source_tokens, manifest.limits.max_target_tokens) == (11, 11)
    assert manifest.config["target_vocabulary"] == one.bundle.target_vocabulary.size


def test_checkpoint_and_bundle_hold_one_model(exported: Exported, tmp_path: Path) -> None:
    """What a checkpoint gives a fresh model is, ready for inference and in fp16, what the bundle gives: every bit."""
    if not ARCHITECTURES[exported.bundle.manifest.architecture][1].trainable:
        pytest.skip("not trained as a whole: it is made of bundles")
    path = tmp_path / "checkpoint-00000007.safetensors"
    optimiser = torch.optim.SGD(exported.trained.parameters(), lr=0.1)
    save_checkpoint(path, exported.trained, optimiser, TrainingProgress(update=7), recipe_mapping(exported.recipe))
    fresh = build_model(exported.recipe.architecture, exported.trained.config)
    load_into(fresh, load_model_tensors(path), str(path))
    fresh.prepare_for_inference()
    assert_same_weights(load_bundle_model(exported.bundle), halved(fresh))


@pytest.mark.slow
def test_an_ensemble_holds_its_members_weights(exports: Callable[[str], Exported]) -> None:
    """Those of their bundles, every bit."""
    together = load_bundle_model(exports("ensemble").bundle)
    assert isinstance(together, Ensemble)
    members = [load_bundle_model(exports(one.architecture).bundle) for one in together.config.members]
    for found, expected in zip(together.members, members, strict=True):
        assert isinstance(found, Seq2SeqModel)
        assert_same_weights(found, halved(expected))
    assert len(model_tensors(together)) == sum(len(model_tensors(member)) for member in members)


def halved(model: AnyModel) -> dict[str, Tensor]:
    """A model's tensors as 16 bits hold them."""
    tensors = model_tensors(model)
    return {name: one.half().float() if one.is_floating_point() else one for name, one in tensors.items()}


def assert_same_weights(model: AnyModel, expected: dict[str, Tensor]) -> None:
    found = model_tensors(model)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].equal(tensor), name


def test_shipped_and_built_graphs_are_told_apart(one: Exported) -> None:
    files = one.bundle.manifest.files
    assert {f"onnx/int8/{name}" for name in ("encode.onnx", "step.onnx", "weights.bin")} <= files.keys()
    assert "onnx/graphs.json" in files
    assert not [name for name in files if name.startswith("torchscript")]
    assert one.bundle.file("torchscript/align.pt").is_file()


def test_equal_vocabularies_are_stored_once(one: Exported) -> None:
    assert sorted(name for name in one.bundle.manifest.files if name.endswith(".words")) == [
        "source.words",
        "target.words",
    ]


def test_unknown_precision_is_refused(one: Exported, prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="precision must be one of float32, int8, float16, torchscript, but is 'int3'"
    ):
        add_precision(one.bundle.path, "int3")
    with pytest.raises(ConfigError, match="int3"):
        export_bundle(one.trained, one.recipe, prepared, tmp_path / "new", Shipping(precisions=("int3",)))


def test_eight_bits_need_text(one: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.training.export.bundle.export_graphs", lambda model: ({}, {}))
    with pytest.raises(CorpusError, match="calibrated on text"):
        add_precision(one.bundle.path, "int8")


def test_weights_of_another_model_are_refused(one: Exported, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(one.bundle.path, copy)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["config"]["width"] *= 2
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(BundleError, match="has shape"):
        load_bundle_model(Bundle.load(copy))


def test_rounding_keeps_what_fp16_holds(one: Exported) -> None:
    for tensor in model_tensors(rounded(one.trained)).values():
        array = tensor.detach().numpy()
        np.testing.assert_array_equal(array, array.astype(np.float16).astype(np.float32))
