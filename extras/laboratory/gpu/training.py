"""Training on the device: it learns what the CPU learns, and how fast."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.distributed.elastic.utils.distributed import get_free_port
from torch.multiprocessing.spawn import spawn

from tandem.extras.laboratory.gpu.lines import Found, Missing
from tandem.extras.laboratory.gpu.search import synchronise
from tandem.extras.laboratory.gpu.subjects import (
    build_system,
    epoch_batches,
    replace_dropout,
    system_config,
    training_batches,
    training_recipe,
)
from tandem.models.architectures.registry import build_model
from tandem.models.steps.torch_graphs import AnyModel
from tandem.training.data.batches import TrainingBatch
from tandem.training.loop.stepping import Stepper
from tandem.training.optimisation.optim import learning_rate
from tandem.training.optimisation.precision import one_thread
from tandem.training.parallel import Processes, joined
from tandem.training.recipe import Recipe

_LOSS = 1e-3  # largest difference of a loss, as a share of it
_WARM_UP = 5
_DROPOUT = 0.1


def equal(*, system: str, device: str, small: bool) -> Found:
    """The loss of every one of 50 updates in float32, from the same weights on the same batches, beside the CPU's.

    The CPU has one thread for them: the models are small, and a step of a recurrent one is thousands of operations,
    at each of which the threads of a processor of many cores, not all of which may be ours, would wait for one another.
    """
    updates, tokens = (6, 200) if small else (50, 1500)
    recipe = training_recipe(system, precision="float32", label_smoothing=0.1)
    config = system_config(system, small=True)
    batches = list(training_batches(config, updates, tokens, (4, 16)))
    losses, took = [], []
    for where in ("cpu", device):
        stepper = Stepper(build_system(system, small=True).to(where), recipe, Processes(device=where))
        started = time.perf_counter()
        with one_thread():
            losses.append(_losses(stepper, recipe, batches))
        took.append(time.perf_counter() - started)
    apart = max(abs(one - other) / one for one, other in zip(*losses, strict=True))
    figures = {"first": losses[1][0], "last": losses[1][-1], "largest_difference": apart, "updates": updates}
    figures |= {"cpu_seconds": took[0], "device_seconds": took[1]}
    summary = f"{updates} updates, loss {losses[1][0]:.3f} to {losses[1][-1]:.3f}, within {apart:.1e} of the CPU's"
    summary += f", in {took[1]:.1f} s, there {took[0]:.1f} s"
    return Found(summary, figures, apart <= _LOSS)


def _losses(stepper: Stepper, recipe: Recipe, batches: list[TrainingBatch]) -> list[float]:
    found = []
    for number, batch in enumerate(batches, start=1):
        rate = learning_rate(recipe.optimiser, number, 10**6, 0)
        step = stepper.step((batch,), batch.target_tokens, rate)
        found.append(step.loss / batch.target_tokens)
    return [float(loss) for loss in found]


def speed(*, system: str, device: str, small: bool, compiled: bool, tokens: int, seconds: float, corpora: str) -> Found:
    """One epoch in bfloat16 of a whole model with dropout, or as much as fits the time: target symbols a second."""
    if compiled and device == "cpu":
        raise Missing("is compiled on a GPU only")
    recipe = training_recipe(system, precision="bf16", compile=compiled)
    model = _dropping(system, small).to(device)
    if compiled and model.recurrent:
        raise Missing("goes from position to position, and is not compiled")
    stepper = Stepper(model, recipe, Processes(device=device))
    made, data = epoch_batches(model.config, tokens, corpora, small=small)
    epoch = [batch.pinned() for batch in made] if device == "cuda" else made
    started = time.perf_counter()
    for batch in epoch[: 1 if small else _WARM_UP]:
        _update(stepper, recipe, batch)
    synchronise(device)
    warm_up = time.perf_counter() - started
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    updates = count = 0
    started = time.perf_counter()
    for batch in epoch:
        if updates and time.perf_counter() - started > seconds:
            break
        _update(stepper, recipe, batch)
        updates, count = updates + 1, count + batch.target_tokens
    synchronise(device)
    took = time.perf_counter() - started
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None
    figures = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "data": data,
        "epoch": updates / len(epoch),
        "seconds": took,
        "target_tokens_per_s": count / took,
        "seconds_an_update": took / updates,
        "target_tokens_an_update": count / updates,
        "warm_up_s": warm_up,
        "peak_gib": peak,
    }
    memory = "" if peak is None else f", {peak:.1f} GiB"
    share = "one epoch" if updates == len(epoch) else f"{updates / len(epoch):.0%} of an epoch"
    rate = f"{count / took:,.0f} target tokens/s, {1e3 * took / updates:.0f} ms an update"
    return Found(f"{share} of {data} in {took:.1f} s, {rate}, warm-up {warm_up:.1f} s{memory}", figures)


def _dropping(system: str, small: bool) -> AnyModel:
    """The system with dropout, as it is trained."""
    config = replace_dropout(system_config(system, small=small), _DROPOUT)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return build_model(training_recipe(system).architecture, config)


def _update(stepper: Stepper, recipe: Recipe, batch: TrainingBatch) -> None:
    stepper.step((batch,), batch.target_tokens, recipe.optimiser.learning_rate)


def together(*, system: str, device: str, small: bool) -> Found:
    """Two processes with a GPU each, over NCCL, against one: the same losses."""
    if device == "cuda" and torch.cuda.device_count() < 2:
        raise Missing("needs two GPUs")
    updates = 3 if small else 20
    config = system_config(system, small=True)
    batches = list(training_batches(config, 2 * updates, 200 if small else 1500, (4, 16)))
    recipe = training_recipe(system, precision="float32", accumulate=2)
    stepper = Stepper(build_system(system, small=True).to(device), recipe, Processes(device=device))
    alone = []
    for one, other in zip(batches[::2], batches[1::2], strict=True):
        tokens = one.target_tokens + other.target_tokens
        alone.append(float(stepper.step((one, other), tokens, 1e-3).loss) / tokens)
    with tempfile.TemporaryDirectory(prefix="tandem-together-") as folder:
        arguments = (system, device, updates, small, get_free_port(), folder)
        spawn(_one_of_two, arguments, nprocs=2)
        shares = [torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(2)]
    both = [float(one + other) for one, other in zip(*shares, strict=True)]
    apart = max(abs(one - other) / one for one, other in zip(alone, both, strict=True))
    summary = f"{updates} updates on two, within {apart:.1e} of one"
    return Found(summary, {"updates": updates, "largest_difference": apart}, apart <= _LOSS)


def _one_of_two(
    rank: int, system: str, device: str, updates: int, small: bool, port: int, folder: str
) -> None:  # started by torch
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    config = system_config(system, small=True)
    batches = list(training_batches(config, 2 * updates, 200 if small else 1500, (4, 16)))
    recipe = training_recipe(system, precision="float32", accumulate=2)
    losses: list[Any] = []
    with joined(device) as processes:
        stepper = Stepper(build_system(system, small=True).to(processes.device), recipe, processes)
        for pair in zip(batches[::2], batches[1::2], strict=True):
            tokens = sum(batch.target_tokens for batch in pair)
            losses.append(stepper.step((pair[rank],), tokens, 1e-3).loss.cpu() / tokens)
    torch.save(losses, Path(folder) / f"{rank}.pt")
