"""The parameters of our Transformer from somebody else's tensors, checked by value (no NaN, no infinity)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tandem.extras.importing.plan import Plan, TensorPart
from tandem.extras.importing.tensors import Tensors
from tandem.models.architectures.transformer import Transformer
from tandem.models.steps.loading import model_tensors

HALF_MAX = torch.finfo(torch.float16).max


def fill(model: Transformer, plan: Plan, tensors: Tensors, report: Callable[[str], None]) -> list[str]:
    """Write the parameters of a model whose plan fits.

    Returns:
        A fault for each tensor that is not finite, or beyond half precision.
    """
    faults: list[str] = []
    report(f"reading {tensors.numbers / 1e6:.1f} million numbers")
    with torch.no_grad():
        for name, own in model_tensors(model).items():
            made = plan[name]
            pieces = [_read(one, tensors, faults) for one in made.parts if one.name(tensors.shapes) in tensors.shapes]
            if made.rows is None:
                own.copy_(torch.cat(pieces))
                continue
            rows = torch.tensor(made.rows)
            own.fill_(made.fill)
            own[rows >= 0] = torch.cat(pieces)[rows[rows >= 0]] if pieces else 0.0
    return faults


def _read(one: TensorPart, tensors: Tensors, faults: list[str]) -> Tensor:
    name = one.name(tensors.shapes)
    tensor = tensors.read(name)
    if not torch.isfinite(tensor).all():
        wrong = int((~torch.isfinite(tensor)).sum())
        faults.append(f"{name} must be finite, but {wrong} of its {tensor.numel()} numbers are not")
    elif (largest := float(tensor.abs().max())) > HALF_MAX:
        faults.append(f"{name} must be at most {HALF_MAX:g}, but reaches {largest:g}: bundles hold half precision")
    made: Tensor = one.of(tensor)
    return made
