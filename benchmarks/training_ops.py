"""What the pieces of a training step cost on this CPU, plain and as this repository runs them.

    python benchmarks/training_ops.py [--tokens 3500] [--threads 2] [--repeats 9] [--json]

Medians in milliseconds, forward and backward, both forms in turn in one run; ratios are what to quote.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.dpn import Dpn, DpnConfig
from models.layers.dropout import Dropout
from models.protocol import Padded
from training.loss import smoothed_cross_entropy

VOCABULARY, WIDTH, HIDDEN, LENGTH = 8000, 256, 1024, 25


def medians(plain: Callable[[], None], ours: Callable[[], None], repeats: int) -> tuple[float, float]:
    """Median milliseconds of both, measured in turn after one warm-up each."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for work, seen in zip((plain, ours), times, strict=True):
            started = time.perf_counter()
            work()
            if turn:
                seen.append(1000 * (time.perf_counter() - started))
    return statistics.median(times[0]), statistics.median(times[1])


def dropout_pair(tokens: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Dropout on the hidden units of a feed-forward block."""
    x = torch.randn(tokens, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    own = Dropout(0.1)
    return lambda: F.dropout(x, 0.1).sum().backward(), lambda: own(x).sum().backward()


def loss_pair(tokens: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Output layer and label-smoothed cross-entropy."""
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=3500)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    pairs = {
        "dropout": dropout_pair(options.tokens),
        "output layer and loss": loss_pair(options.tokens),
        "adam": optimiser_pair(),
        "step": step_pair(options.tokens),
    }
    rows = {}
    for name, (plain, ours) in pairs.items():
        before, after = medians(plain, ours, options.repeats)
        rows[name] = {"plain_ms": round(before, 1), "ours_ms": round(after, 1), "ratio": round(before / after, 2)}
    rows["step"]["target_tokens_per_s"] = round(options.tokens / rows["step"]["ours_ms"] * 1000)
    if options.json:
        print(json.dumps({"tokens": options.tokens, "threads": options.threads, "rows": rows}))
        return
    print(f"{options.tokens} target tokens, {options.threads} threads, torch {torch.__version__}")
    for name, row in rows.items():
        print(f"{name:24}" + "".join(f"  {key} {value:>8}" for key, value in row.items()))


if __name__ == "__main__":
    main()
