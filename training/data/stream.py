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

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from training.data.batches import TrainingBatch, collate
from training.data.dataset import PreparedData
from training.data.plans import BatchPlan, EpochPlan, plan_epoch
from training.data.prefetch import prefetch

SHARD = 2**20
BLOCK = 1024
_DEPTH = 4  # batches kept ready

Planner = Callable[..., EpochPlan]
Planned = tuple[PreparedData, BatchPlan]
"""A batch's plan, and the data whose pairs it names."""


class Rewriter(Protocol):
    """Rewrites training data: a function of seed, epoch and pair or plan, safe in any thread."""

    def rewrites(self, epoch: int) -> bool:
        """Whether pairs are rewritten before they are planned, as BPE dropout does, which changes their lengths."""
        return False

    def rewritten(self, data: PreparedData, pairs: NDArray[np.int64], epoch: int) -> PreparedData:
        """The pairs (numbers in rising order) as data of their own, numbered anew."""
        return data

    def __call__(self, data: PreparedData, plan: BatchPlan, epoch: int) -> tuple[PreparedData, BatchPlan]:
        """The batch's own data, and the plan that names it."""

    def groups(self, data: PreparedData) -> NDArray[np.integer[Any]] | None:
        """For each pair the number of the group in which it may be joined; None where all are of one."""


@dataclass(frozen=True, slots=True)
class Share:
    """Which of ``processes`` this one is."""

    rank: int = 0
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """What one process computes for one update.

    Attributes:
        batches: its batches, at least one.
        epoch: the epoch of the update's last batch, over all processes.
        batch: how many of that epoch's batches are used after it.
    """

    batches: tuple[TrainingBatch, ...]
    epoch: int
    batch: int


