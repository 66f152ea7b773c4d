"""What was written before an architecture had all its keys is the model that it was."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.models.architectures.ensemble import EnsembleConfig
from tandem.models.architectures.registry import FORMER, load_config, stored_keys
from tandem.models.bundle import Bundle, VocabularyFile, write_bundle
from tandem.models.config import to_mapping
from tandem.models.errors import CheckpointError
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.models.vocabulary import WordVocabulary
from tandem.training.checkpoint import TrainingProgress, read_progress, save_checkpoint
from tandem.training.loop.resuming import check_recipe
from tandem.training.optimisation.optim import OptimiserConfig, build_optimiser
from tandem.training.recipe import recipe_mapping
from tests.models.architectures.examples import TARGET_TYPES, VARIANTS, AnyModel, Case, batch, sentences, targets
from tests.models.bundle.manifests import small_manifest
from tests.training.toy import toy_recipe

OLD = {"layerwise": "post-norm", "multisource": "one-text-no-energy-bias"}
"""By architecture the variant that does what all did before it had the keys."""
old_cases = pytest.mark.parametrize("case", [Case(name, variant) for name, variant in OLD.items()], ids=str)


def test_every_later_key_is_tested() -> None:
    assert OLD.keys() == FORMER.keys()


def written_then(case: Case) -> tuple[AnyModel, dict[str, Any]]:
    """A model, and its configuration as it was written when the later keys were unknown."""
    model = case.build(torch.float32)
    model.prepare_for_inference()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())  # as bundles keep them
    config = to_mapping(model.config)
    for key in FORMER[case.architecture].keys:
        del config[key]
    return model, config


@old_cases
def test_a_bundle_without_the_keys_loads(case: Case, tmp_path: Path) -> None:
    model, config = written_then(case)
    words = WordVocabulary([f"w{number}" for number in range(TARGET_TYPES - 4)])
    file = VocabularyFile("words.txt", "words")
    manifest = small_manifest((file,), file, architecture=case.architecture, config=config)
    weights = {name: tensor.detach().numpy() for name, tensor in model_tensors(model).items()}
    write_bundle(tmp_path / "old", manifest, weights, {"words.txt": words})
    loaded = load_bundle_model(Bundle.load(tmp_path / "old"))
    assert loaded.config == model.config
    target_BT, sources = targets(2, 4), batch(sentences(model, (5, 3)))
    found, expected = (one.score(target_BT, one.encode(sources)) for one in (loaded, model))
    torch.testing.assert_close(found, expected)


@old_cases
def test_so_does_a_member_of_an_ensemble(case: Case) -> None:
    model, config = written_then(case)
    sizes = {key: config[key] for key in ("source_vocabularies", "target_vocabulary")}
    members = [{"architecture": case.architecture, "config": config}]
    ensemble = load_config("ensemble", sizes | {"members": members}, "old")
    assert isinstance(ensemble, EnsembleConfig)
    assert ensemble.configs() == (model.config,)


@old_cases
def test_a_checkpoint_tells_by_its_tensors(case: Case, tmp_path: Path) -> None:
    """A recipe may leave a key out for its default: the same words mean two models."""
    former = FORMER[case.architecture].keys
    for variant, expected in ((case.variant, former), (next(iter(VARIANTS[case.architecture])), {})):
        model = Case(case.architecture, variant).build(torch.float32)
        recipe = {"architecture": case.architecture, "model": {"dropout": 0.1}}
        path = tmp_path / f"{variant}.safetensors"
        save_checkpoint(path, model, build_optimiser(OptimiserConfig(), model), TrainingProgress(), recipe)
        assert read_progress(path)[1]["model"] == {"dropout": 0.1, **expected}


@old_cases
def test_such_a_run_goes_on_where_its_recipe_says_so(case: Case, tmp_path: Path) -> None:
    model, former = case.build(torch.float32), FORMER[case.architecture].keys
    recipe = dataclasses.replace(toy_recipe(), architecture=case.architecture, model={"dropout": 0.1})
    path = tmp_path / "checkpoint-1.safetensors"
    save_checkpoint(path, model, build_optimiser(OptimiserConfig(), model), TrainingProgress(), recipe_mapping(recipe))
    check_recipe(path, dataclasses.replace(recipe, model={"dropout": 0.1, **former}))
    with pytest.raises(CheckpointError, match=rf"model\.{next(iter(former))} is "):
        check_recipe(path, recipe)


def test_others_are_left_as_they_are() -> None:
    assert stored_keys("transformer", {"width": 8}, ["a"]) == {"width": 8}
    assert stored_keys("layerwise", {"norm": "deepnorm"}) == {"norm": "deepnorm"}
