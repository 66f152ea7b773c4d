"""The shared layers against NumPy, and their statistics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tandem.models.architectures.layers import dropout as dropouts
from tandem.models.architectures.layers.attention import (
    Activation,
    FeedForward,
    SelfAttention,
    additive_mask,
    split_heads,
)
from tandem.models.architectures.layers.dropout import Dropout, Masks
from tandem.models.architectures.layers.embedding import PositionEmbedding, Sinusoids, sinusoids
from tandem.models.architectures.layers.gradient import scale_gradient
from tandem.models.architectures.layers.linear import GatedConvolution, Linear, unfolded
from tests.models.architectures.comparison import assert_same, shaken, vectors, weights_of
from tests.reference import layers as reference


@pytest.mark.parametrize("weight_norm", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_linear(weight_norm: bool, bias: bool) -> None:
    layer = shaken(Linear(6, 4, bias=bias, weight_norm=weight_norm))
    x_TD = torch.randn(3, 6, dtype=torch.float64)
    expected = [reference.linear(weights_of(layer), x) for x in vectors(x_TD)]
    assert_same(layer(x_TD), expected)
    layer.fold()
    assert layer.gain is None
    assert_same(layer(x_TD), expected)


@pytest.mark.parametrize("weight_norm", [False, True])
def test_weight_normalisation_starts_as_the_plain_map(weight_norm: bool) -> None:
    layer = Linear(6, 4, weight_norm=weight_norm)
    torch.testing.assert_close(layer.effective_weight(), layer.weight)
    layer.init_normal(0.5)
    torch.testing.assert_close(layer.effective_weight(), layer.weight)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_weight_normalisation_has_the_gradients_of_its_equation(dtype: torch.dtype) -> None:
    layer = shaken(Linear(6, 4, weight_norm=True)).to(dtype).requires_grad_()
    assert layer.gain is not None
    direction = torch.randn(4, 6, dtype=dtype)
    plain = layer.weight * (layer.gain / layer.weight.norm(dim=1))[:, None]
    parameters = layer.weight, layer.gain
    found, expected = (
        torch.autograd.grad((w * direction).sum(), parameters) for w in (layer.effective_weight(), plain)
    )
    torch.testing.assert_close(found, expected)


def test_unfolding_is_the_inverse_of_folding() -> None:
    """A folded map is a weight-normalised one whose gains are the norms of its rows."""
    folded, other = (shaken(nn.Sequential(Linear(6, 4, weight_norm=True))) for _ in range(2))
    x_TD = torch.randn(3, 6, dtype=torch.float64)
    expected = folded(x_TD)
    folded[0].fold()
    other.load_state_dict(unfolded(folded.state_dict(), other.state_dict()))
    torch.testing.assert_close(other(x_TD), expected, atol=1e-12, rtol=0)


def test_unfolding_leaves_alone_what_has_gains_or_needs_none() -> None:
    plain, normed = (shaken(nn.Sequential(Linear(6, 4, weight_norm=norm))).state_dict() for norm in (False, True))
    assert unfolded(plain, plain).keys() == plain.keys()
    assert unfolded(normed, normed)["0.gain"] is normed["0.gain"]


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_gated_convolution_is_torchs_convolution(kernel: int) -> None:
    layer = shaken(GatedConvolution(6, 4, kernel, weight_norm=True))
    x_NTC = torch.randn(2, 7 + kernel - 1, 6, dtype=torch.float64)
    filters_OCK = layer.linear.effective_weight().unflatten(1, (kernel, 6)).transpose(1, 2)
    convolved_NOT = nn.functional.conv1d(x_NTC.transpose(1, 2), filters_OCK, layer.linear.bias)
    torch.testing.assert_close(
        layer(x_NTC), nn.functional.glu(convolved_NOT, dim=1).transpose(1, 2), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_feed_forward(activation: Activation) -> None:
    layer = shaken(FeedForward(6, 9, bias=True, dropout=0.5, activation=activation))
    x_TD = torch.randn(3, 6, dtype=torch.float64)
    assert_same(layer(x_TD), [reference.feed_forward(weights_of(layer), x, activation) for x in vectors(x_TD)])


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_self_attention_over_a_source(heads: int) -> None:
    layer = shaken(SelfAttention(8, heads, bias=True, dropout=0.0))
    x_BSD, lengths = torch.randn(2, 5, 8, dtype=torch.float64), (5, 2)
    found = layer(x_BSD, additive_mask(torch.arange(5) < torch.tensor(lengths)[:, None]))
    for b, length in enumerate(lengths):
        xs = vectors(x_BSD[b, :length])
        assert_same(found[b, :length], reference.self_attention(weights_of(layer), xs, heads, causal=False))


def test_self_attention_over_a_pool_and_new_positions() -> None:
    """Two rows share four slots, of which each sees its own; three new positions follow at once."""
    layer = shaken(SelfAttention(8, 2, bias=False, dropout=0.0))
    past_TD, new_RTD = torch.randn(4, 8, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)
    _, keys_TD, values_TD = layer.query_key_value(past_TD).chunk(3, dim=-1)
    seen = ([0, 2], [3, 0, 1])
    history_RP = torch.full((2, 4), -math.inf)
    for row, slots in enumerate(seen):
        history_RP[row, slots] = 0.0
    pools = split_heads(keys_TD[None], 2), split_heads(values_TD[None], 2)
    features_RTD, *entries = layer.advance(new_RTD, *pools, history_RP)
    for row, slots in enumerate(seen):
        sequence = [*vectors(past_TD[slots]), *vectors(new_RTD[row])]
        expected = reference.self_attention(weights_of(layer), sequence, 2, causal=True)
        assert_same(features_RTD[row], expected[len(slots) :])
        _, *expected = layer.query_key_value(new_RTD[row]).chunk(3, dim=-1)
        torch.testing.assert_close([one[row].flatten(1) for one in entries], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("width", [8, 7])
@pytest.mark.parametrize(("kind", "first"), [("sinusoidal", 0), ("halves", 0), ("tensor2tensor", 2)])
def test_sinusoids(kind: Sinusoids, first: int, width: int) -> None:
    expected = reference.sinusoids(40, width, kind, first)
    np.testing.assert_allclose(sinusoids(40, width, kind, first).numpy(), expected, atol=1e-7, rtol=0)


def test_positions_are_looked_up_by_number() -> None:
    learned, none = PositionEmbedding("learned", 5, 4), PositionEmbedding("none", 5, 4)
    number = torch.tensor([[3, 0], [4, 4]])
    assert learned(number).equal(learned.table[number.flatten()].reshape(2, 2, 4))
    assert not none(number).any()
    assert not list(none.parameters())
    assert not list(PositionEmbedding("sinusoidal", 5, 4).state_dict())


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_its_share_and_the_expectation(rate: float) -> None:
    """Every residue modulo 8 alike: eight draws are cut from each random word."""
    layer, count = Dropout(rate).train(), 80_000
    dropped = layer(torch.ones(count)) == 0
    exact = round(rate * 256) / 256
    deviation = math.sqrt(exact * (1 - exact) / (count / 8))
    for share in dropped.view(-1, 8).float().mean(0):
        assert float(share) == pytest.approx(exact, abs=4.5 * deviation)
    # Neighbours fall independently.
    both = (dropped[1:] & dropped[:-1]).float().mean()
    assert float(both) == pytest.approx(exact**2, abs=4.5 * math.sqrt(exact**2 / count))
    kept = layer(torch.full((count,), 3.0))
    torch.testing.assert_close(kept.unique(), torch.tensor([0.0, 3.0 / (1 - exact)]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("threshold", [1, 26, 77, 128, 200, 255])
def test_what_is_kept_makes_up_for_what_is_dropped(threshold: int, dtype: torch.dtype) -> None:
    """The mean over all 256 draws is 1, in 16 bits too, which do not hold 256 / 230."""
    every = torch.arange(256, dtype=torch.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "random_", lambda words, *bounds, generator: words.copy_(every.view(torch.int64)))
        factors = dropouts.factors(256, dtype, threshold).double()
    assert int((factors == 0).sum()) == threshold
    kept = factors[factors > 0]
    assert float(kept.max() / kept.min()) - 1 <= torch.finfo(dtype).eps
    assert float(factors.mean()) == pytest.approx(1, abs=1e-7 + torch.finfo(dtype).eps / 256 * float(kept.max()))


def test_dropouts_of_a_batch_share_their_masks() -> None:
    """Every one drops its share, elements of one place independently; and of another batch others."""
    layers, count, masks = [Dropout(0.25).train() for _ in range(2)], 200_000, Masks()
    with masks.shared():
        one, other = (layer(torch.ones(count)) == 0 for layer in layers)
    with masks.shared():
        later = layers[0](torch.ones(count)) == 0
    alone = layers[0](torch.ones(count)) == 0
    for dropped in (one, other, later, alone):
        assert float(dropped.float().mean()) == pytest.approx(0.25, abs=0.005)
    for pair in ((one, other), (one, later), (one, alone)):
        assert float((pair[0] & pair[1]).float().mean()) == pytest.approx(0.25**2, abs=0.003)


def test_shared_masks_follow_from_the_state_of_the_generator() -> None:
    """Whatever sizes came before: a run that is resumed has not seen the sizes of the one before it."""
    layer, used, new = Dropout(0.5).train(), Masks(), Masks()
    with used.shared():
        layer(torch.ones(300_000))
    found = []
    for masks in (used, new):
        torch.manual_seed(3)
        with masks.shared():
            found.append([layer(torch.ones(size)) for size in (10, 77, 100_000, 10)])
    assert all(x.equal(y) for x, y in zip(*found, strict=True))


def test_a_mask_is_there_again_when_a_layer_is_computed_again() -> None:
    """With the generator's state alone, after larger masks than before were asked for."""
    layer = Dropout(0.5).train()
    with Masks().shared():
        state = torch.get_rng_state()
        first = layer(torch.ones(1000))
        layer(torch.ones(400_000))
        torch.set_rng_state(state)
        assert layer(torch.ones(1000)).equal(first)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
def test_a_compiled_dropout_needs_no_shared_masks() -> None:
    """A graph holds no numbers of the moment: it drops out as torch does."""
    compiled = torch.compile(Dropout(0.5).train(), backend="aot_eager", fullgraph=True)
    with Masks().shared():
        assert set(compiled(torch.ones(1000)).tolist()) == {0.0, 2.0}


def test_dropout_gradient_is_that_of_its_mask() -> None:
    layer = Dropout(0.3).train()
    x = torch.randn(5, 13, requires_grad=True)  # not a multiple of 8
    y = layer(x)
    gradient: Tensor
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x, y)


def test_dropout_is_the_identity_without_training_or_rate() -> None:
    x = torch.randn(4, 4)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert Dropout(1e-4).train()(x) is not x, "a rate above 0 never rounds to none"
    assert repr(Dropout(0.25)) == "Dropout(rate=0.25)"


def test_a_scaled_gradient_leaves_its_tensor_alone() -> None:
    x = torch.randn(3, requires_grad=True)
    assert scale_gradient(x, 0.25).equal(x)
    scale_gradient(x, 0.25).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.25] * 3
    constant = torch.randn(3)
    assert scale_gradient(constant, 0.25) is constant
