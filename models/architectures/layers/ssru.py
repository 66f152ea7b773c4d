"""The Simpler Simple Recurrent Unit (Kim et al. 2019, section 3.1), which stands in the place of a decoder's
self-attention: what it knows of the target so far is one vector, however long that is.

Shape suffixes: B sentences, K rows of a sentence, R = B x K rows, T new positions, X some of them,
D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.attention import KeyValueMemory
from tandem.models.architectures.layers.linear import Linear
from tandem.models.architectures.records import State, rows


@dataclass(frozen=True, slots=True, eq=False)
class SsruState(State):
    """Per layer that the target passes its cell R x D."""

    cells: tuple[Tensor, ...] = rows()

    @classmethod
    def before(cls, memory: KeyValueMemory, rows_per_sentence: int, width: int) -> SsruState:
        """The state before BOS, with empty cells, for R = B x ``rows_per_sentence`` rows."""
        total = memory.mask.size(0) * rows_per_sentence
        cell_RD = memory.values[0].new_zeros(total, width)
        return cls.begin(total, memory.mask.device, cells=(cell_RD,) * len(memory.keys))


class Ssru(nn.Module):
    """``f_t = sigmoid(W_f x_t + b_f)``, ``c_t = f_t c_{t-1} + (1 - f_t) W x_t``, ``h_t = max(0, c_t)``.

    Both maps read the input alone, so that of many positions they are two products; what goes from position to position
    goes number by number.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget = Linear(width, width)
        self.candidate = Linear(width, width, bias=False)

    def advance(self, x_RTD: Tensor, cell_RD: Tensor) -> tuple[Tensor, Tensor]:
        """T new positions after a cell: the features R x T x D, and the cell R x D after the last."""
        f_RTD = torch.sigmoid(self.forget(x_RTD))
        c_RTD = weighted_sums(f_RTD, (1 - f_RTD) * self.candidate(x_RTD), cell_RD)
        return torch.relu(c_RTD), c_RTD[:, -1]


def weighted_sums(kept_RTD: Tensor, added_RTD: Tensor, first_RD: Tensor) -> Tensor:
    """``c_t = k_t c_{t-1} + a_t`` of all positions R x T x D, c before the first being ``first_RD``.

    In log2 T rounds (Hillis and Steele 1986): after each, a position has taken in twice as many positions as before.
    """
    sums_RTD = added_RTD[:, :1] + kept_RTD[:, :1] * first_RD[:, None]
    length, reach = kept_RTD.size(1), 1
    if length == 1:
        return sums_RTD
    sums_RTD = torch.cat([sums_RTD, added_RTD[:, 1:]], dim=1)
    while reach < length:
        own_RXD = kept_RTD[:, reach:]  # of the positions that reach further back
        longer_RXD = sums_RTD[:, reach:] + own_RXD * sums_RTD[:, :-reach]
        sums_RTD = torch.cat([sums_RTD[:, :reach], longer_RXD], dim=1)
        kept_RTD = torch.cat([kept_RTD[:, :reach], own_RXD * kept_RTD[:, :-reach]], dim=1)
        reach *= 2
    return sums_RTD
