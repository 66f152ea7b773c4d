"""Gated recurrent units (Cho et al. 2014), cell and sequence.

The reset gate acts after the product with the state, as fused kernels have it, or before it, on the state, as the paper
has it. With the first a whole sequence runs in torch's kernel, with the second position by position. A cell runs one
position of a decoder. Cell and sequence have the same parameters.

Shape suffixes: N any rows, B sentences, S positions, C input width, D width of the state, G = 3 D (update gate, reset
gate, candidate, in this order).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tandem.models.architectures.layers.linear import Linear

Reset = Literal["after", "before"]


class GruCell(nn.Module):
    """One position: ``z, r = sigmoid(W x + U h + b)``, ``z h + (1 - z) n`` with the candidate
    ``n = tanh(W_n x + b_n + r * (U_n h))`` (reset after the product) or ``tanh(W_n x + b_n + U_n (r * h))`` (before).

    Args:
        inputs: width of x.
        width: width of the state h.
        reset: where the reset gate acts.
    """

    def __init__(self, inputs: int, width: int, *, reset: Reset = "after") -> None:
        super().__init__()
        self.inputs = Linear(inputs, 3 * width)
        self.states = Linear(width, (3 if reset == "after" else 2) * width, bias=False)
        self.candidate = None if reset == "after" else Linear(width, width, bias=False)

    @property
    def recurrent_maps(self) -> tuple[Linear, ...]:
        """U, in one map or in two."""
        return (self.states,) if self.candidate is None else (self.states, self.candidate)

    def forward(self, x_NC: Tensor, h_ND: Tensor) -> Tensor:
        """The next state N x D."""
        return self.advance(self.inputs(x_NC), h_ND)

    def advance(self, mapped_NG: Tensor, h_ND: Tensor) -> Tensor:
        """The next state N x D from ``self.inputs(x)``, which a caller may compute for many positions at once."""
        x_z, x_r, x_n = mapped_NG.chunk(3, dim=-1)
        if self.candidate is None:
            h_z, h_r, h_n = self.states(h_ND).chunk(3, dim=-1)
            z_ND, r_ND = torch.sigmoid(x_z + h_z), torch.sigmoid(x_r + h_r)
            n_ND = torch.tanh(x_n + r_ND * h_n)
        else:
            h_z, h_r = self.states(h_ND).chunk(2, dim=-1)
            z_ND, r_ND = torch.sigmoid(x_z + h_z), torch.sigmoid(x_r + h_r)
            n_ND = torch.tanh(x_n + self.candidate(r_ND * h_ND))
        return n_ND + z_ND * (h_ND - n_ND)


class Gru(nn.Module):
    """A GRU over whole sequences, from a state of zeros, each sentence within its own length.

    Args:
        inputs: width of x.
        width: width of the states.
        reverse: run from each sentence's last position to its first.
        reset: where the reset gate acts; see :class:`GruCell`.
    """

    def __init__(self, inputs: int, width: int, *, reverse: bool = False, reset: Reset = "after") -> None:
        super().__init__()
        self.cell = GruCell(inputs, width, reset=reset)
        self.reverse = reverse

    def forward(self, x_BSC: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """States B x S x D, zero where padded, and the state B x D after the last position read.

        What lies in the padding and which sentences share the batch change nothing. Lengths are at least 1.
        """
        inputs, maps = self.cell.inputs, self.cell.recurrent_maps
        assert inputs.bias is not None
        recurrent = [one.effective_weight() for one in maps]
        recurrent_GD = recurrent[0] if len(recurrent) == 1 else torch.cat(recurrent)
        weights = (inputs.effective_weight(), recurrent_GD, inputs.bias)
        after = len(maps) == 1
        if torch.compiler.is_exporting():
            exported: tuple[Tensor, Tensor] = torch.ops.tandem.gru(x_BSC, lengths_B, *weights, self.reverse, after)
            return exported
        with torch.autocast(x_BSC.device.type, enabled=False):  # one type for all, wide enough for sums
            return run_gru(x_BSC.to(recurrent_GD.dtype), lengths_B, *weights, self.reverse, after)


def run_gru(
    x_BSC: Tensor,
    lengths_B: Tensor,
    weight_GC: Tensor,
    recurrent_GD: Tensor,
    bias_G: Tensor,
    reverse: bool,
    reset_after: bool,
) -> tuple[Tensor, Tensor]:
    """The states B x S x D and last states B x D of a GRU; see :class:`Gru`."""
    position_S = torch.arange(x_BSC.size(1), device=lengths_B.device)
    inside_BS = position_S < lengths_B[:, None]
    mirror_BS = torch.where(inside_BS, lengths_B[:, None] - 1 - position_S, position_S)
    if reverse:
        x_BSC = _take(x_BSC, mirror_BS)
    if reset_after:
        start_1BD = x_BSC.new_zeros(1, x_BSC.size(0), recurrent_GD.size(1))
        weights = _fused_weights(weight_GC, recurrent_GD, bias_G)
        # layers 1, dropout 0, training: whether a backward pass may follow, one direction, batch first
        h_BSD, _ = torch._VF.gru(x_BSC, start_1BD, weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)
    else:
        # A trace has to keep the loop, whose length is that of the sequences.
        tracing = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        loop = _scripted_loop() if tracing else _reset_before
        h_BSD = loop(F.linear(x_BSC, weight_GC, bias_G), recurrent_GD)
    last_BD = _take(h_BSD, lengths_B[:, None] - 1).squeeze(1)
    h_BSD = h_BSD.masked_fill(~inside_BS[..., None], 0.0)
    return (_take(h_BSD, mirror_BS) if reverse else h_BSD), last_BD


def _reset_before(mapped_BSG: Tensor, recurrent_GD: Tensor) -> Tensor:
    """The states B x S x D, from the inputs' products, position by position."""
    width = recurrent_GD.size(1)
    gates, candidate = recurrent_GD[: 2 * width], recurrent_GD[2 * width :]
    h_BD = torch.zeros_like(mapped_BSG[:, 0, :width])
    states = [h_BD]
    for position in range(mapped_BSG.size(1)):
        x_z, x_r, x_n = mapped_BSG[:, position].chunk(3, dim=-1)
        h_z, h_r = F.linear(h_BD, gates).chunk(2, dim=-1)
        z_BD, r_BD = torch.sigmoid(x_z + h_z), torch.sigmoid(x_r + h_r)
        n_BD = torch.tanh(x_n + F.linear(r_BD * h_BD, candidate))
        h_BD = n_BD + z_BD * (h_BD - n_BD)
        states.append(h_BD)
    return torch.stack(states[1:], dim=1)


@cache
def _scripted_loop() -> Callable[[Tensor, Tensor], Tensor]:
    scripted: Callable[[Tensor, Tensor], Tensor] = torch.jit.script(_reset_before)
    return scripted


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
    x_BSC: Tensor,
    lengths_B: Tensor,
    weight_GC: Tensor,
    recurrent_GD: Tensor,
    bias_G: Tensor,
    reverse: bool,
    reset_after: bool,
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


def orthogonal_cell(cell: GruCell) -> None:
    """Every gate's map of the state orthogonal."""
    for linear in cell.recurrent_maps:
        orthogonal_blocks(linear, linear.weight.size(1))
