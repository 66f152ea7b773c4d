"""What came of a run: its best validation and the translations there, kept in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tandem.models.config import load_dataclass, to_mapping
from tandem.models.errors import CheckpointError, ConfigError
from tandem.models.folders import write_text
from tandem.service.runtimes.torch import device_search
from tandem.training.checkpoint import load_into, load_model_tensors, read_progress
from tandem.training.data.summary import PreparedSummary
from tandem.training.loop.resuming import check_recipe
from tandem.training.loop.trainable import trainable_model
from tandem.training.loop.trainer import Run, is_over
from tandem.training.loop.validation import DecodedText, TextValidator
from tandem.training.recipe import Recipe

FILE = "outcome.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        update: of the best validation; 0 of a run that diverged.
        value: of the metric that chose it: the lower the better of a loss, the higher of others.
        texts: by corpus, what the model wrote there of the validation's sentences; empty where it decodes none.
        diverged: how a run ended that diverged.
    """

    update: int = 0
    value: float = 0.0
    texts: Mapping[str, DecodedText] = field(default_factory=dict)
    diverged: str = ""

    def save(self, run: Path) -> None:
        run.mkdir(parents=True, exist_ok=True)
        write_text(run / FILE, json.dumps(to_mapping(self), ensure_ascii=False) + "\n")


def known_outcome(folder: Path, recipe: Recipe) -> Outcome | None:
    """What came of a run that is over; None where it is not, or was not.

    Raises:
        CheckpointError: the folder holds a run of another recipe, or what it holds is damaged.
    """
    newest = Run(folder).newest
    if newest is not None:
        check_recipe(newest, recipe)
    path = folder / FILE
    try:
        outcome = load_dataclass(Outcome, json.loads(path.read_text(encoding="utf-8")), str(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ConfigError) as error:
        raise CheckpointError(f"{path}: not readable ({error}): remove it, and the run is measured again") from error
    over = newest is not None and is_over(recipe, read_progress(newest)[0])
    return outcome if outcome.diverged or over else None


def measured_outcome(folder: Path, recipe: Recipe, data: Path, device: str) -> Outcome:
    """The same of a run that has just ended, from its best checkpoint; kept in the run's folder."""
    best = Run(folder).best
    progress, _ = read_progress(best)
    value = progress.best or 0.0
    texts: Mapping[str, DecodedText] = {}
    if recipe.training.validation_sentences:
        model = trainable_model(recipe, recipe.prepared_config(PreparedSummary.load(data)))
        load_into(model, load_model_tensors(best), str(best))
        texts = TextValidator(recipe, data, device_search("cuda")).decode(model.to(device).eval())
    outcome = Outcome(progress.update, -value if recipe.training.metric == "loss" else value, texts)
    outcome.save(folder)
    return outcome
