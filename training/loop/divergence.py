"""Training that diverged: what is said of it, and which checkpoint it is to go on from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tandem.models.architectures.protocol import Seq2SeqModel
from tandem.models.errors import ConfigError, DecodingError
from tandem.models.search.hypotheses import SentenceError
from tandem.models.steps.loading import model_tensors
from tandem.training.checkpoint import TrainingProgress, checkpoints
from tandem.training.recipe import Recipe

_ASIDE = "diverged"  # the name of a checkpoint that is not gone on from


class DivergenceError(ConfigError):
    """A training diverged, as one with too high a learning rate does: others of a series may go on."""


def fault_of(values: Mapping[str, float], metric: str) -> str:
    """What a validation found that no model that learns has, in words; "" where all is well.

    A model that is best by BLEU is not one whose loss is no number.
    """
    wrong = {name: values[name] for name in ("loss", metric) if not math.isfinite(values.get(name, 0.0))}
    return " and ".join(f"the validation's {name} is {value}" for name, value in wrong.items())


def fault_of_search(error: DecodingError) -> str:
    """The same of a validation whose search could not go on."""
    count = f" for {len(error.ids):,} sentences" if isinstance(error, SentenceError) else ""
    return f"the probabilities in the validation's search are not finite{count}"


def fault_of_weights(model: Seq2SeqModel[Any, Any]) -> str:
    """The same of weights, which a checkpoint must not hold."""
    wrong = [name for name, tensor in model_tensors(model).items() if not bool(torch.isfinite(tensor).all())]
    return f"weights are not finite in {wrong[0]} and {len(wrong) - 1} more" if wrong else ""


def set_aside(folder: Path, validated: int) -> None:
    """Rename the checkpoints that were written after the last good validation, which may have diverged already.

    They are not gone on from, averaged or exported then, but can be looked at.

    Args:
        folder: of the checkpoints.
        validated: the update of that validation; 0 = there was none.
    """
    for path in checkpoints(folder):
        number = path.stem.rpartition("-")[2]
        if int(number) > validated:
            path.replace(folder / f"{_ASIDE}-{number}{path.suffix}")


def diverged(fault: str, progress: TrainingProgress, recipe: Recipe, good: Path | None) -> DivergenceError:
    """The error that ends such a training.

    Args:
        fault: what was found.
        progress: when.
        recipe: whose learning rate was too high.
        good: the checkpoint that ``--resume`` goes on from; None where there is none.
    """
    rate = recipe.optimiser.learning_rate
    lower = f"set a learning_rate below {rate:g}, or a clip_norm below {recipe.optimiser.clip_norm:g}"
    if not recipe.optimiser.clip_norm:
        lower = f"set a learning_rate below {rate:g}, or a clip_norm"
    anew = " or in bf16" if recipe.training.precision == "fp16" else ""
    if good is None:
        remedy = f"no checkpoint is known to be good: {lower}, and begin anew, with a longer warm-up{anew}"
    else:
        remedy = f"{lower}, and --resume, which goes on from {good}; or begin anew, with a longer warm-up{anew}"
    return DivergenceError(f"training diverged: {fault} after update {progress.update}: {remedy}")
