"""How fast we train against others on a model of the same size, whether the input keeps up, and how near the floor is.

    python benchmarks/training_speed.py --run runs/NAME [--layers 4] [--updates 50] [--repeats 3] [--threads 2]
        [--joeynmt joey/bin/python] [--preload LIBRARY] [--architecture transformer|dpn|convs2s] [--recipe RECIPE]
        [--json]

NAME is a run whose data ``tandem prepare`` has made. Contestants train on its pairs, of one text source each, a
Transformer of the same layers, width, hidden units, heads and vocabularies, the decoder's embeddings tied to its
output, dropout and label smoothing 0.1, Adam, bfloat16 by autocast, about the same padded symbols a batch:

- ``ours``: the stream and the stepper of the trainer, which is what ``tandem train`` runs;
- ``plain``: the same model and batches, trained as a first version would be (``trainers/ours.py`` says how);
- ``ours-preloaded`` and ``plain-preloaded``: the same two with an allocator such as tcmalloc (``--preload``), each in a
  process of its own;
- ``huggingface``: Seq2SeqTrainer of transformers, with MarianMT, lengths grouped (``pip install "tandem[bench]"``);
- ``joeynmt``: Joey NMT by the interpreter of its own environment (``trainers/joey.py`` says how to make it), and
  ``joeynmt-float32``, the precision that it has on a CPU by itself.

They take turns, each with other batches every time, and every turn begins with updates that are not timed. Counted are
target symbols without padding over the time of whole updates, loading and optimiser included. Ratios are taken within
a turn; their medians are what to quote. ``--updates`` should be 50 or a multiple of it: grouped by length, transformers
gives 50 batches from the longest pairs to the shortest. ``--architecture dpn`` or ``convs2s`` trains a shipped
recipe's model, which nobody else has.

The input pipeline is then measured alone: it gives so many times what training takes. ``--recipe`` does so for the
batches of a recipe with all that it does to them, such as joining, noise and BPE dropout. Last come the matrix
products of a step by themselves (``trainers/products.py``), which is what no step can be faster than.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.trainers import huggingface
from benchmarks.trainers.joey import Joey
from benchmarks.trainers.ours import Ours, Plain
from benchmarks.trainers.pipeline import Loaded, load_epoch, recipe_stream
from benchmarks.trainers.preloaded import Preloaded
from benchmarks.trainers.products import floor
from benchmarks.trainers.work import SHIPPED, Contestant, Count, Pass, Size, Work, median_rate, median_ratio
from deploy.bench.statistics import environment
from models.errors import TandemError
from training.recipe import load_recipe

CONTESTANTS = ("ours", "plain", "ours-preloaded", "plain-preloaded", "huggingface", "joeynmt", "joeynmt-float32")
BATCHES_OF_FLOOR = 3


def contestants(
    work: Work, ours: Ours, options: argparse.Namespace, loaded: Loaded, folder: Path
) -> tuple[dict[str, Contestant], dict[str, str]]:
    """Those that can be measured, ours first, and why the others cannot."""
    rate, joey = options.attention_dropout, partial(_joey, work, options, folder)
    preloaded = partial(_preloaded, work, options)
    makers: dict[str, Callable[[], Contestant]] = {
        "plain": lambda: Plain(work, options.architecture, rate),
        "ours-preloaded": lambda: preloaded("ours"),
        "plain-preloaded": lambda: preloaded("plain"),
        "huggingface": lambda: huggingface.HuggingFace(work, rate, loaded.count.places / loaded.batches),
        "joeynmt": lambda: joey("bf16"),
        "joeynmt-float32": lambda: joey("float32"),
    }
    left_out = {name: reason for name in options.contestants if (reason := _reason(name, options))}
    found: dict[str, Contestant] = {"ours": ours}
    found |= {name: makers[name]() for name in makers if name in options.contestants and name not in left_out}
    return found, left_out


def _joey(work: Work, options: argparse.Namespace, folder: Path, precision: str) -> Contestant:
    return Joey(work, options.joeynmt, folder, options.attention_dropout, precision)


def _preloaded(work: Work, options: argparse.Namespace, kind: str) -> Contestant:
    return Preloaded(work, kind, options.architecture, options.attention_dropout, options.preload)


def _reason(name: str, options: argparse.Namespace) -> str:
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


def take_turns(entered: Mapping[str, Contestant], options: argparse.Namespace) -> dict[str, list[Pass]]:
    """Pass 1 of all, then pass 2 of all."""
    passes: dict[str, list[Pass]] = {name: [] for name in entered}
    for turn in range(options.repeats):
        for name, contestant in entered.items():
            torch.set_num_threads(options.threads)  # a library may have set another number
            one = contestant.run(turn, options.warmup, options.updates)
            passes[name].append(one)
            print(f"turn {turn + 1}: {contestant.name} {one.tokens_per_s:,.0f} tokens/s", file=sys.stderr)
    return passes


def row(contestant: Contestant, passes: Sequence[Pass], ours: Sequence[Pass]) -> dict[str, Any]:
    """A contestant's figures over its passes."""
    total, updates = sum((one.count for one in passes), Count()), sum(one.updates for one in passes)
    waits = [one.waited for one in passes if one.waited is not None]
    return {
        "name": contestant.name,
        "parameters": contestant.parameters,
        "target_tokens_per_s": median_rate(passes),
        "ours_is_times_as_fast": median_ratio(ours, passes),
        "passes": [one.tokens_per_s for one in passes],
        "seconds_an_update": sum(one.seconds for one in passes) / updates,
        "target_tokens_an_update": total.target / updates,
        "places_an_update": total.places / updates,
        "places_per_s": total.places / sum(one.seconds for one in passes),
        "padding": total.padding(),
        "waited_share": sum(waits) / sum(one.seconds for one in passes) if waits else None,
    }


