"""The model that a recipe trains, as its checkpoints have it."""

from __future__ import annotations

from typing import Any

from tandem.models.architectures.protocol import ModelConfig, Seq2SeqModel
from tandem.models.architectures.registry import build_model
from tandem.training.optimisation.adapters import add_adapters
from tandem.training.optimisation.freezing import freeze
from tandem.training.recipe import Recipe


def trainable_model(recipe: Recipe, config: ModelConfig) -> Seq2SeqModel[Any, Any]:
    """A recipe's model as it is trained and kept in checkpoints: with its adapters, and with what is frozen.

    Raises:
        ConfigError: what is to be frozen is nothing of the model, or all of it.
    """
    model = build_model(recipe.architecture, config)
    if recipe.training.adapter_rank:
        add_adapters(model, recipe.training.adapter_rank, recipe.training.adapter_alpha)
    freeze(model, recipe.training.freeze)
    return model
