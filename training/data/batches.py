"""The tensors of a batch.

B items of a batch, S source positions, T target positions, N target symbols. An item is one pair, or several joined
into one sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tandem.models.architectures.protocol import Padded
from tandem.models.vocabulary import BOS, EOS, PAD
from tandem.training.data.dataset import PreparedData, TokenArray
from tandem.training.data.features import FeatureArray
from tandem.training.data.plans import BatchPlan


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBatch:
    """The tensors of a batch, padded with 0: int64, and float32 for feature matrices.

    Attributes:
        sources: one B x S per text source, each row ending with EOS, one B x S x D per matrix source, with lengths.
        target_in: B x T, what the decoder reads: BOS and the target. A row that copies starts with EOS instead, so
            that copying is a task of its own.
        target_out: B x T, what it is to predict: the target and EOS.
        target_places: N, where in ``target_out``, its rows one after another, there is a symbol. Found
            before the batch goes to a device: there, how many there are would have to be waited for.
        target_tokens: symbols of ``target_out`` that are not padding.
        source_tokens: symbols of all text sources that are not padding.
    """

    sources: tuple[Padded, ...]
    target_in: Tensor
    target_out: Tensor
    target_places: Tensor
    target_tokens: int
    source_tokens: int

    def to(self, device: torch.device) -> TrainingBatch:
        """The batch on a device. From pinned memory the copy goes on while the caller does."""
        return self._with(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> TrainingBatch:
        """The batch in memory that a GPU reads by itself."""
        return self._with(Tensor.pin_memory)

    def without_targets(self) -> TrainingBatch:
        """The same rows, which teach nothing."""
        nothing = torch.zeros_like(self.target_out)
        places = self.target_places[:0]
        return replace(self, target_out=nothing, target_places=places, target_tokens=0, source_tokens=0)

    def _with(self, change: Callable[[Tensor], Tensor]) -> TrainingBatch:
        return replace(
            self,
            sources=tuple(Padded(change(source.values), change(source.lengths)) for source in self.sources),
            target_in=change(self.target_in),
            target_out=change(self.target_out),
            target_places=change(self.target_places),
        )


TagCount = Callable[[TokenArray | FeatureArray, NDArray[np.int64]], NDArray[np.int64]]


def collate(data: PreparedData, plan: BatchPlan, tags_before: TagCount | None = None) -> TrainingBatch:
    """The tensors of a planned batch.

    Args:
        data: what the plan is of.
        plan: of a batch.
        tags_before: how many tags some pairs' first source begins with; of joined pairs only the first keeps its own.
    """
    pairs = np.fromiter((pair for item in plan.items for pair in item), np.int64)
    sizes = np.fromiter((len(item) for item in plan.items), np.int64, len(plan.items))
    last = np.zeros(len(pairs), dtype=bool)  # the pairs that end an item: only they keep their EOS
    last[np.cumsum(sizes) - 1] = True
    row_of = np.repeat(np.arange(len(sizes)), sizes)
    skipped = np.zeros_like(pairs)
    if tags_before is not None and len(pairs) > len(sizes):
        inner = np.append(False, ~last[:-1])  # the pair before does not end the item
        skipped[inner] = tags_before(data.source_sides[0], pairs[inner])

    sources = []
    for index, side in enumerate(data.source_sides):
        if isinstance(side, FeatureArray):  # never joined: every row is one pair
            values, lengths_B = side.gather(pairs)
            sources.append(Padded(torch.from_numpy(values), torch.from_numpy(lengths_B)))
            continue
        values_BS, lengths_B = _gather(side, pairs, row_of, ~last, skipped if index == 0 else None)
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
        target_places=torch.from_numpy(np.flatnonzero(target_out != PAD)),
        target_tokens=int(lengths_B.sum()) + len(sizes),
        source_tokens=sum(int(source.lengths.sum()) for source in sources if not source.values.is_floating_point()),
    )


def _gather(
    side: TokenArray,
    pairs: NDArray[np.int64],
    row_of: NDArray[np.int64],
    without_last: NDArray[np.bool_],
    skipped: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs' sequences laid into their rows one after another: values B x L padded with 0, and lengths B.

    Args:
        side: the sequences.
        pairs: which of them, in row order.
        row_of: the row of each.
        without_last: which of them lose their last symbol.
        skipped: how many symbols each loses at its beginning; none if absent.
    """
    begin = side.offsets[pairs] + (0 if skipped is None else skipped)
    lengths = side.offsets[pairs + 1] - begin - without_last
    before = np.cumsum(lengths) - lengths  # symbols before each sequence, in the whole batch
    row_lengths = np.bincount(row_of, weights=lengths).astype(np.int64)
    row_start = np.cumsum(row_lengths) - row_lengths
    symbol = np.arange(int(lengths.sum()))
    rows = np.repeat(row_of, lengths)
    values = np.full((len(row_lengths), int(row_lengths.max(initial=0))), PAD, dtype=np.int64)
    values[rows, symbol - row_start[rows]] = side.tokens[symbol + np.repeat(begin - before, lengths)]
    return values, row_lengths
