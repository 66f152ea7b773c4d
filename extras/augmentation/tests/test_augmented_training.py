"""Training on batches that are rewritten: the same from the same seed, also resumed; validation stays as it was."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tandem.extras.augmentation.rewriters import open_augmentation
from tandem.models.bundle import Bundle
from tandem.models.steps.loading import load_bundle_model, model_tensors
from tandem.training.data.config import NoiseConfig, VocabularyConfig
from tandem.training.data.prepare import prepare
from tandem.training.loop.header import header
from tandem.training.loop.trainer import Trainer
from tandem.training.loop.validation import TextValidator
from tandem.training.parallel import Processes
from tandem.training.recipe import Recipe
from tests.training.toy import DATA, LETTERS, Recorder, bundle_without_graphs, toy_recipe, write_lines

PLAIN = replace(
    DATA,
    vocabulary=VocabularyConfig(size=330),
    corpora=(replace(DATA.corpora[0], both_ways=True),),
    tagged=True,
    max_source_tokens=120,
    max_target_tokens=120,
    join_share=0.3,
)
REWRITTEN = replace(PLAIN, bpe_dropout_source=0.2, bpe_dropout_target=0.1, noise=NoiseConfig(0.1, 0.1, 0.3))


def recipe(updates: int = 12) -> Recipe:
    model = {"max_positions": 128, "tied": "all"}
    return toy_recipe(data=REWRITTEN, model=model, batch_tokens=400, validation_sentences=8, updates=updates)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, out = tmp_path_factory.mktemp("corpora"), tmp_path_factory.mktemp("prepared") / "data"
    for split, count in (("train", 90), ("valid", 6), ("test", 6)):
        lines = [[f"Wort{LETTERS[(n * k) % 8]}" for k in range(1, 3 + n % 4)] for n in range(1, count + 1)]
        write_lines(root / f"toy/{split}.de", (f"{' '.join(one)}." for one in lines))
        write_lines(root / f"toy/{split}.en", (f"{' '.join(one).replace('Wort', 'word-')}!" for one in lines))
    prepare(REWRITTEN, languages=("de", "en"), root=root, out=out, seed=1)
    return out


def trainer(chosen: Recipe, data: Path, folder: Path, reporter: Recorder, rewriters: int = 0) -> Trainer:
    rewriting = open_augmentation(chosen, data, rewriters, 1, Processes())
    return Trainer(chosen, data, folder, reporter=reporter, rewriting=rewriting)


def test_resumed_training_is_the_same_bit_for_bit(data: Path, tmp_path: Path) -> None:
    whole, first, second = Recorder(), Recorder(), Recorder()
    trainer(recipe(updates=10), data, tmp_path / "whole", whole).train()
    trainer(recipe(updates=4), data, tmp_path / "parts", first).train()
    again = trainer(recipe(updates=10), data, tmp_path / "parts", second)
    assert again.resume()
    again.train()
    assert [values["loss"] for _, values in first.updates + second.updates] == [
        values["loss"] for _, values in whole.updates
    ]
    other = Recorder()
    plain = Trainer(recipe(updates=4), data, tmp_path / "plain", reporter=other)
    plain.train()
    assert [values["loss"] for _, values in other.updates] != [values["loss"] for _, values in first.updates]


def test_training_is_the_same_bit_for_bit_whoever_rewrites(data: Path, tmp_path: Path) -> None:
    losses = []
    for rewriters in (0, 2):
        recorder = Recorder()
        made = trainer(recipe(updates=8), data, tmp_path / str(rewriters), recorder, rewriters)
        assert ("2 rewriters, seed" in header(made)) == bool(rewriters)
        made.train()
        losses.append([values["loss"] for _, values in recorder.updates])
    assert losses[0] == losses[1]
    assert not multiprocessing.active_children()


def test_rewriting_begins_with_its_epoch(data: Path, tmp_path: Path) -> None:
    """An epoch has fewer than six batches: the losses are those of plain text until it is over."""
    losses = {}
    for begin in (0, 1, 9):
        recorder = Recorder()
        chosen = replace(recipe(updates=10), data=replace(REWRITTEN, rewriting_from=begin))
        made = trainer(chosen, data, tmp_path / str(begin), recorder)
        epoch = len(list(made.stream.plans(0)))
        made.train()
        losses[begin] = [values["loss"] for _, values in recorder.updates]
    assert 1 < epoch < 9
    assert losses[1][:epoch] == losses[9][:epoch] != losses[0][:epoch]
    assert losses[1][epoch] != losses[9][epoch]


def test_validation_is_not_rewritten(data: Path, tmp_path: Path) -> None:
    plain = Trainer(recipe(), data, tmp_path / "run", reporter=Recorder())
    assert plain.validation_loss() == trainer(recipe(), data, tmp_path / "run", Recorder()).validation_loss()


def test_both_directions_are_validated_and_shipped(data: Path, tmp_path: Path) -> None:
    chosen = recipe(updates=2)
    made = trainer(chosen, data, tmp_path / "run", Recorder())
    made.train()
    validator = TextValidator(chosen, data)
    assert list(validator._columns) == ["en", "de"]
    assert 0 <= validator(made.model.eval()).scores["bleu"] <= 100
    bundle = bundle_without_graphs(made.model, chosen, data, tmp_path / "bundle")
    assert bundle.manifest.pairs == (("de", "en"), ("en", "de"))
    assert [view.manifest.target_language for view in Bundle.load(tmp_path / "bundle").views] == ["en", "de"]
    loaded, trained = (model_tensors(one) for one in (load_bundle_model(bundle), made.model))
    assert "target_embedding" not in loaded and loaded["source_embedding"].shape == (330, 16)
    torch.testing.assert_close(loaded["source_embedding"], trained["source_embedding"].detach().half().float())
