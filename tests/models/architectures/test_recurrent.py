"""Recurrent units, gated and simple, against NumPy: positions, sequences, both directions, traced and exported."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tandem.models.architectures.layers.linear import Linear
from tandem.models.architectures.layers.recurrent import Gru, GruCell, Reset, orthogonal_blocks, run_gru
from tandem.models.architectures.layers.ssru import weighted_sums
from tests.models.architectures.comparison import assert_same, shaken, vectors, weights_of
from tests.reference import layers as reference

LENGTHS = (4, 1, 6)
both_resets = pytest.mark.parametrize("reset", ["after", "before"])
both_directions = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
Run = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def batch(lengths: tuple[int, ...], width: int = 5, *, extra: int = 0) -> tuple[Tensor, Tensor]:
    return torch.randn(len(lengths), max(lengths) + extra, width, dtype=torch.float64), torch.tensor(lengths)


@both_resets
def test_cell(reset: Reset) -> None:
    cell = shaken(GruCell(5, 7, reset=reset))
    x_NC, h_ND = torch.randn(3, 5, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    expected = [reference.gru_cell(weights_of(cell), x, h) for x, h in zip(x_NC.numpy(), h_ND.numpy(), strict=True)]
    assert_same(cell(x_NC, h_ND), expected)
    assert_same(cell.advance(cell.inputs(x_NC), h_ND), expected)


@both_resets
@both_directions
def test_whole_sequences(reverse: bool, reset: Reset) -> None:
    """Of a padded batch, each sentence is that of a loop over its own positions, and beyond it there are zeros."""
    layer = shaken(Gru(5, 7, reverse=reverse, reset=reset))
    x_BSC, lengths_B = batch(LENGTHS, extra=2)
    found_BSD, last_BD = layer(x_BSC, lengths_B)
    for b, length in enumerate(LENGTHS):
        expected, last = reference.gru(weights_of(layer), vectors(x_BSC[b, :length]), reverse=reverse)
        assert_same(found_BSD[b, :length], expected)
        assert_same(last_BD[b], last)
        assert not found_BSD[b, length:].any()


@both_resets
@both_directions
def test_gradients_are_those_of_the_cell(reverse: bool, reset: Reset) -> None:
    """Of every parameter and of the inputs; nothing flows into padding."""
    layer = Gru(5, 7, reverse=reverse, reset=reset).double()
    x_BSC, lengths_B = batch(LENGTHS, extra=1)
    x_BSC.requires_grad_()
    weight_BSD = torch.randn(3, 7, 7, dtype=torch.float64)
    inputs = [x_BSC, *layer.parameters()]
    found = torch.autograd.grad((layer(x_BSC, lengths_B)[0] * weight_BSD).sum(), inputs)
    total = torch.zeros((), dtype=torch.float64)
    for b, length in enumerate(LENGTHS):
        h_1D = torch.zeros(1, 7, dtype=torch.float64)
        for position in reversed(range(length)) if reverse else range(length):
            h_1D = layer.cell(x_BSC[b : b + 1, position], h_1D)
            total = total + (h_1D[0] * weight_BSD[b, position]).sum()
    for one, other in zip(found, torch.autograd.grad(total, inputs), strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)
    assert all(gradient.any() for gradient in found)
    assert not any(found[0][b, length:].any() for b, length in enumerate(LENGTHS))


@both_resets
@both_directions
def test_a_trace_runs_at_other_sizes(reverse: bool, reset: Reset) -> None:
    layer = shaken(Gru(5, 7, reverse=reverse, reset=reset))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated", DeprecationWarning)
        traced: Run = torch.jit.trace(layer, batch((3, 3)), check_trace=False)
    for lengths in ((1,), LENGTHS, (2, 9, 5, 5)):
        given = batch(lengths, extra=1)
        assert all(a.equal(b) for a, b in zip(traced(*given), layer(*given), strict=True))


@both_resets
@both_directions
def test_an_exported_program_holds_one_operator(reverse: bool, reset: Reset) -> None:
    """So that it becomes one operator of the exported format; run as it is, it gives the same."""
    layer = shaken(Gru(5, 7, reverse=reverse, reset=reset))
    sizes = ({0: torch.export.Dim("sentence"), 1: torch.export.Dim("source")}, {0: torch.export.Dim("sentence")})
    program = torch.export.export(layer, batch((3, 3)), dynamic_shapes=sizes)
    called = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert called.count(torch.ops.tandem.gru.default) == 1
    given = batch(LENGTHS, extra=1)
    assert all(a.equal(b) for a, b in zip(program.module()(*given), layer(*given), strict=True))


def test_the_operator_keeps_its_own_contract() -> None:
    """Shapes for tracing, no aliases: torch's checks of the operator itself."""
    layer = Gru(5, 7)
    weights = (layer.cell.inputs.weight.detach(), layer.cell.states.weight.detach(), torch.zeros(21))
    x_BSC, lengths_B = batch(LENGTHS)
    for after in (True, False):
        torch.library.opcheck(torch.ops.tandem.gru.default, (x_BSC.float(), lengths_B, *weights, True, after))


def test_low_precision_around_it_leaves_the_states_wide() -> None:
    layer = Gru(5, 7)
    x_BSC, lengths_B = batch(LENGTHS)
    expected = run_gru(
        x_BSC.bfloat16().float(),
        lengths_B,
        *(layer.cell.inputs.weight, layer.cell.states.weight),
        torch.zeros(21),
        False,
        True,
    )
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x_BSC.bfloat16(), lengths_B)
    assert all(a.dtype == torch.float32 and a.equal(b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(("inputs", "square"), [(8, 3), (16, 6), (12, 3), (5, 0)])
def test_orthogonal_blocks(inputs: int, square: int) -> None:
    """Every d x d block is orthogonal, whatever is left over is N(0, 0.01), the bias is 0."""
    linear, width = Linear(inputs, 3 * 8), 8
    assert linear.bias is not None
    torch.nn.init.ones_(linear.bias)
    orthogonal_blocks(linear, width)
    blocks = [block for rows in linear.weight.detach().split(width) for block in rows.split(width, dim=1)]
    orthogonal = [block for block in blocks if block.shape == (width, width)]
    assert len(orthogonal) == square
    for block in orthogonal:
        torch.testing.assert_close(block @ block.mT, torch.eye(width), atol=1e-5, rtol=0)
    rest = torch.cat([block.flatten() for block in blocks if block.shape != (width, width)] or [torch.zeros(0)])
    assert len(rest) == 0 or 0.006 < float(rest.std()) < 0.014
    assert not linear.bias.any()


@pytest.mark.parametrize("length", range(1, 10))
def test_weighted_sums_in_rounds_are_those_of_a_loop(length: int) -> None:
    kept_RTD, added_RTD = torch.rand(2, 3, length, 4, dtype=torch.float64)
    state_RD = first_RD = torch.randn(3, 4, dtype=torch.float64)
    expected = []
    for kept_RD, added_RD in zip(kept_RTD.unbind(1), added_RTD.unbind(1), strict=True):
        state_RD = kept_RD * state_RD + added_RD
        expected.append(state_RD)
    torch.testing.assert_close(weighted_sums(kept_RTD, added_RTD, first_RD), torch.stack(expected, dim=1))
