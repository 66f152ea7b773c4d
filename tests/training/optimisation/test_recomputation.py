"""Computing layers again changes no number and remembers less, in every architecture."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import Tensor

from tandem.models.architectures.protocol import Padded, Seq2SeqModel, feature_widths
from tandem.models.architectures.registry import ARCHITECTURES, build_model, load_config
from tandem.training.optimisation.recomputation import pieces, recomputed
from tests.models.architectures.examples import VARIANTS

TRAINABLE = [name for name, (_, kind) in ARCHITECTURES.items() if kind.trainable]
EVERYDAY = ("dpn",)  # what goes position by position takes five times as long


def deep(architecture: str) -> Seq2SeqModel[Any, Any]:
    """A model with a few layers, where the architecture has layers, and with dropout."""
    mapping = dict(next(iter(VARIANTS[architecture].values()))) | {"dropout": 0.2}
    wanted = dict.fromkeys(("width", "embedding", "encoder_width", "attention_width", "decoder_width"), 32)
    wanted |= dict.fromkeys(("cnn_layers", "san_layers", "encoder_layers", "decoder_layers", "layers"), 4)
    mapping |= {key: value for key, value in wanted.items() if key in mapping}
    if architecture == "convs2s":
        mapping |= {"encoder_widths": [32, 32], "decoder_widths": [32, 32]}
    return build_model(architecture, load_config(architecture, mapping, architecture)).train()


def gradients(model: Seq2SeqModel[Any, Any], wanted: bool) -> tuple[Tensor, list[Tensor | None], int]:
    """The loss of a batch, every gradient, and the bytes remembered between the two passes beside the parameters."""
    torch.manual_seed(3)
    model.zero_grad()
    sources = tuple(
        Padded(torch.randn(32, 20, width) if width else torch.randint(4, types, (32, 20)), torch.randint(1, 20, (32,)))
        for types, width in zip(model.config.source_vocabularies, feature_widths(model.config), strict=True)
    )
    before = alive()
    kept: dict[int, int] = {}

    def remember(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor), recomputed(model, wanted):
        features = model.decode(torch.randint(4, 11, (32, 16)), model.encode(sources))
    loss = features.square().sum() + sum(p.sum() * 0 for p in model.output_parameters() if p is not None)
    kept |= alive()  # what goes into a piece is held by Python, not by the graph
    remembered = sum(size for place, size in kept.items() if place not in before)
    loss.backward()
    return loss.detach(), [p.grad for p in model.parameters()], remembered


def alive() -> dict[int, int]:
    """The sizes of all memory that a tensor in Python refers to, by its place."""
    storages = [one.untyped_storage() for one in gc.get_objects() if type(one) in (Tensor, torch.nn.Parameter)]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


@pytest.mark.parametrize(
    "architecture",
    [pytest.param(name, marks=[] if name in EVERYDAY else pytest.mark.slow) for name in TRAINABLE],
)
def test_the_same_gradients_from_less(architecture: str) -> None:
    model = deep(architecture)
    loss, expected, much = gradients(model, False)
    again, found, little = gradients(model, True)
    assert again.equal(loss)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one is not None  # DistributedDataParallel waits for every gradient
        assert other is not None
        assert one.equal(other)
    assert little < 0.5 * much


@pytest.mark.parametrize("architecture", TRAINABLE)
def test_the_model_is_left_as_it_was(architecture: str) -> None:
    model = deep(architecture)
    before = [dict(vars(module)) for module in model.modules()]
    with recomputed(model, True):
        assert any("forward" in vars(module) or "advance" in vars(module) for module in model.modules())
    assert [vars(module).keys() for module in model.modules()] == [one.keys() for one in before]


def test_pieces_do_not_lie_in_one_another() -> None:
    for architecture in TRAINABLE:
        modules = [module for module, _ in pieces(deep(architecture))]
        inner = {id(child) for module in modules for child in module.modules() if child is not module}
        assert modules
        assert not inner & {id(module) for module in modules}
