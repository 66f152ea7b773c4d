"""What is measured, behind one interface: text -> ids -> hypotheses -> text.

Every system gets the same batches. Tokenising and detokenising are part of each, so that a throughput counts everything
from text in to text out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from models.search import Hypothesis

TANDEM = "tandem"
Ids: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Label:
    """What a row is about.

    Attributes:
        system: "tandem" or the peer's name.
        model: the bundle's name, or the size of a random model.
        precision: "int8" or "float32".
        shortlist: whether the output layer is cut to the words that the source makes likely.
    """

    system: str
    model: str
    precision: str
    shortlist: bool = False

    def __str__(self) -> str:
        return " ".join((self.system, self.precision, *(["shortlist"] if self.shortlist else [])))


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One batch as a system gets it.

    Attributes:
        sources: token ids of each sentence, EOS last.
        target: tokens that each hypothesis must have, without EOS; None where it stops by itself.
    """

    sources: tuple[Ids, ...]
    target: int | None

    @property
    def longest(self) -> int:
        """Tokens of the longest source, without EOS."""
        return max(len(source) for source in self.sources) - 1


@dataclass(frozen=True, slots=True, eq=False)
class DecodedBatch:
    """What came of a task.

    Attributes:
        hypotheses: the best of each sentence.
        phases: seconds by phase, where a system tells.
        steps: of the search, first steps included; 0 where a system does not tell.
    """

    hypotheses: tuple[Hypothesis, ...]
    phases: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0


class DecodingSystem(Protocol):
    """Something that translates batches of text on several workers."""

    @property
    def label(self) -> Label: ...

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of every text, EOS last."""

    def decode(self, tasks: Sequence[Task]) -> list[DecodedBatch]:
        """All tasks, on all workers, in the order given."""

    def decode_alone(self, task: Task) -> DecodedBatch:
        """One task on one thread, with nothing beside it."""

    def detokenise(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Hypotheses as text, given the texts that they translate."""

    def close(self) -> None:
        """Let go of threads and memory."""
