"""Batches: which pairs go together in an epoch, and the tensors of a batch.

B items of a batch, S source positions, T target positions. An item is one pair, or several joined into one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.errors import ConfigError
from models.protocol import Padded
from models.vocabulary import BOS, EOS, PAD
from training.data.dataset import PreparedData, TokenArray
from training.data.features import FeatureArray

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

    @property
    def padded_tokens(self) -> int:
        """Source and target positions of the batch, padding included."""
        return len(self.items) * (self.source_length + self.target_length)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBatch:
    """The tensors of a batch, padded with 0: int64, and float32 for feature matrices.

    Attributes:
        sources: one B x S per text source, each row ending with EOS, one B x S x D per matrix source, with lengths.
        target_in: B x T, what the decoder reads: BOS and the target. A row that copies starts with EOS instead, so
            that copying is a task of its own.
        target_out: B x T, what it is to predict: the target and EOS.
        target_tokens: symbols of ``target_out`` that are not padding.
        source_tokens: symbols of all text sources that are not padding.
    """

    sources: tuple[Padded, ...]
    target_in: Tensor
    target_out: Tensor
    target_tokens: int
    source_tokens: int


def plan_epoch(
    source_lengths: Lengths,
    target_lengths: Lengths,
    *,
    epoch: int,
    seed: int,
    max_tokens: int,
    join_share: float = 0.0,
    join_most: int = 4,
    copy_share: float = 0.0,
    max_source_tokens: int | None = None,
    max_target_tokens: int | None = None,
) -> list[BatchPlan]:
    """The batches of an epoch in training order; every pair is in exactly one.

    The same (seed, epoch) gives the same plan, so a run is resumed by skipping the batches it has done. Lengths count
    EOS on both sides, as `PreparedData.source_lengths` and `PreparedData.target_lengths` do.

    Args:
        source_lengths: for each pair the length of its longest source.
        target_lengths: for each pair the length of its target.
        epoch: which epoch; every epoch joins and orders the pairs anew.
        seed: of the run.
        max_tokens: the budget: source and target positions of a batch, padding included, are at most twice this.
        join_share: the share of items that are joined pairs.
        join_most: the most pairs of a joined item.
        copy_share: the share of items whose target is a random span of their source.
        max_source_tokens: longest joined source; unbounded but for the budget if absent.
        max_target_tokens: longest joined target.

    Raises:
        ConfigError: a single pair is longer than the budget.
    """
    budget = 2 * max_tokens
    longest = int(np.max(source_lengths + target_lengths, initial=0))
    if longest > budget:
        raise ConfigError(f"max_tokens must be at least {(longest + 1) // 2} for the longest pair, but is {max_tokens}")
    rng = np.random.default_rng([seed, epoch])
    limits = (max_source_tokens or budget, max_target_tokens or budget, budget)
    items_IM = _join(source_lengths, target_lengths, rng, share=join_share, most=join_most, limits=limits)
    source_I = _item_lengths(items_IM, source_lengths)
    target_I = _item_lengths(items_IM, target_lengths)
    order = _order(source_I, target_I, rng, budget)
    source_I, target_I = source_I[order], target_I[order]
    rows = _tuples(items_IM[order])
    cuts = _cut(source_I, target_I, budget)
    copies = _copies(source_I, target_I, copy_share, np.random.default_rng([seed, epoch, 1]))
    plans = [
        BatchPlan(
            tuple(rows[start:end]),
            int(source_I[start:end].max()),
            int(target_I[start:end].max()),
            tuple(copies[start:end]),
        )
        for start, end in pairwise(cuts)
    ]
    return [plans[index] for index in rng.permutation(len(plans)).tolist()]


def collate(data: PreparedData, plan: BatchPlan) -> TrainingBatch:
    """The tensors of a planned batch."""
    pairs = np.fromiter((pair for item in plan.items for pair in item), np.int64)
    sizes = np.fromiter((len(item) for item in plan.items), np.int64, len(plan.items))
    last = np.zeros(len(pairs), dtype=bool)  # the pairs that end an item: only they keep their EOS
    last[np.cumsum(sizes) - 1] = True
    row_of = np.repeat(np.arange(len(sizes)), sizes)

    sources = []
    for side in data.source_sides:
        if isinstance(side, FeatureArray):  # never joined: every row is one pair
            values, lengths_B = side.gather(pairs)
            sources.append(Padded(torch.from_numpy(values), torch.from_numpy(lengths_B)))
            continue
        values_BS, lengths_B = _gather(side, pairs, row_of, ~last)
        sources.append(Padded(torch.from_numpy(values_BS), torch.from_numpy(lengths_B)))
    target_BT, lengths_B = _gather(data.target_side, pairs, row_of, np.zeros_like(last))
    rows = np.arange(len(sizes))
    first_B1 = np.full((len(sizes), 1), BOS, dtype=np.int64)
    for row, start in enumerate(plan.copies):
        if start >= 0:
            first_B1[row] = EOS
            target_BT[row, : lengths_B[row]] = sources[0].values[row, start : start + int(lengths_B[row])]
    target_in = np.concatenate([first_B1, target_BT], axis=1)
    empty_B1 = np.full((len(sizes), 1), PAD, dtype=np.int64)
    target_out = np.concatenate([target_BT, empty_B1], axis=1)
    target_out[rows, lengths_B] = EOS
    return TrainingBatch(
        sources=tuple(sources),
        target_in=torch.from_numpy(target_in),
        target_out=torch.from_numpy(target_out),
        target_tokens=int(lengths_B.sum()) + len(sizes),
        source_tokens=sum(int(source.lengths.sum()) for source in sources if not source.values.is_floating_point()),
    )


def _gather(
    side: TokenArray, pairs: NDArray[np.int64], row_of: NDArray[np.int64], without_last: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs' sequences laid into their rows one after another: values B x L padded with 0, and lengths B.

    Args:
        side: the sequences.
        pairs: which of them, in row order.
        row_of: the row of each.
        without_last: which of them lose their last symbol.
    """
    begin = side.offsets[pairs]
    lengths = side.offsets[pairs + 1] - begin - without_last
    before = np.cumsum(lengths) - lengths  # symbols before each sequence, in the whole batch
    row_lengths = np.bincount(row_of, weights=lengths).astype(np.int64)
    row_start = np.cumsum(row_lengths) - row_lengths
    symbol = np.arange(int(lengths.sum()))
    rows = np.repeat(row_of, lengths)
    values = np.full((len(row_lengths), int(row_lengths.max(initial=0))), PAD, dtype=np.int64)
    values[rows, symbol - row_start[rows]] = side.tokens[symbol + np.repeat(begin - before, lengths)]
    return values, row_lengths


