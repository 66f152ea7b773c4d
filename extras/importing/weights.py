"""One mapping of weights for every form of file: which tensors of theirs make each parameter of our Transformer.

Checked by shape before anything is read, and by value (no NaN, no infinity) while it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from extras.importing.tensors import Shape, Tensors
from models.architectures.transformer import Transformer
from models.steps.loading import model_tensors

NEVER = -100.0
"""Logit of a type that must not be written: e^-100 of a probability, and small enough for half precision."""


HALF_MAX = torch.finfo(torch.float16).max


@dataclass(frozen=True, slots=True)
class TensorPart:
    """One of their tensors.

    Attributes:
        names: it may have, of which the first that is there is taken.
        turned: stored inputs x outputs.
        piece: (k, n): only the k-th of n equal pieces of its outputs.
        skipped: rows at its beginning that are left out.
        flat: a table of one row (1 x V) that is a vector.
    """

    names: tuple[str, ...]
    turned: bool = False
    piece: tuple[int, int] = (0, 1)
    skipped: int = 0
    flat: bool = False

    def name(self, shapes: Mapping[str, Shape]) -> str:
        """That it has here; the first where it is not there."""
        return next((name for name in self.names if name in shapes), self.names[0])

    def shape(self, shape: Shape) -> Shape:
        """What is left of a shape."""
        shape = shape[::-1] if self.turned else shape
        shape = shape[1:] if self.flat and len(shape) == 2 and shape[0] == 1 else shape
        rows = (shape[0] - self.skipped) // self.piece[1] if shape else 0
        return (rows, *shape[1:])

    def of(self, tensor: Tensor) -> Tensor:
        """What is left of a tensor."""
        tensor = tensor.T if self.turned else tensor
        tensor = tensor.reshape(-1) if self.flat else tensor
        place, count = self.piece
        return tensor[self.skipped :].chunk(count)[place]


@dataclass(frozen=True, slots=True)
class ParameterPlan:
    """How one of our parameters is made: parts below one another, or chosen rows of one part.

    Attributes:
        parts: in order.
        rows: for each of our rows which of theirs it is; -1 = ``fill``. None = all of theirs, in order.
        fill: see there.
        optional: of chosen rows, 0 in the place of theirs where there is no such tensor.
    """

    parts: tuple[TensorPart, ...]
    rows: tuple[int, ...] | None = None
    fill: float = 0.0
    optional: bool = False


Plan = Mapping[str, ParameterPlan]
"""For each of our parameters how it is made."""


def part(*names: str, turned: bool = False, flat: bool = False) -> TensorPart:
    """A tensor that has one of these names."""
    return TensorPart(names, turned=turned, flat=flat)


def plan_faults(model: Transformer, plan: Plan, tensors: Tensors, beside: Sequence[str] = ()) -> list[str]:
    """Why a model cannot be made of some tensors, one sentence each: missing, of another shape, or left over.

    Args:
        model: on any device, the meta device included.
        plan: for all of its parameters.
        tensors: theirs.
        beside: names of tensors that may be left over, since they repeat others or can be computed.
    """
    faults, used = [], set(beside)
    for name, own in model_tensors(model).items():
        made = plan[name]
        for one in made.parts:
            used.update(one.names)
        present = [one for one in made.parts if one.name(tensors.shapes) in tensors.shapes]
        missing = [one.names[0] for one in made.parts if one not in present]
        if missing and not made.optional:
            faults += [f"the weights lack {one}" for one in missing]
        elif present:
            faults += _shape_faults(tuple(own.shape), made, present, tensors)
    faults += [f"the weights have an unknown tensor {name}" for name in sorted(tensors.shapes.keys() - used)]
    return faults


def _shape_faults(own: Shape, made: ParameterPlan, parts: Sequence[TensorPart], tensors: Tensors) -> Iterator[str]:
    found = [(one.name(tensors.shapes), tensors.shapes[one.name(tensors.shapes)]) for one in parts]
    left = [one.shape(shape) for one, (_, shape) in zip(parts, found, strict=True)]
    rows = max(made.rows) + 1 if made.rows is not None else own[0]
    width_fits = all(shape[1:] == own[1:] and shape for shape in left)
    total = sum(shape[0] for shape in left if shape)
    if not width_fits or total != rows:
        named = ", ".join(f"{name} {list(shape)}" for name, shape in found)
        yield f"{named}: the configuration asks for {[rows, *own[1:]]} in all"


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
    return one.of(tensor)
