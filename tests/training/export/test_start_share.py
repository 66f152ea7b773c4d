"""A share of the bundle that a run began from, mixed into what is exported."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tandem.models.architectures.registry import build_model
from tandem.models.errors import ConfigError
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.steps.torch_graphs import AnyModel
from tandem.training.checkpoint import TrainingProgress, save_weights
from tandem.training.data.ancestry import mix_in_start
from tandem.training.export.exporting import export
from tandem.training.recipe import recipe_mapping
from tests.training.export.conftest import Exported


@pytest.fixture
def tuned(one: Exported) -> AnyModel:
    """The exported model, gone on from."""
    torch.manual_seed(5)
    model = copy.deepcopy(one.trained)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_weights_lie_between_start_and_own(one: Exported, tuned: AnyModel, share: float) -> None:
    """The products' weights do, their gains folded in: not the two factors, of which one says nothing alone."""
    own, start = copy.deepcopy(tuned), model_tensors(load_bundle_model(one.bundle))
    own.prepare_for_inference()
    mix_in_start(tuned, one.bundle, share)
    mixed = model_tensors(tuned)
    assert mixed.keys() == start.keys()
    for name, tensor in model_tensors(own).items():
        torch.testing.assert_close(mixed[name], share * start[name] + (1 - share) * tensor, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("wider", "start", "share", "complaint"),
    [
        (0, False, 0.3, "0.3 of the bundle that the run began from is to be mixed in: name it with --from"),
        (0, True, None, "say how much of it, such as --share 0.3"),
        (8, True, 0.3, "holds another model than the recipe describes"),
    ],
)
def test_what_cannot_be_mixed_is_refused(
    one: Exported, prepared: Path, tmp_path: Path, wider: int, start: bool, share: float | None, complaint: str
) -> None:
    recipe = replace(one.recipe, model=one.recipe.model | {"hidden": one.recipe.model["hidden"] + wider})
    sizes = tuple(vocabulary.size for vocabulary in one.bundle.source_vocabularies)
    model = build_model(recipe.architecture, recipe.model_config(sizes, one.bundle.target_vocabulary.size))
    weights, out = tmp_path / "weights.safetensors", tmp_path / "out"
    save_weights(weights, model_tensors(model), TrainingProgress(), recipe_mapping(recipe))
    with pytest.raises(ConfigError, match=complaint):
        export(prepared.parent, out, checkpoint=weights, start=one.bundle.path if start else None, share=share)
    assert not out.exists()
