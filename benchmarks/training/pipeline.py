"""What the input pipeline gives with nothing else to do, and how much of it is padding."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.training.ours import symbols
from benchmarks.training.work import Count
from training.data.augmentation import load_augmentation
from training.data.dataset import PreparedData
from training.data.stream import Stream
from training.parallel import Processes
from training.recipe import Recipe
from training.trainer import training_stream


@dataclass(frozen=True, slots=True)
class LoadedEpoch:
    """An epoch, or its beginning.

    Attributes:
        batches: that were read.
        first: seconds until the first one was there: the plan of an epoch and one batch.
        seconds: from then until the last one was there.
        count: the symbols of them all.
        tokens: target symbols of all but the first.
    """

    batches: int
    first: float
    seconds: float
    count: Count
    tokens: int

    def summary(self, consumed: float | None) -> dict[str, Any]:
        """Plain values; ``consumed`` are the target symbols a second that training takes."""
        rate = self.tokens / self.seconds if self.seconds else 0.0
        return {
            "batches": self.batches,
            "first_batch_s": self.first,
            "tokens_per_s": rate,
            "times_training": rate / consumed if consumed else None,
            "padding": self.count.padding(),
        }


def load_epoch(stream: Stream, most: int) -> LoadedEpoch:
    """Read an epoch as training does, at most so many updates of it, and do nothing with them."""
    count, batches, tokens = Count(), 0, 0
    begun = started = last = time.perf_counter()
    with closing(stream.updates()) as groups:
        for number, group in enumerate(groups):
            if number and (group.epoch > 0 or number >= most):
                break
            last = time.perf_counter()
            count = sum(map(symbols, group.batches), count)
            batches += len(group.batches)
            if number:
                tokens += sum(batch.target_tokens for batch in group.batches)
            else:
                started = last
    return LoadedEpoch(batches, started - begun, last - started, count, tokens)


def recipe_stream(recipe: Recipe, data: Path) -> Stream:
    """The batches that ``tandem train`` makes of a recipe, with all that it does to them."""
    return training_stream(recipe, PreparedData.open(data, "train"), Processes(), load_augmentation(recipe, data))
