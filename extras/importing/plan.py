"""One mapping of weights for every form of file: which tensors of theirs make each parameter of our Transformer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]

NEVER = -100.0
"""Logit of a type that must not be written: e^-100 of a probability, and small enough for half precision."""


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

    def of(self, tensor: Any) -> Any:
        """What is left of a tensor, or of an array."""
        tensor = tensor.T if self.turned else tensor
        tensor = tensor.reshape(-1) if self.flat else tensor
        place, count = self.piece
        rows = (len(tensor) - self.skipped) // count
        start = self.skipped + place * rows
        return tensor[start : start + rows]


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


def plan_faults(
    own: Mapping[str, Shape], plan: Plan, theirs: Mapping[str, Shape], beside: Sequence[str] = ()
) -> list[str]:
    """Why a model cannot be made of some tensors, one sentence each: missing, of another shape, or left over.

    Args:
        own: the shapes of our parameters.
        plan: for all of them.
        theirs: the shapes of theirs.
        beside: names of tensors that may be left over, since they repeat others or can be computed.
    """
    faults, used = [], set(beside)
    for name, shape in own.items():
        made = plan[name]
        for one in made.parts:
            used.update(one.names)
        present = [one for one in made.parts if one.name(theirs) in theirs]
        missing = [one.names[0] for one in made.parts if one not in present]
        if missing and not made.optional:
            faults += [f"the weights lack {one}" for one in missing]
        elif present:
            faults += _shape_faults(shape, made, present, theirs)
    faults += [f"the weights have an unknown tensor {name}" for name in sorted(theirs.keys() - used)]
    return faults


def _shape_faults(
    own: Shape, made: ParameterPlan, parts: Sequence[TensorPart], theirs: Mapping[str, Shape]
) -> Iterator[str]:
    found = [(one.name(theirs), theirs[one.name(theirs)]) for one in parts]
    left = [one.shape(shape) for one, (_, shape) in zip(parts, found, strict=True)]
    rows = max(made.rows) + 1 if made.rows is not None else own[0]
    width_fits = all(shape[1:] == own[1:] and shape for shape in left)
    total = sum(shape[0] for shape in left if shape)
    if not width_fits or total != rows:
        named = ", ".join(f"{name} {list(shape)}" for name, shape in found)
        yield f"{named}: the configuration asks for {[rows, *own[1:]]} in all"
