"""The endless stream of batches that training reads: epoch after epoch, in shards, shared out to processes.

What is trained on depends on the recipe alone. The batches of an update are the next ``accumulate`` of the stream,
however many processes share them, so a run may be continued with more or fewer of them, and one process gives the
gradients that many give.

A corpus of more than :data:`SHARD` pairs is planned shard by shard: its blocks of :data:`BLOCK` neighbouring pairs are
dealt to the shards anew in every epoch, and a shard is planned as a small corpus is. So what planning holds does not
grow with the corpus, whose arrays are mapped into memory. Smaller corpora are one shard.

torch's DataLoader with a distributed sampler was left aside: its samplers number items, not token budgets, and its
workers are processes, which a batch of numbers that NumPy gathers in a millisecond does not repay.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tandem.training.data.batches import TrainingBatch, collate
from tandem.training.data.dataset import PreparedData
from tandem.training.data.directions import NO_TAGS, SourceTags
from tandem.training.data.plans import BatchPlan, EpochPlan, plan_epoch
from tandem.training.data.prefetch import prefetch
from tandem.training.parallel import Processes

SHARD = 2**20
BLOCK = 1024
T = TypeVar("T")
_DEPTH = 4  # batches kept ready

Planned = tuple[PreparedData, BatchPlan]
"""A batch's plan, and the data whose pairs it names."""


class TextRewriter(Protocol):
    """Rewrites the text of training pairs, anew in every epoch, until it is closed. An extra brings it."""

    def rewrites(self, epoch: int) -> bool:
        """Whether there is anything to rewrite in an epoch."""

    def rewritten(self, data: PreparedData, pairs: NDArray[np.int64], epoch: int) -> PreparedData:
        """Pairs as data of their own, rewritten, numbered anew in their order: a function of seed, epoch and pair.

        Args:
            data: the training split.
            pairs: in rising order.
            epoch: the number of the epoch.
        """

    def close(self) -> None:
        """End what works ahead. Whoever waits for it is let go, with an error."""


@dataclass(frozen=True, slots=True)
class TextRewriting:
    """How training pairs are rewritten.

    Attributes:
        open: makes the rewriter of one stream.
        processes: how many rewrite ahead for this training process; 0 = a thread of its own.
    """

    open: Callable[[], TextRewriter]
    processes: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """What one process computes for one update.

    Attributes:
        batches: its batches, at least one.
        epoch: the epoch of the update's last batch, over all processes.
        batch: how many of that epoch's batches are used after it.
        shards: how many batches each shard of that epoch has that is used up; who goes on from here need not plan them.
    """

    batches: tuple[TrainingBatch, ...]
    epoch: int
    batch: int
    shards: tuple[int, ...] = ()


