"""What an exported bundle holds, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from models.bundle import Bundle
from models.errors import BundleError, ConfigError, CorpusError
from models.loading import load_bundle_model, model_tensors
from tests.training.export.conftest import Exported
from training.export.bundle import Shipping, add_precision, export_bundle, rounded


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


def test_weights_are_the_rounded_model(one: Exported) -> None:
    expected = model_tensors(rounded(one.trained))
    found = model_tensors(load_bundle_model(one.bundle))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


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
    with pytest.raises(ConfigError, match="precision must be one of float32, int8, torchscript, but is 'int3'"):
        add_precision(one.bundle.path, "int3")
    with pytest.raises(ConfigError, match="int3"):
        export_bundle(one.trained, one.recipe, prepared, tmp_path / "new", Shipping(precisions=("int3",)))


def test_eight_bits_need_text(one: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.export.bundle.export_graphs", lambda model: ({}, {}))
    with pytest.raises(CorpusError, match="calibrated on text"):
        add_precision(one.bundle.path, "int8")


def test_weights_of_another_model_are_refused(one: Exported, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(one.bundle.path, copy)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["config"]["width"] *= 2
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(BundleError, match="has the shape"):
        load_bundle_model(Bundle.load(copy))


def test_rounding_keeps_what_fp16_holds(one: Exported) -> None:
    for tensor in model_tensors(rounded(one.trained)).values():
        array = tensor.detach().numpy()
        np.testing.assert_array_equal(array, array.astype(np.float16).astype(np.float32))
