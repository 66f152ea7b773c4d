"""`tandem bench training-ops`: what the pieces of a training step cost on this CPU, plain and as they run here."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.options import OperationsOptions
from benchmarks.runner import seconds_of, take_turns
from deploy.report import console, environment, say, show_environment, table
from models.dpn import Dpn, DpnConfig
from models.layers.dropout import Dropout
from models.protocol import Padded
from service.telemetry.cgroups import usable_cores
from training.loss import smoothed_cross_entropy

VOCABULARY, WIDTH, HIDDEN, LENGTH = 8000, 256, 1024, 25


def medians(plain: Callable[[], None], ours: Callable[[], None], repeats: int) -> tuple[float, float]:
    """Median milliseconds of both, measured in turn after one warm-up each."""
    for work in (plain, ours):
        work()
    times = take_turns((plain, ours), repeats, lambda work, number: 1000 * seconds_of(work, 1, warm_up=0)[0])
    return statistics.median(times[0]), statistics.median(times[1])


def dropout_pair(tokens: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Dropout on the hidden units of a feed-forward block."""
    x = torch.randn(tokens, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    own = Dropout(0.1)
    return lambda: F.dropout(x, 0.1).sum().backward(), lambda: own(x).sum().backward()


def loss_pair(tokens: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """ResultOutput layer and label-smoothed cross-entropy."""
    features = torch.randn(tokens // LENGTH, LENGTH, WIDTH, requires_grad=True)
    weight = (0.1 * torch.randn(VOCABULARY, WIDTH)).requires_grad_()
    bias = torch.zeros(VOCABULARY, requires_grad=True)
    target = torch.randint(1, VOCABULARY, features.shape[:2])

    def ours() -> None:
        loss, _ = smoothed_cross_entropy(features, weight, bias, target, smoothing=0.1, low_precision=True)
        loss.backward()

    return lambda: _plain_loss(features, weight, bias, target).backward(), ours


def optimiser_pair() -> tuple[Callable[[], None], Callable[[], None]]:
    """Adam over the parameters of the model below."""

    def stepper(fused: bool) -> Callable[[], None]:
        parameters = [torch.zeros(1000, WIDTH, requires_grad=True) for _ in range(45)]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimiser = torch.optim.Adam(parameters, fused=fused, foreach=not fused)
        return lambda: optimiser.step()

    return stepper(False), stepper(True)


def step_pair(tokens: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """A whole step, without the optimiser, of the DPN-S2S that ships, in bfloat16."""
    models = [Dpn(DpnConfig(source_vocabularies=(VOCABULARY,), target_vocabulary=VOCABULARY)) for _ in range(2)]
    for module in list(models[0].modules()):
        for name, child in module.named_children():
            if isinstance(child, Dropout):
                setattr(module, name, nn.Dropout(child.rate))
    rows = tokens // LENGTH
    source = Padded(torch.randint(4, VOCABULARY, (rows, LENGTH)), torch.full((rows,), LENGTH))
    target = torch.randint(4, VOCABULARY, (rows, LENGTH))

    def step(model: Dpn, chunked: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            features = model.decode(target, model.encode((source,)))
        weight, bias = model.output_parameters()
        assert bias is not None
        if chunked:
            loss, _ = smoothed_cross_entropy(features, weight, bias, target, smoothing=0.1, low_precision=True)
        else:
            loss = _plain_loss(features, weight, bias, target)
        loss.backward()
        model.zero_grad(set_to_none=True)

    return lambda: step(models[0], False), lambda: step(models[1], True)


def _plain_loss(features: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        logits = F.linear(features, weight, bias)
    return F.cross_entropy(
        logits.float().flatten(0, 1), target.flatten(), label_smoothing=0.1, ignore_index=0, reduction="sum"
    )


def measure(options: OperationsOptions) -> dict[str, Any]:
    """Both forms of each piece, by turns: ``environment``, ``tokens``, ``rows``."""
    threads = options.threads or usable_cores()
    torch.set_num_threads(threads)
    pairs = {
        "dropout": dropout_pair(options.tokens),
        "output layer and loss": loss_pair(options.tokens),
        "adam": optimiser_pair(),
        "step": step_pair(options.tokens),
    }
    rows: list[dict[str, Any]] = []
    for name, (plain, ours) in pairs.items():
        before, after = medians(plain, ours, options.repeats)
        row = {"piece": name, "plain_ms": round(before, 1), "ours_ms": round(after, 1)}
        rows.append({**row, "ratio": round(before / after, 2)})
    rows[-1]["target_tokens_per_s"] = round(options.tokens / rows[-1]["ours_ms"] * 1000)
    return {"environment": environment(threads), "tokens": options.tokens, "rows": rows}


def show(result: Mapping[str, Any]) -> None:
    """Print the table."""
    columns = {
        **{"piece": "piece", "plain_ms": "plain ms", "ours_ms": "ours ms", "ratio": "ratio"},
        "target_tokens_per_s": "target tokens/s",
    }
    say(show_environment(result["environment"]))
    console().print(table(f"{result['tokens']:,} target tokens, forward and backward", columns, result["rows"]))
