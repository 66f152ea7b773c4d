"""The records that travel through the engine: a job goes in, a ticket waits and runs, a decoded sentence comes out."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from tandem.models.search import Hypothesis, SearchOptions, Sentence

# Predicted target tokens of a source of S tokens: what a translation rarely exceeds. A prediction that is too high
# refuses work a little early; one that is too low lets the queue outgrow its bound in seconds.
_TARGET_RATIO, _TARGET_EXTRA = 1.5, 8


class Priority(enum.IntEnum):
    """Interactive sentences go before bulk ones."""

    INTERACTIVE = 0
    BULK = 1


@dataclass(frozen=True, slots=True)
class BatchKey:
    """What the sentences of one running batch share.

    Attributes:
        bundle, beam_size, priority: theirs.
        alone: id of the only ticket that the batch may hold, one that was in a batch that crashed; None = of any.
    """

    bundle: str
    beam_size: int
    priority: Priority
    alone: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One sentence to decode.

    Attributes:
        bundle: name of a loaded bundle.
        sources: per source of the model, token ids ending with EOS.
        options: how to search.
        priority: interactive before bulk.
        deadline: on the engine's clock; None = none.
        cache: whether the result may come from, and go into, the result cache.
        tag: the request's id, for logs.
        caller: who asks; empty for whoever need not share the queue.
    """

    bundle: str
    sources: tuple[tuple[int, ...], ...]
    options: SearchOptions
    priority: Priority = Priority.INTERACTIVE
    deadline: float | None = None
    cache: bool = True
    tag: str = ""
    caller: str = ""

    @property
    def key(self) -> BatchKey:
        """Says which batches it may join."""
        return BatchKey(self.bundle, self.options.beam_size, self.priority)

    @property
    def length(self) -> int:
        """Tokens of the longest source."""
        return max(len(source) for source in self.sources)

    @property
    def longest(self) -> int:
        """Tokens at which a hypothesis is cut."""
        return self.options.bounds(self.length - 1)[1]

    @property
    def source_tokens(self) -> int:
        """Tokens of all sources."""
        return sum(len(source) for source in self.sources)

    @property
    def predicted_tokens(self) -> int:
        """Source tokens plus the target tokens to be expected."""
        target = min(self.options.max_length, math.ceil(_TARGET_RATIO * self.length) + _TARGET_EXTRA)
        return self.source_tokens + target

    def sentence(self, number: int) -> Sentence:
        """What a batch decodes, under a number of its own."""
        return Sentence(number, tuple(np.asarray(source, dtype=np.int64) for source in self.sources), self.options)


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """A job that was admitted.

    Attributes:
        id: unique within the scheduler, rising with arrival.
        job: the job.
        key: says which batches it may join.
        arrival: when it was admitted, on the scheduler's clock.
        urgency: its place in the order: arrival, later for bulk. Lower goes first.
        tokens: predicted tokens it occupies in the bounded queue until it leaves.
    """

    id: int
    job: Job
    key: BatchKey
    arrival: float
    urgency: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Decoded:
    """A finished sentence; times in seconds.

    Attributes:
        hypotheses: best first.
        cached: whether it came from the result cache.
        queue: from admission until it joined a batch.
        encode: of the call that encoded it, together with those that joined with it.
        decode: from then until it was finished.
    """

    hypotheses: tuple[Hypothesis, ...]
    cached: bool = False
    queue: float = 0.0
    encode: float = 0.0
    decode: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a running batch already holds.

    Attributes:
        sentences: how many.
        longest: source tokens of the longest.
        closed: whether it takes no more, because its bundle has been replaced.
    """

    sentences: int = 0
    longest: int = 0
    closed: bool = False