def _copies(source_I: Lengths, target_I: Lengths, share: float, rng: np.random.Generator) -> list[int]:
    """For each item where its copied span begins, -1 for none: in about ``share`` of the items that have room."""
    if share <= 0:
        return []
    room_I = source_I - target_I + 1  # places for a span as long as the target; neither has its EOS here
    chosen = (rng.random(len(room_I)) < share) & (room_I > 0)
    starts = (rng.random(len(room_I)) * np.maximum(room_I, 1)).astype(np.int64)
    return [int(start) for start in np.where(chosen, starts, -1)]


def _join(
    source_lengths: Lengths,
    target_lengths: Lengths,
    rng: np.random.Generator,
    *,
    share: float,
    most: int,
    limits: tuple[int, int, int],
) -> NDArray[np.int64]:
    """Items as rows of pair indices, filled up with -1: I x M; the limits are on source, target and their sum."""
    order = rng.permutation(len(source_lengths))
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


def _item_lengths(items_IM: NDArray[np.int64], lengths: Lengths) -> Lengths:
    """Length of each joined sequence: only one EOS remains of the joined ones."""
    total: Lengths = np.where(items_IM >= 0, lengths[items_IM] - 1, 0).sum(axis=1) + 1
    return total


def _order(source_I: Lengths, target_I: Lengths, rng: np.random.Generator, budget: int) -> NDArray[np.int64]:
    """An order in which neighbours have nearly the same lengths on both sides.

    Items are cut into strips by target length and sorted by source length within a strip, alternately up and down so
    that lengths do not jump between strips. With n batches, sqrt(n) strips leave both sides equally little padding.
    """
    ties = rng.permutation(len(source_I))
    tokens = source_I + target_I
    strips = max(1, round((tokens.sum() / budget) ** 0.5))
    by_target = np.lexsort((ties, target_I))
    share = np.cumsum(tokens[by_target]) / max(1, tokens.sum())
    strip = np.empty_like(source_I)
    strip[by_target] = np.minimum((share * strips).astype(np.int64), strips - 1)
    upwards = np.where(strip % 2 == 0, source_I, -source_I)
    return np.lexsort((ties, upwards, strip))


def _cut(source_I: Lengths, target_I: Lengths, budget: int) -> list[int]:
    """Where batches begin and end, each as large as the budget lets it be."""
    cuts = [0]
    chunk = 256
    while cuts[-1] < len(source_I):
        start = cuts[-1]
        longest = np.maximum.accumulate(source_I[start : start + chunk])
        longest = longest + np.maximum.accumulate(target_I[start : start + chunk])
        rows = int(np.searchsorted(longest * np.arange(1, len(longest) + 1), budget, side="right"))
        if rows == len(longest) and start + rows < len(source_I):
            chunk *= 2  # the batch may be larger than what was looked at
            continue
        cuts.append(start + rows)
    return cuts


def _tuples(items_IM: NDArray[np.int64]) -> list[tuple[int, ...]]:
    rows: list[tuple[int, ...]] = [(pair,) for pair in items_IM[:, 0].tolist()]
    if items_IM.shape[1] > 1:
        for index in np.flatnonzero(items_IM[:, 1] >= 0).tolist():
            rows[index] = tuple(pair for pair in items_IM[index].tolist() if pair >= 0)
    return rows
