"""`tandem bench training`: how fast we train against others on a model of the same size, whether the input keeps up,
and how near the floor is.

- ``ours``: the stream and the stepper of the trainer, which is what `tandem train` runs;
- ``plain``: the same model and batches, trained as a first version would be (``ours.py`` says how);
- ``ours-preloaded`` and ``plain-preloaded``: the same two with an allocator such as tcmalloc (``--preload``), each in a
  process of its own;
- ``huggingface``: Seq2SeqTrainer of transformers, with MarianMT, lengths grouped (``pip install "tandem[bench]"``);
- ``joeynmt``: Joey NMT by the interpreter of its own environment (``joey.py`` says how to make it), and
  ``joeynmt-float32``, the precision that it has on a CPU by itself.

Counted are target symbols without padding over the time of whole updates, loading and optimiser included. Ratios are
taken within a turn; their medians are what to quote. The input pipeline is then measured alone: it gives so many times
what training takes; ``--recipe`` does so for the batches of a recipe with all that it does to them, such as joining,
noise and BPE dropout. Last come the matrix products of a step by themselves (``products.py``), which is what no step
can be faster than.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.options import ARCHITECTURES, CONTESTANTS, TrainingOptions
from benchmarks.runner import median_ratio, take_turns
from benchmarks.training import huggingface
from benchmarks.training.joey import Joey
from benchmarks.training.ours import Ours, Plain
from benchmarks.training.pipeline import LoadedEpoch, load_epoch, recipe_stream
from benchmarks.training.preloaded import Preloaded
from benchmarks.training.products import floor
from benchmarks.training.work import SHIPPED, Contestant, Count, TrainingPass, TrainingWork
from benchmarks.transformers import TransformerSize
from deploy.records import names
from deploy.report import console, environment, say, show_environment, table
from models.errors import ConfigError
from service.telemetry.cgroups import usable_cores
from training.recipe import load_recipe

BATCHES_OF_FLOOR = 3
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
    """Contestants by turns, the input pipeline, and the floor.

    Raises:
        ConfigError: an option is out of bounds, or the data has several sources.
        CorpusError: the run has no prepared data.
    """
    if options.architecture not in ARCHITECTURES:
        raise ConfigError(f"--architecture must be of {', '.join(ARCHITECTURES)}, but is {options.architecture}")
    wanted = names(options.contestants, "--contestants", CONTESTANTS)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    threads = options.threads or usable_cores()
    torch.set_num_threads(threads)
    size = TransformerSize(options.layers, options.width, options.hidden, options.heads)
    work = TrainingWork.open(options.run / "data", size, options.batch_tokens, threads)
    ours = Ours(work, options.architecture, options.attention_dropout)
    loaded = load_epoch(ours.trainer.stream, options.loaded)
    with tempfile.TemporaryDirectory(prefix="tandem-training-") as folder:
        left_out = {name: reason for name in wanted if (reason := _reason(name, options))}
        makers = _makers(work, options, loaded, Path(folder))
        entered: dict[str, Contestant] = {"ours": ours}
        entered |= {name: makers[name]() for name in makers if name in wanted and name not in left_out}
        turns = take_turns(list(entered.values()), options.repeats, partial(_turn, options, threads))
        passes = dict(zip(entered, turns, strict=True))
    rate = statistics.median(one.tokens_per_s for one in passes["ours"])
    pipeline = {"benchmark": loaded.summary(rate)}
    if options.recipe:
        recipe = load_recipe(options.recipe)
        pipeline[recipe.name] = load_epoch(recipe_stream(recipe, work.folder), options.loaded).summary(rate)
    epochs = {name: one.plan.padding() for name, one in entered.items() if isinstance(one, huggingface.HuggingFace)}
    with closing(ours.trainer.stream.updates()) as groups:
        batches = [group.batches[0] for group in islice(groups, BATCHES_OF_FLOOR)]
    return {
        "environment": environment(threads),
        "joeynmt": next((one.version for one in entered.values() if isinstance(one, Joey)), None),
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in asdict(options).items()},
        "contestants": {name: _row(one, passes[name], passes["ours"]) for name, one in entered.items()},
        "left_out": left_out,
        "pipeline": pipeline,
        "padding_of_an_epoch": {"ours": loaded.count.padding(), **epochs},
        "floor": floor([partial(ours.step, batch) for batch in batches], options.floor_repeats),
    }


def _makers(
    work: TrainingWork, options: TrainingOptions, loaded: LoadedEpoch, folder: Path
) -> dict[str, Callable[[], Contestant]]:
    """How to make each contestant but ours."""
    architecture, rate = options.architecture, options.attention_dropout

    def preloaded(kind: str) -> Contestant:
        assert options.preload is not None  # else it is left out
        return Preloaded(work, kind, architecture, rate, options.preload)

    def joey(precision: str) -> Contestant:
        assert options.joeynmt is not None
        return Joey(work, options.joeynmt, folder, rate, precision)

    return {
        "plain": lambda: Plain(work, architecture, rate),
        "ours-preloaded": lambda: preloaded("ours"),
        "plain-preloaded": lambda: preloaded("plain"),
        "huggingface": lambda: huggingface.HuggingFace(work, rate, loaded.count.places / loaded.batches),
        "joeynmt": lambda: joey("bf16"),
        "joeynmt-float32": lambda: joey("float32"),
    }


def _reason(name: str, options: TrainingOptions) -> str:
    """Why a contestant cannot be measured; empty where it can."""
    if name in ("ours", "plain"):
        return ""
    if name.endswith("-preloaded"):
        return "" if options.preload else "no --preload LIBRARY was given"
    if options.architecture in SHIPPED:
        return f"has no {options.architecture}"
    if name == "huggingface":
        return huggingface.missing()
    return "" if options.joeynmt else "no --joeynmt PYTHON was given"


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
    """Print the figures."""
    options, low, screen = result["options"], result["floor"], console()
    say(show_environment(result["environment"]))
    title = f"{options['architecture']}, {options['updates']} updates a turn, {options['repeats']} turns"
    rows = [{**row, "padded": 100 * row["padding"]["both"]} for row in result["contestants"].values()]
    screen.print(table(title, _COLUMNS, rows))
    say(*(f"{name}: {reason}" for name, reason in result["left_out"].items()))
    sides = ("source", "target", "both")
    epochs = [
        {"name": name} | {side: f"{share[side]:.1%}" for side in sides}
        for name, share in result["padding_of_an_epoch"].items()
    ]
    screen.print(table("padding of an epoch", {"name": "trainer"} | {side: side for side in sides}, epochs))
    waited = result["contestants"]["ours"]["waited_share"]
    say(f"waiting for input: {waited:.2%} of the time of our updates; the input pipeline alone:")
    for name, one in result["pipeline"].items():
        say(
            f"- {name}: {one['tokens_per_s']:,.0f} target tokens/s, {one['times_training']:,.0f} times what training"
            f" takes; first batch after {one['first_batch_s']:.2f} s; padding {one['padding']['both']:.1%}"
        )
    say(
        f"floor: a step of {low['step_ms']:,.0f} ms makes {low['products']:,.0f} matrix products, which alone"
        f" take {low['products_ms']:,.0f} ms in bfloat16 = {low['products_share']:.0%} of it;"
        f" {low['gflop']:,.0f} GFLOP, {low['step_gflop_per_s']:,.0f} GFLOP/s in the step,"
        f" {low['products_gflop_per_s']:,.0f} in its products alone,"
        f" {low['large_product_gflop_per_s']:,.0f} in a large product (the step is at {low['peak_share']:.0%})"
    )
