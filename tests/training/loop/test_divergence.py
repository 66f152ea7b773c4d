"""A training that diverges says so, and what it goes on from had not diverged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tandem.models.errors import ConfigError
from tandem.models.search.hypotheses import SentenceError
from tandem.training.checkpoint import checkpoints, load_model_tensors, read_progress
from tandem.training.loop.trainer import Trainer, Validator
from tandem.training.loop.validation import Validated
from tests.training.toy import Recorder, toy_recipe, toy_trainer


def scripted(*scores: float | Exception) -> Validator:
    left = iter(scores)

    def validate(model: Any) -> Validated:
        score = next(left)
        if isinstance(score, Exception):
            raise score
        return Validated({"bleu": score})

    return validate


def names(trainer: Trainer) -> list[str]:
    return sorted(path.stem for path in trainer.run.checkpoints.iterdir())


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (math.nan, "the validation's bleu is nan after update 6"),
        (math.inf, "the validation's bleu is inf after update 6"),
        (SentenceError("…", (3, 6)), "in the validation's search are not finite for 2 sentences after update 6"),
    ],
)
def test_what_is_no_number_is_never_best(found: float | Exception, fault: str, prepared: Path, tmp_path: Path) -> None:
    """Validated after 2, 4 and 6; the checkpoint after 5 came after the last good one."""
    recipe = toy_recipe(updates=8, validate_every=2, save_every=1, metric="bleu", validation_sentences=1)
    trainer = toy_trainer(recipe, prepared, tmp_path, validator=scripted(1.0, 2.0, found))
    with pytest.raises(ConfigError, match=fault) as raised:
        trainer.train()
    good = trainer.run.checkpoints / "checkpoint-4.safetensors"
    assert f"set a learning_rate below 0.01, or a clip_norm below 1, and --resume, which goes on from {good}" in str(
        raised.value
    )
    assert names(trainer) == ["best", *(f"checkpoint-{n}" for n in (1, 2, 3, 4)), "diverged-5"]
    assert read_progress(trainer.run.best)[0].best == 2.0
    again = toy_trainer(recipe, prepared, tmp_path, validator=scripted(3.0, 4.0))
    assert again.resume() and again.progress.update == 4
    assert again.train().best == 4.0


def test_a_loss_that_is_no_number_ends_training_whatever_the_metric(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is decoded with such a model. Where nothing was validated before, nothing is known to be good."""
    recorder = Recorder()
    recipe = toy_recipe(updates=8, validate_every=3, save_every=2, metric="bleu", validation_sentences=1)
    trainer = toy_trainer(recipe, prepared, tmp_path, reporter=recorder, validator=scripted())
    monkeypatch.setattr(Trainer, "validation_loss", lambda self: math.nan)
    with pytest.raises(ConfigError, match=r"loss is nan after update 3: no checkpoint is known to be good: set a lear"):
        trainer.train()
    assert names(trainer) == ["diverged-2"]
    assert [list(values) for _, values in recorder.validations] == [["loss"]]


def poison(trainer: Trainer) -> Callable[[], None]:
    def put() -> None:
        with torch.no_grad():
            next(trainer.model.parameters()).fill_(math.nan)

    return put


def test_weights_that_are_no_numbers_are_not_saved(prepared: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    trainer = toy_trainer(toy_recipe(updates=9, validate_every=2, save_every=1), prepared, tmp_path, reporter=recorder)
    recorder.when = {3: poison(trainer)}
    with pytest.raises(
        ConfigError, match=r"training diverged: weights are not finite in \S+ and 0 more after update 3"
    ):
        trainer.train()
    assert names(trainer) == ["best", "checkpoint-1", "checkpoint-2"]
    assert all(
        bool(tensor.isfinite().all())
        for path in trainer.run.checkpoints.iterdir()
        for tensor in load_model_tensors(path).values()
    )


def test_what_earlier_versions_took_for_the_best_gives_way(prepared: Path, tmp_path: Path) -> None:
    """A NaN, than which no number is greater."""
    values: Iterator[float] = iter([4.0, 3.0])
    recipe = toy_recipe(updates=2, validate_every=1, metric="bleu", validation_sentences=1)
    trainer = toy_trainer(recipe, prepared, tmp_path, validator=lambda model: Validated({"bleu": next(values)}))
    object.__setattr__(trainer.progress, "best", math.nan)
    assert trainer.train().best == 4.0
    assert [path.stem for path in checkpoints(trainer.run.checkpoints)] == ["checkpoint-2"]
