"""Gated recurrent units (Cho et al. 2014, the variant whose reset gate acts after the product), cell and sequence.

A whole sequence runs in torch's fused kernel; a cell runs one position of a decoder. Both have the same parameters.

Shape suffixes: N any rows, B sentences, S positions, C input width, D width of the state, G = 3 D (update gate, reset
gate, candidate, in this order).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.layers.linear import Linear


class GruCell(nn.Module):
    """One position: ``z, r = sigmoid(W x + U h + b)``, ``n = tanh(W_n x + b_n + r * (U_n h))``, ``z h + (1 - z) n``.

    Args:
        inputs: width of x.
        width: width of the state h.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.inputs = Linear(inputs, 3 * width)
        self.states = Linear(width, 3 * width, bias=False)

    def forward(self, x_NC: Tensor, h_ND: Tensor) -> Tensor:
        """The next state N x D."""
        return self.advance(self.inputs(x_NC), h_ND)

    def advance(self, mapped_NG: Tensor, h_ND: Tensor) -> Tensor:
        """The next state N x D from ``self.inputs(x)``, which a caller may compute for many positions at once."""
        x_z, x_r, x_n = mapped_NG.chunk(3, dim=-1)
        h_z, h_r, h_n = self.states(h_ND).chunk(3, dim=-1)
        z_ND, r_ND = torch.sigmoid(x_z + h_z), torch.sigmoid(x_r + h_r)
        n_ND = torch.tanh(x_n + r_ND * h_n)
        return n_ND + z_ND * (h_ND - n_ND)


class Gru(nn.Module):
    """A GRU over whole sequences, from a state of zeros, each sentence within its own length.

    Args:
        inputs: width of x.
        width: width of the states.
        reverse: run from each sentence's last position to its first.
    """

    def __init__(self, inputs: int, width: int, *, reverse: bool = False) -> None:
        super().__init__()
        self.cell = GruCell(inputs, width)
        self.reverse = reverse

    def forward(self, x_BSC: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """States B x S x D, zero where padded, and the state B x D after the last position read.

        What lies in the padding and which sentences share the batch change nothing. Lengths are at least 1.
        """
        inputs, states = self.cell.inputs, self.cell.states
        assert inputs.bias is not None
        weights = (inputs.weight, states.weight, inputs.bias)
        if torch.compiler.is_exporting():
            exported: tuple[Tensor, Tensor] = torch.ops.tandem.gru(x_BSC, lengths_B, *weights, self.reverse)
            return exported
        with torch.autocast(x_BSC.device.type, enabled=False):  # one type for all, wide enough for sums
            return run_gru(x_BSC.to(states.weight.dtype), lengths_B, *weights, self.reverse)


def run_gru(
    x_BSC: Tensor, lengths_B: Tensor, weight_GC: Tensor, recurrent_GD: Tensor, bias_G: Tensor, reverse: bool
) -> tuple[Tensor, Tensor]:
    """The states B x S x D and last states B x D of a GRU; see :class:`Gru`."""
    position_S = torch.arange(x_BSC.size(1), device=lengths_B.device)
    inside_BS = position_S < lengths_B[:, None]
    mirror_BS = torch.where(inside_BS, lengths_B[:, None] - 1 - position_S, position_S)
    if reverse:
        x_BSC = _take(x_BSC, mirror_BS)
    start_1BD = x_BSC.new_zeros(1, x_BSC.size(0), recurrent_GD.size(1))
    weights = _fused_weights(weight_GC, recurrent_GD, bias_G)
    # layers 1, dropout 0, training: whether a backward pass may follow, one direction, batch first
    h_BSD, _ = torch._VF.gru(x_BSC, start_1BD, weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)
    last_BD = _take(h_BSD, lengths_B[:, None] - 1).squeeze(1)
    h_BSD = h_BSD.masked_fill(~inside_BS[..., None], 0.0)
    return (_take(h_BSD, mirror_BS) if reverse else h_BSD), last_BD


def _take(x_BSC: Tensor, index_BN: Tensor) -> Tensor:
    """For each sentence the chosen positions: B x N x C."""
    return x_BSC.gather(1, index_BN[..., None].expand(-1, -1, x_BSC.size(2)))


def _fused_weights(weight_GC: Tensor, recurrent_GD: Tensor, bias_G: Tensor) -> list[Tensor]:
    """The parameters as torch's kernel has them: reset gate first, a second bias, all in one piece of memory.

    Were they not in one piece, cuDNN would copy them at every call too, and warn.
    """
    ours = (weight_GC, recurrent_GD, bias_G, torch.zeros_like(bias_G))
    pieces = []
    for tensor in ours:
        z, r, n = tensor.chunk(3)
        pieces += [r.reshape(-1), z.reshape(-1), n.reshape(-1)]
    parts = torch.cat(pieces).split([tensor.numel() for tensor in ours])
    return [part.view(tensor.shape) for part, tensor in zip(parts, ours, strict=True)]


def _like_outputs(
    x_BSC: Tensor, lengths_B: Tensor, weight_GC: Tensor, recurrent_GD: Tensor, bias_G: Tensor, reverse: bool
) -> tuple[Tensor, Tensor]:
    width = recurrent_GD.size(1)
    return x_BSC.new_empty(*x_BSC.shape[:2], width), x_BSC.new_empty(x_BSC.size(0), width)


# A GRU stays one operator in an exported program, so that it becomes one operator of the exported format.
torch.library.custom_op("tandem::gru", run_gru, mutates_args=()).register_fake(_like_outputs)


def orthogonal_blocks(linear: Linear, width: int) -> None:
    """Every ``width`` x ``width`` block of a map orthogonal, what is no such block N(0, 0.01), the bias 0 (ME-MD)."""
    with torch.no_grad():
        for rows in linear.weight.split(width):
            for block in rows.split(width, dim=1):
                if block.shape == (width, width):
                    block.copy_(nn.init.orthogonal_(torch.empty(width, width)))
                else:
                    block.normal_(0.0, 0.01)
        if linear.bias is not None:
            linear.bias.zero_()
