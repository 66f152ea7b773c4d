"""Which pairs go together in the batches of an epoch, as a function of seed and epoch alone.

I items, M pairs of an item at most. An item is one pair, or several joined into one sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import ConfigError

Numbers = NDArray[np.int64]
Lengths = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What a batch is made of.

    Attributes:
        items: for each row the pairs whose sequences are joined in it, mostly one.
        source_length: positions of the longest source.
        target_length: positions of the longest target, EOS included.
        copies: for each row where in its first source the span begins that is to be copied instead of the target
            (as long as the target), or -1 for the target itself; empty where no row copies.
    """

    items: tuple[tuple[int, ...], ...]
    source_length: int
    target_length: int
    copies: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class EpochPlan(Iterable[BatchPlan]):
    """The batches of an epoch in training order, kept as a few arrays: each plan is made in its turn.

    It holds 4 bytes a pair (16 where up to 4 are joined, and 4 more where some copy), not the hundred or so that tuples
    of numbers take.

    Attributes:
        items_IM: items in rows of pair numbers, filled up with -1, in the order in which ``cuts`` takes them.
        cuts: where batches begin and end, one more than there are batches.
        lengths: for each batch the positions of its longest source and of its longest target.
        order: the batches in training order.
        copies_I: for each item where its copied span begins, -1 for none; empty where no item copies.
    """

    items_IM: NDArray[np.int32]
    cuts: Numbers
    lengths: tuple[Lengths, Lengths]
    order: Numbers
    copies_I: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[BatchPlan]:
        for batch in self.order.tolist():
            rows = slice(int(self.cuts[batch]), int(self.cuts[batch + 1]))
            source, target = (int(lengths[batch]) for lengths in self.lengths)
            yield BatchPlan(_tuples(self.items_IM[rows]), source, target, tuple(self.copies_I[rows].tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochPlan) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal by content, as lists are


def plan_epoch(
    source_lengths: Lengths,
    target_lengths: Lengths,
    *,
    epoch: int,
    seed: int,
    max_tokens: int,
    max_items: int = 0,
    join_share: float = 0.0,
    join_most: int = 4,
    copy_share: float = 0.0,
    max_source_tokens: int | None = None,
    max_target_tokens: int | None = None,
    groups: NDArray[np.integer[Any]] | None = None,
) -> EpochPlan:
    """The batches of an epoch in training order; every pair is in exactly one.

    The same (seed, epoch) gives the same plan, so a run is resumed by skipping the batches it has done. Lengths count
    EOS on both sides, as `PreparedData.source_lengths` and `PreparedData.target_lengths` do.

    Args:
        source_lengths: for each pair the length of its longest source.
        target_lengths: for each pair the length of its target.
        epoch: which epoch; every epoch joins and orders the pairs anew.
        seed: of the run.
        max_tokens: the budget: source and target positions of a batch, padding included, are at most twice this.
        max_items: most items of a batch; 0 = as many as the budget holds.
        join_share: the share of items that are joined pairs.
        join_most: the most pairs of a joined item.
        copy_share: the share of items whose target is a random span of their source.
        max_source_tokens: longest joined source; unbounded but for the budget if absent.
        max_target_tokens: longest joined target.
        groups: for each pair the number of its group; only pairs of one group are joined. Absent, all are of one.

    Raises:
        ConfigError: a single pair is longer than the budget.
    """
    budget = 2 * max_tokens
    longest = int(np.max(source_lengths + target_lengths, initial=0))
    if longest > budget:
        raise ConfigError(
            f"batch_tokens must be at least {(longest + 1) // 2} for the longest pair, but is {max_tokens}"
        )
    rng = np.random.default_rng([seed, epoch])
    limits = (max_source_tokens or budget, max_target_tokens or budget, budget)
    of_group = [None] if groups is None else [np.flatnonzero(groups == group) for group in np.unique(groups)]
    join = partial(_join, source_lengths, target_lengths, rng, share=join_share, most=join_most, limits=limits)
    items_IM = np.concatenate([join(own) for own in of_group]) if len(of_group) > 1 else join(None)
    source_I = _item_lengths(items_IM, source_lengths)
    target_I = _item_lengths(items_IM, target_lengths)
    least = len(source_I) / max_items if max_items else 0.0
    order = _order(source_I, target_I, rng, max(least, float((source_I + target_I).sum()) / budget))
    source_I, target_I = source_I[order], target_I[order]
    cuts = np.array(_cut(source_I, target_I, budget, max_items or len(source_I)))
    copies_I = _copies(source_I, target_I, copy_share, np.random.default_rng([seed, epoch, 1]))
    longest_of = [
        np.maximum.reduceat(lengths, cuts[:-1]) if len(lengths) else lengths for lengths in (source_I, target_I)
    ]
    return EpochPlan(
        items_IM[order].astype(np.int32),
        cuts,
        (longest_of[0], longest_of[1]),
        rng.permutation(len(cuts) - 1),
        copies_I,
    )


def _copies(source_I: Lengths, target_I: Lengths, share: float, rng: np.random.Generator) -> NDArray[np.int32]:
    """For each item where its copied span begins, -1 for none: in about ``share`` of the items that have room."""
    if share <= 0:
        return np.empty(0, np.int32)
    room_I = source_I - target_I + 1  # places for a span as long as the target; neither has its EOS here
    chosen = (rng.random(len(room_I)) < share) & (room_I > 0)
    starts = (rng.random(len(room_I)) * np.maximum(room_I, 1)).astype(np.int64)
    return np.where(chosen, starts, -1).astype(np.int32)


def _join(
    source_lengths: Lengths,
    target_lengths: Lengths,
    rng: np.random.Generator,
    own: Numbers | None,
    *,
    share: float,
    most: int,
    limits: tuple[int, int, int],
) -> Numbers:
    """Items as rows of pair indices, filled up with -1: I x M; the limits are on source, target and their sum.

    The pairs are those of ``own``, or all.
    """
    order = rng.permutation(len(source_lengths) if own is None else own)
    if share <= 0 or most < 2:
        return order[:, None]
    # Of I items, share * I are joined, of (2 + most) / 2 pairs each: the items and their pairs add up to the epoch.
    size = (2 + most) / 2
    joined = round(share * len(order) / (1 - share + share * size))
    sizes = rng.integers(2, most, endpoint=True, size=joined)
    sizes = sizes[np.cumsum(sizes) <= len(order)]
    starts = np.cumsum(sizes) - sizes
    columns = np.arange(most)
    items = np.full((len(sizes), most), -1, dtype=np.int64)
    inside = columns < sizes[:, None]
    items[inside] = order[(starts[:, None] + columns)[inside]]

    # Keep the longest beginning of each group that holds the limits; what is cut off stays single.
    source = np.cumsum(np.where(inside, source_lengths[items] - 1, 0), axis=1) + 1
    target = np.cumsum(np.where(inside, target_lengths[items] - 1, 0), axis=1) + 1
    fits = (source <= limits[0]) & (target <= limits[1]) & (source + target <= limits[2])
    fits[:, 0] = True  # a single pair is never refused here
    left_over = items[inside & ~fits]
    items[~fits] = -1
    singles = np.concatenate([left_over, order[sizes.sum() :]])
    padded = np.full((len(singles), most), -1, dtype=np.int64)
    padded[:, 0] = singles
    return np.concatenate([items, padded])


def _item_lengths(items_IM: Numbers, lengths: Lengths) -> Lengths:
    """Length of each joined sequence: only one EOS remains of the joined ones."""
    total: Lengths = np.where(items_IM >= 0, lengths[items_IM] - 1, 0).sum(axis=1) + 1
    return total


def _order(source_I: Lengths, target_I: Lengths, rng: np.random.Generator, batches: float) -> Numbers:
    """An order in which neighbours have nearly the same lengths on both sides.

    Items are cut into strips by target length and sorted by source length within a strip, alternately up and down so
    that lengths do not jump between strips. With n ``batches``, sqrt(n) strips leave both sides equally little padding.
    """
    ties = rng.permutation(len(source_I))
    tokens = source_I + target_I
    strips = max(1, round(batches**0.5))
    by_target = np.lexsort((ties, target_I))
    share = np.cumsum(tokens[by_target]) / max(1, tokens.sum())
    strip = np.empty_like(source_I)
    strip[by_target] = np.minimum((share * strips).astype(np.int64), strips - 1)
    upwards = np.where(strip % 2 == 0, source_I, -source_I)
    return np.lexsort((ties, upwards, strip))


def _cut(source_I: Lengths, target_I: Lengths, budget: int, most: int) -> list[int]:
    """Where batches begin and end, each as large as the budget and the most items of a batch let it be."""
    cuts = [0]
    chunk = 256
    while cuts[-1] < len(source_I):
        start = cuts[-1]
        longest = np.maximum.accumulate(source_I[start : start + chunk])
        longest = longest + np.maximum.accumulate(target_I[start : start + chunk])
        rows = min(most, int(np.searchsorted(longest * np.arange(1, len(longest) + 1), budget, side="right")))
        if rows == len(longest) and start + rows < len(source_I):
            chunk *= 2  # the batch may be larger than what was looked at
            continue
        cuts.append(start + rows)
    return cuts


def _tuples(items_IM: NDArray[np.int32]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(pair for pair in row if pair >= 0) for row in items_IM.tolist())
