"""Token and position embeddings."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.errors import DecodingError

Positions = Literal["learned", "sinusoidal", "none"]


def sinusoids(length: int, width: int) -> Tensor:
    """Interleaved sinusoids, length x width: sin for even, cos for odd dimensions of pos / 10000^(k/d)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)[:, : width // 2]
    return table.float()


def narrowed(x: Tensor) -> Tensor:
    """``x`` in autocast's type where autocast is on, as in training.

    Of embeddings it makes the whole residual stream narrow: half the bytes to move, and no copies between the products,
    which are in that type anyway, and what lies between them.
    """
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


class PositionEmbedding(nn.Module):
    """A table of positions, learned or sinusoidal, looked up by position number."""

    table: Tensor

    def __init__(self, kind: Positions, length: int, width: int) -> None:
        super().__init__()
        self.kind = kind
        self.length = length
        if kind == "learned":
            self.table = nn.Parameter(torch.empty(length, width))
            nn.init.normal_(self.table, 0.0, 0.1)
        elif kind == "sinusoidal":
            self.register_buffer("table", sinusoids(length, width), persistent=False)
        else:
            self.register_buffer("table", torch.zeros(length, width), persistent=False)

    def forward(self, position: Tensor) -> Tensor:
        return F.embedding(position, self.table)

    def check(self, length: int) -> None:
        """Refuse a sequence longer than the table: the callers of a model bound lengths beforehand."""
        if length > self.length:
            raise DecodingError(
                f"a sequence of {length} symbols exceeds the model's {self.length} positions: shorten the input"
            )