def measure(work: Work, options: argparse.Namespace) -> dict[str, Any]:
    """Everything."""
    ours = Ours(work, options.architecture, options.attention_dropout)
    loaded = load_epoch(ours.trainer.stream, options.loaded)
    with tempfile.TemporaryDirectory(prefix="tandem-training-speed-") as folder:
        entered, left_out = contestants(work, ours, options, loaded, Path(folder))
        passes = take_turns(entered, options)
    rate = median_rate(passes["ours"])
    pipeline = {"benchmark": loaded.summary(rate)}
    if options.recipe:
        recipe = load_recipe(options.recipe)
        pipeline[recipe.name] = load_epoch(recipe_stream(recipe, work.folder), options.loaded).summary(rate)
    epochs = {name: one.plan.padding() for name, one in entered.items() if isinstance(one, huggingface.HuggingFace)}
    with closing(ours.trainer.stream.updates()) as groups:
        batches = [group.batches[0] for group in islice(groups, BATCHES_OF_FLOOR)]
    return {
        "environment": environment(options.threads),
        "torch": torch.__version__,
        "accelerate": version("accelerate") if "huggingface" in entered else None,
        "joeynmt": next((one.version for one in entered.values() if isinstance(one, Joey)), None),
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()},
        "contestants": {name: row(one, passes[name], passes["ours"]) for name, one in entered.items()},
        "left_out": left_out,
        "pipeline": pipeline,
        "padding_of_an_epoch": {"ours": loaded.count.padding(), **epochs},
        "floor": floor([partial(ours.step, batch) for batch in batches], options.floor_repeats),
    }


def text(result: Mapping[str, Any]) -> str:
    """The figures as Markdown tables."""
    options, low = result["options"], result["floor"]
    lines = [
        f"{options['architecture']}, {options['threads']} threads, {options['updates']} updates a turn,"
        f" {options['repeats']} turns, torch {result['torch']}",
        "",
        "| trainer | parameters | target tokens/s | ours is | s an update | target tokens an update | padding |"
        " source and target symbols/s, padding included |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in result["contestants"].values():
        lines.append(
            f"| {one['name']} | {one['parameters']:,} | {one['target_tokens_per_s']:,.0f} |"
            f" {one['ours_is_times_as_fast']:.2f} x | {one['seconds_an_update']:.3f} |"
            f" {one['target_tokens_an_update']:,.0f} | {one['padding']['both']:.1%} | {one['places_per_s']:,.0f} |"
        )
    lines += [f"- {name}: {reason}" for name, reason in result["left_out"].items()]
    lines += ["", "| padding of an epoch | source | target | both |", "|---|--:|--:|--:|"]
    for name, share in result["padding_of_an_epoch"].items():
        lines.append(f"| {name} | " + " | ".join(f"{share[side]:.1%}" for side in ("source", "target", "both")) + " |")
    waited = result["contestants"]["ours"]["waited_share"]
    lines += ["", f"waiting for input: {waited:.2%} of the time of our updates; the input pipeline alone:"]
    for name, one in result["pipeline"].items():
        lines.append(
            f"- {name}: {one['tokens_per_s']:,.0f} target tokens/s, {one['times_training']:,.0f} times what training"
            f" takes; first batch after {one['first_batch_s']:.2f} s; padding {one['padding']['both']:.1%}"
        )
    lines += [
        "",
        f"floor: a step of {low['step_ms']:,.0f} ms makes {low['products']:,.0f} matrix products, which alone"
        f" take {low['products_ms']:,.0f} ms in bfloat16 = {low['products_share']:.0%} of it;"
        f" {low['gflop']:,.0f} GFLOP, {low['step_gflop_per_s']:,.0f} GFLOP/s in the step,"
        f" {low['products_gflop_per_s']:,.0f} in its products alone,"
        f" {low['large_product_gflop_per_s']:,.0f} in a large product (the step is at {low['peak_share']:.0%})",
    ]
    return "\n".join(lines)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a run's folder with its prepared data")
    parser.add_argument("--architecture", choices=["transformer", *SHIPPED], default="transformer")
    parser.add_argument("--layers", type=int, default=4, help="of the Transformer's encoder, and of its decoder")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--attention-dropout", type=float, default=0.0, help="on attention weights, for everyone")
    parser.add_argument("--batch-tokens", type=int, default=3500, help="half the padded symbols of a batch")
    parser.add_argument("--updates", type=int, default=50, help="that are timed, of each turn")
    parser.add_argument("--warmup", type=int, default=3, help="updates before them, at least 1")
    parser.add_argument("--repeats", type=int, default=3, help="turns")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--joeynmt", type=Path, metavar="PYTHON", help="the interpreter that has Joey NMT")
    parser.add_argument("--preload", type=Path, metavar="LIBRARY", help="an allocator: libtcmalloc_minimal.so.4")
    parser.add_argument("--recipe", type=Path, help="whose batches of the run's data are measured as well")
    parser.add_argument("--loaded", type=int, default=2000, help="updates' batches read to measure the input, at most")
    parser.add_argument("--floor-repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    for name in ("updates", "warmup", "repeats", "threads", "layers", "loaded", "floor_repeats"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, but is {getattr(options, name)}")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parse(arguments)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    torch.set_num_threads(options.threads)
    size = Size(options.layers, options.width, options.hidden, options.heads)
    try:
        work = Work.open(options.run / "data", size, options.batch_tokens, options.threads)
        result = measure(work, options)
    except TandemError as error:
        sys.exit(str(error))
    print(json.dumps(result, indent=1) if options.json else text(result))


if __name__ == "__main__":
    main()
