"""Linear maps and convolutions as matrix products, optionally weight-normalised.

A one-dimensional convolution is a concatenation of k shifted copies followed by one product: at these widths this is as
fast as a convolution kernel on a CPU, needs no transposition, and is the same code for a whole sentence and for one
incremental position.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LowRank(nn.Module):
    """``alpha / r * B A``, outputs x inputs: what fine-tuning adds to a weight that stays (Hu et al. 2022, equation 3).

    A is drawn from a normal distribution, and B is zero, so that at first nothing is added.

    Args:
        inputs, outputs: of the weight.
        rank: r.
        alpha: see above.
    """

    def __init__(self, inputs: int, outputs: int, rank: int, alpha: float) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        self._scale = alpha / rank

    def forward(self) -> Tensor:
        return self._scale * self.up @ self.down


class Linear(nn.Module):
    """``y = x W^T + b``, W optionally written as ``g v / |v|`` per output (Salimans and Kingma 2016).

    Args:
        inputs: width of x.
        outputs: width of y.
        bias: whether b exists.
        weight_norm: whether W has a separate gain; :meth:`fold` removes it.

    Attributes:
        adapter: what is added to W; None = nothing. :meth:`fold` removes it, too.
    """

    adapter: LowRank | None

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, weight_norm: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.gain = nn.Parameter(torch.ones(outputs)) if weight_norm else None
        self.adapter = None
        self.init_xavier()

    def init_xavier(self) -> None:
        """Uniform with variance 2 / (inputs + outputs) (Glorot and Bengio 2010)."""
        nn.init.xavier_uniform_(self.weight)
        self._reset_gain()

    def init_normal(self, deviation: float) -> None:
        """N(0, deviation), as ConvS2S section 3.5 asks."""
        nn.init.normal_(self.weight, 0.0, deviation)
        self._reset_gain()

    def _reset_gain(self) -> None:
        if self.gain is not None:
            with torch.no_grad():
                self.gain.copy_(self.weight.norm(dim=1))

    def effective_weight(self) -> Tensor:
        """W, outputs x inputs."""
        # What torch.nn.utils.weight_norm calls: gradients in one pass, where separate operations take four.
        weight = self.weight if self.gain is None else torch._weight_norm(self.weight, self.gain[:, None], 0)
        return weight if self.adapter is None else weight + self.adapter()

    def fold(self) -> None:
        """Write the gain and what is added into the weight."""
        if self.gain is not None or self.adapter is not None:
            with torch.no_grad():
                self.weight.copy_(self.effective_weight())
            self.gain = self.adapter = None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.effective_weight(), self.bias)


def unfolded(tensors: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """The tensors of a folded model with the gains that ``names`` wants beside them: the norms of the weights."""
    gains = {
        name: tensors[weight].norm(dim=1)
        for name in names
        if name.endswith(".gain") and name not in tensors and (weight := f"{name[:-5]}.weight") in tensors
    }
    return {**tensors, **gains}


class GatedConvolution(nn.Module):
    """Convolution over time to twice the width, then a gated linear unit: ``glu(conv_k(x))``.

    The caller provides the context positions: N x (T + k - 1) x C becomes N x T x C'.

    Args:
        width: input channels C.
        outputs: output channels C' (after the gate).
        kernel: k.
        weight_norm: normalise each of the 2 C' filters.
    """

    def __init__(self, width: int, outputs: int, kernel: int, *, weight_norm: bool) -> None:
        super().__init__()
        self.kernel = kernel
        self.linear = Linear(kernel * width, 2 * outputs, weight_norm=weight_norm)

    def init_for_gate(self, retain: float) -> None:
        """N(0, sqrt(4 p / n)), n = k C, since the gate halves the standard deviation (ConvS2S section 3.5)."""
        self.linear.init_normal(math.sqrt(4.0 * retain / self.linear.weight.size(1)))

    def forward(self, x_NTC: Tensor) -> Tensor:
        length = x_NTC.size(1) - self.kernel + 1
        if length == 1:  # one incremental position: the taps lie side by side already
            return F.glu(self.linear(x_NTC.flatten(1)), dim=-1)[:, None]
        taps = [x_NTC[:, k : k + length] for k in range(self.kernel)]
        return F.glu(self.linear(torch.cat(taps, dim=-1)), dim=-1)