class Stream:
    """The batches of one split for one process.

    Args:
        data: the split.
        accumulate: batches of an update, over all processes.
        share: which of the processes this one is.
        augmentation: rewrites pairs and batches.
        limits: what :func:`training.data.plans.plan_epoch` takes besides lengths, groups and epoch.
    """

    def __init__(
        self,
        data: PreparedData,
        accumulate: int,
        share: Share,
        augmentation: Rewriter | None,
        **limits: Any,
    ) -> None:
        self._data, self._accumulate, self._share, self._augmentation = data, accumulate, share, augmentation
        self._planner: Planner = partial(plan_epoch, **limits)
        self._seed = int(limits["seed"])
        self._groups = None if augmentation is None else augmentation.groups(data)

    def updates(self, epoch: int = 0, batch: int = 0) -> Generator[Group, None, None]:
        """What to compute for each update, without end, from a place on; batches are prepared in the background."""
        depth = max(2, _DEPTH // self._accumulate)
        yield from prefetch(self._collate, self._places(epoch, batch), depth=depth)

    def plans(self, epoch: int) -> Generator[BatchPlan, None, None]:
        """The batches of an epoch, all processes' together, in training order.

        They name the pairs of what they are made of: where these are rewritten, a shard's own data.
        """
        with closing(self._planned(epoch)) as planned:
            for _, plan in planned:
                yield plan

    def plan_bytes(self, epoch: int = 0) -> int:
        """Bytes that the plan of the epoch's first shard holds."""
        return self._plan(epoch, self._shards(epoch), 0)[2].nbytes

    def _planned(self, epoch: int) -> Generator[Planned, None, None]:
        shards = self._shards(epoch)
        numbers = range(len(shards))
        with closing(prefetch(partial(self._plan, epoch, shards), numbers, depth=1)) as planned:
            for data, pairs, plan in planned:
                for item in plan:
                    yield data, item if pairs is None else _renumbered(item, pairs)

    def _places(self, epoch: int, batch: int) -> Generator[tuple[list[Planned], int, int], None, None]:
        """This process's plans for each update, and the place that follows it."""
        waiting: list[Planned] = []  # an update may begin in one epoch and end in the next
        while True:
            with closing(self._planned(epoch)) as planned:
                for number, one in enumerate(planned, start=1):
                    if number <= batch:
                        continue
                    waiting.append(one)
                    if len(waiting) == self._accumulate:
                        yield self._own(waiting), epoch, number
                        waiting = []
            epoch, batch = epoch + 1, 0

    def _own(self, planned: list[Planned]) -> list[Planned]:
        """This process's part of an update."""
        rank, processes = self._share.rank, self._share.processes
        plans = share_out([plan for _, plan in planned], self._share)
        own = planned[rank::processes] if processes <= len(planned) else [planned[rank % len(planned)]]
        return [(data, plan) for (data, _), plan in zip(own, plans, strict=True)]

    def _collate(self, place: tuple[list[Planned], int, int]) -> Group:
        planned, epoch, number = place
        return Group(tuple(self._batch(data, plan, epoch) for data, plan in planned), epoch, number)

    def _batch(self, data: PreparedData, plan: BatchPlan, epoch: int) -> TrainingBatch:
        if not plan.target_length:  # nothing was left for this process: a row that teaches nothing
            batch = collate(data, plan)
            return replace(batch, target_out=torch.zeros_like(batch.target_out), target_tokens=0, source_tokens=0)
        return collate(data, plan) if self._augmentation is None else collate(*self._augmentation(data, plan, epoch))

    def _shards(self, epoch: int) -> list[NDArray[np.int64] | None]:
        """The blocks of each shard; None is the whole corpus."""
        pairs = len(self._data)
        if pairs <= SHARD:
            return [None]
        blocks = -(-pairs // BLOCK)
        order = np.random.default_rng([self._seed, epoch, 2]).permutation(blocks)
        return list(np.array_split(order, -(-pairs // SHARD)))

    def _plan(
        self, epoch: int, shards: list[NDArray[np.int64] | None], number: int
    ) -> tuple[PreparedData, NDArray[np.int64] | None, EpochPlan]:
        """What a shard is made of, the numbers in it of the shard's pairs (None: as they come), and its plan."""
        blocks = shards[number]
        if blocks is None:
            pairs = np.arange(len(self._data))
        else:
            pairs = (np.sort(blocks)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
            pairs = pairs[pairs < len(self._data)]
        augmentation = self._augmentation
        if augmentation is not None and augmentation.rewrites(epoch):
            data, chosen = augmentation.rewritten(self._data, pairs, epoch), None
            source, target = data.source_lengths, data.target_lengths
        else:
            data, chosen = self._data, None if blocks is None else pairs
            source, target = data.lengths_of(pairs)
        groups = None if self._groups is None else self._groups[pairs]
        # A shard is to be planned unlike the others; with one shard the plan is that of the epoch.
        plan = self._planner(source, target, groups=groups, epoch=epoch * len(shards) + number)
        return data, chosen, plan


def share_out(plans: list[BatchPlan], share: Share) -> list[BatchPlan]:
    """The part of an update's batches that one of several processes computes.

    Every process gets every so-manieth batch. Where there are fewer batches than processes, a batch's rows are dealt
    to several of them; one that gets no row gets a copy of the first, marked with a target length of 0.
    """
    if share.processes <= len(plans):
        return plans[share.rank :: share.processes]
    plan = plans[share.rank % len(plans)]
    number, parts = share.rank // len(plans), len(range(share.rank % len(plans), share.processes, len(plans)))
    own = slice(number, None, parts)
    if number >= len(plan.items):
        return [BatchPlan(plan.items[:1], plan.source_length, 0)]
    return [replace(plan, items=plan.items[own], copies=plan.copies[own])]


def _renumbered(plan: BatchPlan, pairs: NDArray[np.int64]) -> BatchPlan:
    """A plan of a shard's pairs as a plan of the corpus's."""
    return replace(plan, items=tuple(tuple(int(pairs[pair]) for pair in item) for item in plan.items))
