"""The search on the device as the proof uses it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from models.device import CapturedStep, Sizes, StaticBatch, StaticStep
from models.errors import OptionError
from models.graphs import AnyModel
from models.search import Array, Hypothesis, SearchOptions, Sentence


def sizes_for(slots: Sequence[int], source: int, options: SearchOptions) -> Sizes:
    """Buffers for so many sentences at a time with sources of such a length, and what the options let grow of them."""
    return Sizes(sentences=tuple(slots), source=(source,), target=(options.max_length + 1,))


def search(
    model: AnyModel,
    sources: Sequence[tuple[Array, ...]],
    options: SearchOptions,
    sizes: Sizes,
    *,
    captured: bool = False,
    step: StaticStep | None = None,
) -> list[Hypothesis]:
    """The best hypothesis of every sentence, found where the model lies."""
    step = step or (CapturedStep if captured else StaticStep)(model, beam_size=options.beam_size, sizes=sizes)
    batch = StaticBatch(step)
    batch.join([Sentence(number, source, options) for number, source in enumerate(sources)])
    found: dict[Any, Hypothesis] = {}
    while len(batch):
        found |= {one.id: one.hypotheses[0] for one in batch.step()}
    return [found[number] for number in range(len(sources))]


def on_device(options: SearchOptions, step: StaticStep, source: tuple[Array, ...]) -> SearchOptions:
    """The options, or where the device has not all of them those that it has."""
    try:
        StaticBatch(step).join([Sentence("probe", source, options)])
    except OptionError:
        return replace(options, no_repeat_ngram_size=0, max_rounds=0)
    return options


def stepping(step: StaticStep) -> AbstractContextManager[object]:
    """Within, what is asked for is queued where the step's own work is."""
    streams = getattr(step, "streams", None)
    found: AbstractContextManager[object] = nullcontext() if streams is None else streams.stepping()
    return found


def synchronise(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
