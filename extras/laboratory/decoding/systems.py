"""What is measured, behind one interface: text -> ids -> hypotheses -> text.

Every system gets the same batches. Tokenising and detokenising are part of each, so that a throughput counts everything
from text in to text out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.models.search import Hypothesis

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
        native: whether our own operators are used (extras/native).
    """

    system: str
    model: str
    precision: str
    shortlist: bool = False
    native: bool = False

    def __str__(self) -> str:
        further = [name for name in ("native", "shortlist") if getattr(self, name)]
        return " ".join((self.system, self.precision, *further))


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


class DecodingSystem(Protocol):
    """Something that translates batches of text on several workers."""

    @property
    def label(self) -> Label: ...

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of every text, EOS last."""

    def decode(self, tasks: Sequence[Task]) -> list[list[Hypothesis]]:
        """The best hypothesis of each sentence of all tasks, on all workers, in the order given."""

    def decode_alone(self, task: Task) -> list[Hypothesis]:
        """One task on one thread, with nothing beside it."""

    def detokenise(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Hypotheses as text, given the texts that they translate."""

    def close(self) -> None:
        """Let go of threads and memory."""
