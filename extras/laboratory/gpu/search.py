"""The search on the device as the proof uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tandem.extras.gpu.batch import StaticBatch
from tandem.extras.gpu.sizes import Sizes
from tandem.extras.gpu.step import StaticStep
from tandem.models.search import Array, Hypothesis, SearchOptions, Sentence
from tandem.models.steps.torch_graphs import AnyModel


def sizes_for(slots: Sequence[int], source: int, options: SearchOptions) -> Sizes:
    """Buffers for so many sentences at a time with sources of such a length, and what the options let grow of them."""
    return Sizes(sentences=tuple(slots), source=(source,), target=(options.max_length + 1,))


def search(
    model: AnyModel,
    sources: Sequence[tuple[Array, ...]],
    options: SearchOptions,
    sizes: Sizes,
    *,
    step: StaticStep | None = None,
) -> list[Hypothesis]:
    """The best hypothesis of every sentence, found where the model lies; eagerly, unless there is a step."""
    batch = StaticBatch(step or StaticStep(model, beam_size=options.beam_size, sizes=sizes))
    batch.join([Sentence(number, source, options) for number, source in enumerate(sources)])
    found: dict[Any, Hypothesis] = {}
    while len(batch):
        found |= {one.id: one.hypotheses[0] for one in batch.step()}
    return [found[number] for number in range(len(sources))]


def synchronise(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
