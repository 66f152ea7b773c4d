"""What every contestant trains: the corpus, the size of the model, and what one pass of one of them gave; our own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tandem.extras.laboratory.workload import TransformerSize
from tandem.models.architectures.protocol import count_parameters
from tandem.models.errors import ConfigError
from tandem.training.data.batches import TrainingBatch
from tandem.training.data.config import CorpusConfig, DataConfig
from tandem.training.data.dataset import PreparedData, TokenArray
from tandem.training.data.summary import PreparedSummary
from tandem.training.loop.reporting import Silent
from tandem.training.loop.trainer import Trainer
from tandem.training.optimisation.optim import OptimiserConfig, learning_rate
from tandem.training.recipe import Recipe, TrainingConfig

SMOOTHING, DROPOUT, RATE = 0.1, 0.1, 1e-3


@dataclass(frozen=True, slots=True)
class TrainingWork:
    """What is trained.

    Attributes:
        folder: the prepared data.
        data: its training pairs, of one text source.
        vocabularies: types of the source and of the target.
        size: of the Transformers.
        batch_tokens: half the padded source and target symbols of a batch.
    """

    folder: Path
    data: PreparedData
    vocabularies: tuple[int, int]
    size: TransformerSize
    batch_tokens: int

    @classmethod
    def open(cls, folder: Path, size: TransformerSize, batch_tokens: int) -> TrainingWork:
        """Map prepared data into memory.

        Raises:
            ConfigError: it has several sources, or one of features.
            CorpusError: the folder is no prepared data.
        """
        data, summary = PreparedData.open(folder, "train"), PreparedSummary.load(folder)
        if len(data.source_sides) != 1 or not isinstance(data.source_sides[0], TokenArray):
            raise ConfigError(f"{folder} must have one source, of text, but has {list(summary.vocabularies)[:-1]}")
        source, target = summary.vocabularies.values()
        return cls(folder, data, (source, target), size, batch_tokens)


@dataclass(frozen=True, slots=True)
class Count:
    """Symbols of some batches: real ones, and places for them, on both sides. The target's EOS counts."""

    source: int = 0
    source_places: int = 0
    target: int = 0
    target_places: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.source + other.source,
            self.source_places + other.source_places,
            self.target + other.target,
            self.target_places + other.target_places,
        )

    def padding(self) -> dict[str, float]:
        """Shares of the places that hold no symbol."""
        real, places = self.source + self.target, self.source_places + self.target_places
        return {
            "source": 1 - self.source / max(self.source_places, 1),
            "target": 1 - self.target / max(self.target_places, 1),
            "both": 1 - real / max(places, 1),
        }

    @property
    def places(self) -> int:
        return self.source_places + self.target_places


@dataclass(frozen=True, slots=True)
class TrainingPass:
    """One turn of one contestant.

    Attributes:
        updates: that were timed.
        seconds: from the end of the last update before them to the end of the last of them.
        count: the symbols of their batches.
        waited: seconds of these that went by until batches were there; None where nothing says so.
    """

    updates: int
    seconds: float
    count: Count
    waited: float | None = None

    @property
    def tokens_per_s(self) -> float:
        """Target symbols that are not padding."""
        return self.count.target / self.seconds


class Contestant(Protocol):
    """Trains on the work in its own way."""

    name: str
    parameters: int

    def run(self, turn: int, warmup: int, updates: int) -> TrainingPass:
        """Make ``warmup`` updates, then time ``updates``; every turn draws other batches."""
        ...


def recipe_of(work: TrainingWork, attention_dropout: float) -> Recipe:
    """What ``tandem train`` would read: pairs as they are, none of them joined."""
    text = CorpusConfig("benchmark", ("{split}.source",), "{split}.target", "", "")
    dropouts = {"dropout": DROPOUT, "attention_dropout": attention_dropout}
    return Recipe(
        "benchmark",
        "translate",
        ("und",),
        "und",
        DataConfig((text,)),
        "transformer",
        model={**work.size.model, "tied": "decoder", **dropouts},
        optimiser=OptimiserConfig("adam", RATE),
        training=TrainingConfig(batch_tokens=work.batch_tokens, label_smoothing=SMOOTHING),
    )


def padded(lengths: tuple[NDArray[np.int64], NDArray[np.int64]], batches: Iterable[Sequence[int]]) -> Count:
    """The symbols of batches of single pairs.

    Args:
        lengths: of all sources and of all targets, EOS included.
        batches: pair numbers.
    """
    total = Count()
    for batch in batches:
        source, target = (side[np.asarray(batch)] for side in lengths)
        total += Count(
            int(source.sum()), int(source.max()) * len(batch), int(target.sum()), int(target.max()) * len(batch)
        )
    return total


class Ours:
    """What ``tandem train`` runs: the trainer's stream and its stepper. Nothing is validated or saved."""

    name = "tandem"

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.trainer = Trainer(recipe, folder, Path("nowhere"), reporter=Silent())
        self.parameters = count_parameters(self.trainer.model)
        self._updates = 0

    def run(self, turn: int, warmup: int, updates: int) -> TrainingPass:
        """Updates on the batches of an epoch of their own."""
        count, waited = Count(), 0.0
        with closing(self.trainer.stream.updates(epoch=turn)) as groups:
            for _ in range(warmup):
                self._step(next(groups).batches)
            started = time.perf_counter()
            for _ in range(updates):
                asked = time.perf_counter()
                batches = next(groups).batches
                waited += time.perf_counter() - asked
                self._step(batches)
                count += sum(map(symbols, batches), Count())
            return TrainingPass(updates, time.perf_counter() - started, count, waited)

    def _step(self, batches: Sequence[TrainingBatch]) -> None:
        recipe = self.trainer.recipe
        self._updates += 1
        rate = learning_rate(recipe.optimiser, self._updates, recipe.training.updates, 0)
        self.trainer.stepper.step(batches, sum(batch.target_tokens for batch in batches), rate)


def symbols(batch: TrainingBatch) -> Count:
    """Of a batch of text."""
    places = sum(source.values.numel() for source in batch.sources)
    return Count(batch.source_tokens, places, batch.target_tokens, batch.target_out.numel())
