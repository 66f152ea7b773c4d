"""Frozen records of tensors: what a model derives from its sources (memory) and carries between steps (state).

Every tensor field declares what it is with :func:`memory`, :func:`rows` or :func:`pool`; selection, growth and export
are generic over those declarations, so no architecture writes its own reordering (and none can forget a tensor).

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows (sentence-major), P pool slots, T new positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import torch
from torch import Tensor

Kind = Literal["memory", "rows", "pool", "position", "history"]


def memory(*axes: str, padding: float = 0.0) -> Any:
    """A field of tensors whose first axis is the sentence; ``axes`` names the others.

    ``"source0"`` is the length of that source, ``"fixed"`` a constant. In a tuple with one tensor per source,
    ``"source"`` is the length of the source that the tensor is of.
    """
    return field(metadata={"kind": "memory", "axes": ("sentence", *axes), "padding": padding})


def rows(*, initial: bool = False) -> Any:
    """A field of tensors R x ...: replaced at each step, reordered with the beam.

    ``initial`` says that the first state depends on the sources; otherwise it is zeros.
    """
    return field(metadata={"kind": "rows", "initial": initial})


def pool() -> Any:
    """A field of tensors B x ... x P x E: append-only, shared by the K rows of a sentence, never reordered.

    The slots are the last axis but one, so that pools may be kept by head.
    """
    return field(metadata={"kind": "pool"})


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Base of memory and state: walks its tensors by their declared kind."""

    def tensors(self) -> Iterator[tuple[str, dataclasses.Field[Any], Tensor]]:
        """Every tensor with its flat name (``keys.0``) and its field, in declaration order."""
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Tensor):
                yield item.name, item, value
            else:
                for index, tensor in enumerate(value):
                    yield f"{item.name}.{index}", item, tensor

    def map(self, function: Callable[[dataclasses.Field[Any], Tensor], Tensor]) -> Self:
        """The record with ``function`` applied to every tensor."""
        return self.rebuild(self, {name: function(item, tensor) for name, item, tensor in self.tensors()})

    @classmethod
    def rebuild(cls, template: Self, values: Mapping[str, Tensor]) -> Self:
        """A record shaped like ``template`` with the tensors of ``values`` (by flat name)."""
        changes: dict[str, Any] = {}
        for item in dataclasses.fields(template):
            value = getattr(template, item.name)
            if isinstance(value, Tensor):
                changes[item.name] = values[item.name]
            else:
                changes[item.name] = tuple(values[f"{item.name}.{i}"] for i in range(len(value)))
        return dataclasses.replace(template, **changes)


@dataclass(frozen=True, slots=True, eq=False)
class Memory(Record):
    """Everything derived from the sources, once per sentence: every tensor has B rows."""

    def select(self, sentence: Tensor) -> Self:
        """The memory of the chosen sentences, in that order (repeats and omissions allowed)."""
        return self.map(lambda _, tensor: tensor.index_select(0, sentence))


@dataclass(frozen=True, slots=True, eq=False)
class State(Record):
    """What the next step needs.

    Attributes:
        position_R: position of the next input of each row, 0 for BOS; rows of different age share a batch.
        history_RP: additive mask over the pool slots: 0 where the row's own past lies, -inf elsewhere.
    """

    position_R: Tensor = field(metadata={"kind": "position"})
    history_RP: Tensor = field(metadata={"kind": "history"})

    @classmethod
    def begin(cls, rows_R: int, device: torch.device, **fields: tuple[Tensor, ...]) -> Self:
        """The state before BOS of so many rows: position 0 and no slots yet; ``fields`` are the architecture's own."""
        position_R = torch.zeros(rows_R, dtype=torch.int64, device=device)
        return cls(position_R=position_R, history_RP=torch.zeros(rows_R, 0, device=device), **fields)

    def select(self, parent_R: Tensor) -> Self:
        """Rows reordered, repeated or dropped *within their sentences*: pools stay where they are.

        ``parent_R`` indexes the old rows; the new number of rows per sentence may differ from the old.
        """
        return self.map(lambda item, x: x if item.metadata["kind"] == "pool" else x.index_select(0, parent_R))

    def advance(self, update: Mapping[str, tuple[Tensor, ...]], sentences: int) -> Self:
        """The state after one position: rows replaced, pools grown by one slot per row, history extended.

        Args:
            update: for each rows field its new tensors (R x ...), for each pool field the new entries (R x ...).
            sentences: B.
        """
        changes: dict[str, Any] = {"position_R": self.position_R + 1}
        for item in dataclasses.fields(self):
            if item.metadata["kind"] == "rows":
                changes[item.name] = update[item.name]
            elif item.metadata["kind"] == "pool":
                changes[item.name] = tuple(
                    torch.cat([old, new.reshape(sentences, -1, *new.shape[1:]).movedim(1, -2)], dim=-2)
                    for old, new in zip(getattr(self, item.name), update[item.name], strict=True)
                )
        rows_per_sentence = self.position_R.size(0) // sentences
        own = torch.full((rows_per_sentence, rows_per_sentence), -torch.inf, device=self.history_RP.device)
        own = own.fill_diagonal_(0.0).repeat(sentences, 1)
        changes["history_RP"] = torch.cat([self.history_RP, own], dim=1)
        return dataclasses.replace(self, **changes)
