"""Token and position embeddings."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tandem.models.errors import DecodingError

Positions = Literal["learned", "sinusoidal", "halves", "tensor2tensor", "none"]
Sinusoids = Literal["sinusoidal", "halves", "tensor2tensor"]


def sinusoids(length: int, width: int, kind: Sinusoids = "sinusoidal", first: int = 0) -> Tensor:
    """Sines and cosines of pos / 10000^(2i/d), length x width (Vaswani et al. 2017, section 3.5).

    Args:
        length: positions.
        width: d.
        kind: "sinusoidal": sines in even and cosines in odd dimensions, as the paper has them; "halves": all sines,
            then all cosines, as Marian has them; "tensor2tensor": halves whose exponent is 2i / (d - 2), so that the
            last frequency is 1/10000 itself, as the authors' own program had them.
        first: the first position's number.
    """
    position = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    period = max(1, width - 2) if kind == "tensor2tensor" else width
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / period))
    sines, cosines = torch.sin(position * frequency), torch.cos(position * frequency)[:, : width // 2]
    if kind != "sinusoidal":
        return torch.cat([sines, cosines], dim=1).float()
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = sines, cosines
    return table.float()


def narrowed(x: Tensor) -> Tensor:
    """``x`` in autocast's type where autocast is on, as in training.

    Of embeddings it makes the whole residual stream narrow: half the bytes to move, and no copies between the products,
    which are in that type anyway, and what lies between them.
    """
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


class PositionEmbedding(nn.Module):
    """A table of positions, learned or sinusoidal (the first symbol's number is ``first``), looked up by number."""

    table: Tensor

    def __init__(self, kind: Positions, length: int, width: int, *, first: int = 0) -> None:
        super().__init__()
        self.kind = kind
        self.length = length
        if kind == "learned":
            self.table = nn.Parameter(torch.empty(length, width))
            nn.init.normal_(self.table, 0.0, 0.1)
        elif kind == "none":
            self.register_buffer("table", torch.zeros(length, width), persistent=False)
        else:
            self.register_buffer("table", sinusoids(length, width, kind, first), persistent=False)

    def forward(self, position: Tensor) -> Tensor:
        return F.embedding(position, self.table)

    def check(self, length: int) -> None:
        """Refuse a sequence longer than the table: the callers of a model bound lengths beforehand."""
        if length > self.length:
            raise DecodingError(
                f"a sequence of {length} symbols exceeds the model's {self.length} positions: shorten the input"
            )
