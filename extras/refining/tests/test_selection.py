"""Vocabulary selection while training: which words an update has, and that the loss is that of these words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tandem.extras.refining.selection import WordSelection, training_selection
from tandem.models.architectures.protocol import Padded
from tandem.models.errors import ConfigError
from tandem.models.search.shortlist import Shortlist, Table
from tandem.training.data.batches import TrainingBatch, collate
from tandem.training.data.dataset import load_vocabularies
from tandem.training.loop.objective import Objective
from tandem.training.loop.trainer import Trainer
from tests.training.toy import Recorder, toy_recipe, toy_trainer


def batch_of(trainer: Trainer) -> TrainingBatch:
    return collate(trainer.train_data, next(trainer.stream.plans(0)))


def test_a_batch_has_the_words_of_its_sources_its_own_and_the_common_ones(prepared: Path, tmp_path: Path) -> None:
    batch = batch_of(toy_trainer(toy_recipe(), prepared, tmp_path))
    (source,) = batch.sources
    types = int(source.values.max()) + 1
    # Word n is aligned to n + 20 alone; 3 and 60 are always there.
    rows = [[n + 20] if n > 3 else [] for n in range(types)]
    selection = WordSelection(Shortlist((Table.of(rows, 70),), np.array([3, 60]), 70))
    own = {int(n) + 20 for n in source.values.unique() if n > 3}
    assert set(selection.chosen(batch).tolist()) == own | {0, 3, 60} | set(batch.target_out.unique().tolist())


def test_the_loss_is_that_of_the_chosen_words(prepared: Path, tmp_path: Path) -> None:
    """Of a softmax over them; gradients reach no other row of the output layer, and evaluation has them all."""
    trainer = toy_trainer(toy_recipe(model={"dropout": 0.0}), prepared, tmp_path)
    batch, model = batch_of(trainer), trainer.model.double()
    size = model.config.target_vocabulary
    selection = WordSelection(Shortlist((Table.of([[]] * 99, size),), np.array([3, 5, 9]), size))
    config = replace(trainer.recipe.training, label_smoothing=0.0)
    objective = Objective(model, config, selection)
    weight_VD, bias_V = model.output_parameters()
    chosen = selection.chosen(batch)
    assert 3 < len(chosen) < size
    with torch.no_grad():
        features = model.decode(batch.target_in, model.encode(batch.sources))
        logits = F.linear(features, weight_VD, bias_V).flatten(0, 1)
    gold = batch.target_out.flatten()
    some, every = (
        F.cross_entropy(logits.index_fill(1, left_out, -torch.inf), gold, ignore_index=0, reduction="sum")
        for left_out in (torch.tensor([n for n in range(size) if n not in chosen]), torch.tensor([], dtype=torch.int64))
    )
    assert some < every
    found, _ = objective.train()(batch)
    torch.testing.assert_close(found, some)
    assert bias_V is not None
    (gradient,) = torch.autograd.grad(found, bias_V)
    assert set(gradient.nonzero().flatten().tolist()) <= set(chosen.tolist())
    with torch.no_grad():
        torch.testing.assert_close(objective.eval()(batch)[1], every)


def test_a_recipe_asks_for_it(prepared: Path, tmp_path: Path) -> None:
    """Aligned from the prepared training text: every letter's translation is in its list, and few others."""
    recipe = toy_recipe(updates=2, selection=1, selection_common=0)
    with pytest.raises(ConfigError, match="training selection needs the extra 'refining': its folder"):
        toy_trainer(recipe, prepared, tmp_path / "a")
    trainer = Trainer(recipe, prepared, tmp_path / "a", reporter=Recorder(), select=training_selection)
    selection = trainer.stepper.objective._selection
    assert isinstance(selection, WordSelection)
    _, target = load_vocabularies(prepared)
    ids = trainer.train_data.sources(0)[0]
    nothing = torch.zeros(1, 1, dtype=torch.int64)
    source = Padded(torch.tensor(ids.astype(np.int64))[None], torch.tensor([len(ids)]))
    alone = TrainingBatch((source,), nothing, nothing, nothing[0, :0], 0, 0)
    listed = {target.piece_of(token) for token in selection.chosen(alone).tolist()}
    assert set(target.decode(trainer.train_data.target(0).tolist()).split()) <= listed
    trainer.train()
    other = toy_trainer(toy_recipe(updates=2), prepared, tmp_path / "b")
    other.train()
    assert not trainer.model.state_dict()["output_bias"].equal(other.model.state_dict()["output_bias"])