class Stream:
    """The batches of one split for one process.

    Args:
        data: the split.
        accumulate: batches of an update, over all processes.
        processes: those that train together, and which of them this one is.
        tags: of its sources.
        rewriting: of its pairs; None = they stay as they are.
        limits: what :func:`training.data.plans.plan_epoch` takes besides lengths, groups and epoch.
    """

    def __init__(
        self,
        data: PreparedData,
        accumulate: int,
        processes: Processes,
        tags: SourceTags = NO_TAGS,
        rewriting: TextRewriting | None = None,
        **limits: Any,
    ) -> None:
        self._data, self._accumulate, self._processes = data, accumulate, processes
        self._tags, self._rewriting = tags, rewriting
        self._planner: Callable[..., EpochPlan] = partial(plan_epoch, **limits)
        self._seed = int(limits["seed"])
        self._pins = processes.device.startswith("cuda")
        self._groups = tags.groups(data)

    def updates(self, epoch: int = 0, batch: int = 0, shards: Sequence[int] = ()) -> Generator[Group, None, None]:
        """What to compute for each update, without end, from a place on; batches are prepared in the background.

        Args:
            epoch: the first epoch.
            batch: how many of its batches are used already.
            shards: how many batches its first shards have, where that is known (``Group.shards``).
        """
        depth = max(2, _DEPTH // self._accumulate)
        rewriter = self._open_rewriter()
        places = self._places(rewriter, epoch, batch, tuple(shards))
        # Closed first, the processes that rewrite let the threads go that wait for them; `yield from` would not.
        with closing(prefetch(self._collate, places, depth=depth)) as groups, _closing(rewriter):
            for group in groups:  # noqa: UP028
                yield group

    def plans(self, epoch: int) -> Generator[BatchPlan, None, None]:
        """The batches of an epoch, all processes' together, in training order.

        They name the pairs of what they are made of: where these are rewritten, a shard's own data.
        """
        rewriter = self._open_rewriter()
        with _closing(rewriter):
            for shard in self._shards(epoch):
                for _, plan in self._plan(rewriter, shard):
                    yield plan

    def _open_rewriter(self) -> TextRewriter | None:
        return None if self._rewriting is None else self._rewriting.open()

    def _places(
        self, rewriter: TextRewriter | None, epoch: int, batch: int, known: tuple[int, ...]
    ) -> Generator[tuple[list[Planned], int, int, tuple[int, ...]], None, None]:
        """This process's plans for each update, and the place that follows it."""
        waiting: list[Planned] = []  # an update may begin in one epoch and end in the next
        epochs = chain([self._shards(epoch)[len(known) :]], map(self._shards, count(epoch + 1)))
        shards = chain.from_iterable(epochs)
        with closing(prefetch(partial(self._plan, rewriter), shards, depth=1)) as planned:
            for shard in planned:
                if shard.epoch != epoch:
                    epoch, batch, known = shard.epoch, 0, ()
                for number, one in enumerate(shard, start=sum(known) + 1):
                    if number <= batch:
                        continue
                    waiting.append(one)
                    if len(waiting) == self._accumulate:
                        yield share_out(waiting, self._processes), epoch, number, known
                        waiting = []
                known = (*known, len(shard.plan))

    def _collate(self, place: tuple[list[Planned], int, int, tuple[int, ...]]) -> Group:
        planned, epoch, number, shards = place
        batches = (self._batch(data, plan) for data, plan in planned)
        return Group(tuple(batch.pinned() if self._pins else batch for batch in batches), epoch, number, shards)

    def _batch(self, data: PreparedData, plan: BatchPlan) -> TrainingBatch:
        batch = collate(data, plan, self._tags.before)
        if not plan.target_length:  # nothing was left for this process: a row that teaches nothing
            return batch.without_targets()
        return batch

    def _shards(self, epoch: int) -> list[_Shard]:
        pairs = len(self._data)
        if pairs <= SHARD:
            return [_Shard(epoch, 0, 1, None)]
        blocks, shards = -(-pairs // BLOCK), -(-pairs // SHARD)
        order = np.random.default_rng([self._seed, epoch, 2]).permutation(blocks)
        return [_Shard(epoch, number, shards, own) for number, own in enumerate(np.array_split(order, shards))]

    def _plan(self, rewriter: TextRewriter | None, shard: _Shard) -> _PlannedShard:
        if shard.blocks is None:
            pairs = np.arange(len(self._data))
        else:
            pairs = (np.sort(shard.blocks)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
            pairs = pairs[pairs < len(self._data)]
        if rewriter is not None and rewriter.rewrites(shard.epoch):
            data, chosen = rewriter.rewritten(self._data, pairs, shard.epoch), None
            source, target = data.source_lengths, data.target_lengths
        else:
            data, chosen = self._data, None if shard.blocks is None else pairs
            source, target = data.lengths_of(pairs)
        groups = None if self._groups is None else self._groups[pairs]
        # A shard is to be planned unlike the others; with one shard the plan is that of the epoch.
        plan = self._planner(source, target, groups=groups, epoch=shard.epoch * shard.shards + shard.number)
        return _PlannedShard(shard.epoch, data, chosen, plan)


@dataclass(frozen=True, slots=True, eq=False)
class _Shard:
    """What is planned at once.

    Attributes:
        epoch: the number of its epoch.
        number: its own in the epoch.
        shards: how many the epoch has.
        blocks: what it consists of; None = the whole corpus.
    """

    epoch: int
    number: int
    shards: int
    blocks: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True, eq=False)
class _PlannedShard(Iterable[Planned]):
    """The batches of a shard.

    Attributes:
        epoch: the number of its epoch.
        data: what they are made of.
        pairs: the numbers in the data of the pairs that the plan names; None = the plan's own.
        plan: of the shard's pairs.
    """

    epoch: int
    data: PreparedData
    pairs: NDArray[np.int64] | None
    plan: EpochPlan

    def __iter__(self) -> Iterator[Planned]:
        for batch in self.plan:
            yield self.data, batch if self.pairs is None else _renumbered(batch, self.pairs)


def share_out(planned: Sequence[tuple[T, BatchPlan]], processes: Processes) -> list[tuple[T, BatchPlan]]:
    """The part of an update's batches, each with the data that it names, that one of several processes computes.

    Every process gets every so-manieth batch. Where there are fewer batches than processes, a batch's rows are dealt
    to several of them; one that gets no row gets a copy of the first, marked with a target length of 0.
    """
    rank, count = processes.rank, processes.count
    if count <= len(planned):
        return list(planned[rank::count])
    data, plan = planned[rank % len(planned)]
    number, parts = rank // len(planned), len(range(rank % len(planned), count, len(planned)))
    own = slice(number, None, parts)
    if number >= len(plan.items):
        return [(data, BatchPlan(plan.items[:1], plan.source_length, 0))]
    return [(data, replace(plan, items=plan.items[own], copies=plan.copies[own]))]


def _closing(rewriter: TextRewriter | None) -> AbstractContextManager[object]:
    return nullcontext() if rewriter is None else closing(rewriter)


def _renumbered(plan: BatchPlan, pairs: NDArray[np.int64]) -> BatchPlan:
    """A plan of a shard's pairs as a plan of the corpus's."""
    return replace(plan, items=tuple(tuple(int(pairs[pair]) for pair in item) for item in plan.items))
