"""`tandem bench training`: how fast we train against others on a model of the same size.

- ``ours``: the stream and the stepper of the trainer, which is what `tandem train` runs;
- ``huggingface``: Seq2SeqTrainer of transformers, with MarianMT, lengths grouped (``pip install -e '.[bench]'``).

Counted are target symbols without padding over the time of whole updates, loading and optimiser included. Ratios are
taken within a turn; their medians are what to quote.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tandem.extras.laboratory.options import TrainingOptions
from tandem.extras.laboratory.runner import median_ratio, take_turns
from tandem.extras.laboratory.training.huggingface import HuggingFace, missing
from tandem.extras.laboratory.training.work import (
    Contestant,
    Count,
    Ours,
    TrainingPass,
    TrainingWork,
    padded,
    recipe_of,
)
from tandem.extras.laboratory.workload import TransformerSize
from tandem.extras.shared.report import console, environment, say, show_environment, table
from tandem.service.telemetry.cgroups import usable_cores
from tandem.training.optimisation.heap import keep_freed_memory
from tandem.training.optimisation.precision import flushed_denormals
from tandem.training.recipe import load_recipe

_COLUMNS = {
    "name": "trainer",
    "parameters": "parameters",
    "target_tokens_per_s": "target tokens/s",
    "ours_is_times_as_fast": "ours is x",
    "seconds_an_update": "s an update",
    "target_tokens_an_update": "target tokens an update",
    "padded": "padding %",
    "places_per_s": "source and target symbols/s, padding included",
}


def measure(options: TrainingOptions) -> dict[str, Any]:
    """Contestants by turns.

    Raises:
        ConfigError: the data has several sources, or the recipe is wrong or does not fit it.
        CorpusError: the run has no prepared data.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    threads = options.threads or usable_cores()
    keep_freed_memory()
    with flushed_denormals():
        torch.set_num_threads(threads)
        return _measured(options, threads)


def _measured(options: TrainingOptions, threads: int) -> dict[str, Any]:
    size = TransformerSize(options.layers, options.width, options.hidden, options.heads)
    work = TrainingWork.open(options.run / "data", size, options.batch_tokens)
    recipe = recipe_of(work, options.attention_dropout) if options.recipe is None else load_recipe(options.recipe)
    ours = Ours(recipe, work.folder)
    plans = [list(chain(*plan.items)) for plan in ours.trainer.stream.plans(0)]
    epoch = padded(work.data.lengths_of(np.arange(len(work.data))), plans)
    epochs, left_out = {"ours": epoch.padding()}, dict[str, str]()
    entered: dict[str, Contestant] = {"ours": ours}
    if reason := missing() if options.recipe is None else "not asked: --recipe trains another model":
        left_out["huggingface"] = reason
    else:
        narrow = ours.trainer.choice.precision == "bf16"
        peer = HuggingFace(work, options.attention_dropout, epoch.places / len(plans), narrow=narrow)
        entered["huggingface"], epochs["huggingface"] = peer, peer.plan.padding()
    turns = take_turns(list(entered.values()), options.repeats, partial(_turn, options, threads))
    passes = dict(zip(entered, turns, strict=True))
    return {
        "environment": environment(threads),
        "precision": asdict(ours.trainer.choice),
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in asdict(options).items()},
        "contestants": {name: _row(one, passes[name], passes["ours"]) for name, one in entered.items()},
        "left_out": left_out,
        "padding_of_an_epoch": epochs,
    }


def _turn(options: TrainingOptions, threads: int, contestant: Contestant, turn: int) -> TrainingPass:
    torch.set_num_threads(threads)  # a library may have set another number
    made = contestant.run(turn, options.warmup, options.updates)
    say(f"turn {turn + 1}: {contestant.name} {made.tokens_per_s:,.0f} tokens/s", error=True)
    return made


def _row(contestant: Contestant, passes: Sequence[TrainingPass], ours: Sequence[TrainingPass]) -> dict[str, Any]:
    """A contestant's figures over its passes."""
    total, updates = sum((one.count for one in passes), Count()), sum(one.updates for one in passes)
    seconds = sum(one.seconds for one in passes)
    waits = [one.waited for one in passes if one.waited is not None]
    rates = [one.tokens_per_s for one in passes]
    return {
        "name": contestant.name,
        "parameters": contestant.parameters,
        "target_tokens_per_s": statistics.median(rates),
        "ours_is_times_as_fast": median_ratio((one.tokens_per_s for one in ours), rates),
        "passes": rates,
        "seconds_an_update": seconds / updates,
        "target_tokens_an_update": total.target / updates,
        "places_an_update": total.places / updates,
        "places_per_s": total.places / seconds,
        "padding": total.padding(),
        "waited_share": sum(waits) / seconds if waits else None,
    }


def show(result: Mapping[str, Any]) -> None:
    options = result["options"]
    say(show_environment(result["environment"]))
    say("precision: {precision} ({reason})".format(**result["precision"]).removesuffix(" ()"))
    title = f"{options['updates']} updates a turn, {options['repeats']} turns"
    rows = [{**row, "padded": 100 * row["padding"]["both"]} for row in result["contestants"].values()]
    console().print(table(title, _COLUMNS, rows))
    say(*(f"{name}: {reason}" for name, reason in result["left_out"].items()))
    for name, share in result["padding_of_an_epoch"].items():
        say(f"padding of an epoch, {name}: {', '.join(f'{side} {value:.1%}' for side, value in share.items())}")
    waited = result["contestants"]["ours"]["waited_share"]
    say(f"waiting for input: {waited:.2%} of the time of our updates")
