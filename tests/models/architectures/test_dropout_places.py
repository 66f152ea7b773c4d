"""Where each architecture drops out: what every dropout is given, in order, and that what it returns is used.

Shape letters: B sentences, S source positions, T target positions, D width, F hidden or embedding width, H heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tandem.models.architectures.layers.dropout import Dropout
from tandem.models.architectures.registry import ARCHITECTURES, build_model, load_config
from tests.models.architectures.examples import VARIANTS, AnyModel, batch, sentences, targets

pytestmark = pytest.mark.usefixtures("no_gradients")
RATE, OF_WEIGHTS = 0.3, 0.2
# All sizes differ, so that a shape says what it is.
LETTERS = {3: "B", 5: "S", 6: "s", 4: "T", 8: "D", 12: "F", 2: "H"}

Place = tuple[str, str]
"""The dropout's name in the model, and the module whose output it is given, or else the shape of what it is given."""


def _encoder(name: str, *, attended: str = "attention") -> list[Place]:
    return [
        (f"{name}.attention.dropout", "BHSS"),
        (f"{name}.dropout", f"{name}.{attended}"),
        (f"{name}.feed_forward.dropout", "BSF"),
        (f"{name}.dropout", f"{name}.feed_forward"),
    ]


def _transformer_decoder(name: str) -> list[Place]:
    return [
        (f"{name}.attention.dropout", "BHTT"),
        (f"{name}.dropout", f"{name}.attention.output"),
        (f"{name}.source_dropout", "BHTS"),
        (f"{name}.dropout", f"{name}.output"),
        (f"{name}.feed_forward.dropout", "BTF"),
        (f"{name}.dropout", f"{name}.feed_forward"),
    ]


def _san_decoder(name: str) -> list[Place]:
    return [
        (f"{name}.self_attention.dropout", "BHTT"),
        (f"{name}.dropout", f"{name}.self_attention.output"),
        (f"{name}.dropout", f"{name}.output"),
        (f"{name}.feed_forward.dropout", "BTF"),
        (f"{name}.dropout", f"{name}.feed_forward"),
    ]


def _mixed(name: str) -> list[Place]:
    return [
        (f"{name}.attention.dropout", "BHTT"),
        (f"{name}.attention.dropout", "BHTS"),
        (f"{name}.dropout", f"{name}.attention.output"),
        (f"{name}.feed_forward.dropout", "BTF"),
        (f"{name}.dropout", f"{name}.feed_forward"),
    ]


EMBEDDED = [("dropout", "BSD"), ("dropout", "BTD")]
TRANSFORMER = (
    [("dropout", "source_embedding_norm"), *_encoder("encoder.0"), *_encoder("encoder.1")],
    [("dropout", "target_embedding_norm"), *_transformer_decoder("decoder.0"), *_transformer_decoder("decoder.1")],
)
# Of the last layer the source needs the keys and values alone.
LAYERWISE = (
    [EMBEDDED[0], *_encoder("stack.0", attended="attention.output")],
    [EMBEDDED[1], *_mixed("stack.0"), *_mixed("stack.1")],
)
SOURCES = (
    [("encoders.0.dropout", "BSF"), ("encoders.1.dropout", "BsF")],
    [("dropout", "BTF"), ("dropout", "output")],
)
PLACES: dict[str, tuple[list[Place], list[Place]]] = {
    "dpn": (
        [
            EMBEDDED[0],
            ("cnn_encoder.0.dropout", "dropout"),
            ("cnn_encoder.1.dropout", "cnn_encoder.0"),
            *_encoder("san_encoder.0"),
            *_encoder("san_encoder.1"),
        ],
        [
            EMBEDDED[1],
            ("cnn_decoder.0.dropout", "dropout"),
            ("cnn_decoder.1.dropout", "BTD"),
            *_san_decoder("san_decoder.0"),
            *_san_decoder("san_decoder.1"),
            ("dropout", "output_gate"),
        ],
    ),
    "transformer": TRANSFORMER,
    "transformer-post-learned-none": TRANSFORMER,
    "layerwise": LAYERWISE,
    "layerwise-post-norm": LAYERWISE,
    "convs2s": (
        [EMBEDDED[0], ("encoder.0.dropout", "encoder_input"), ("encoder.1.dropout", "encoder.0")],
        [
            EMBEDDED[1],
            ("decoder.0.dropout", "decoder_input"),
            ("decoder.1.dropout", "BTD"),
            ("dropout", "decoder_output"),
        ],
    ),
    "multisource": SOURCES,
    "multisource-concatenation": SOURCES,  # a text and feature vectors
    "memd": ([], [("dropout", "BTD")]),
}
"""The dropouts of the encoder and those of the decoder, in their order: by architecture, of its first variant, and by
variant where the code is another."""


class Watch:
    """Stands in for every dropout: notes what it is given and lets it through, but for one call, which gives zeros."""

    def __init__(self, model: AnyModel) -> None:
        self.places: list[Place] = []
        self.zeroed: int | None = None
        self._names = {module: name for name, module in model.named_modules()}
        self._made: dict[int, tuple[str, Tensor]] = {}  # kept, so that no memory is used again

    def made(self, module: nn.Module, _: object, output: Any) -> None:
        """Remember who made a tensor."""
        if isinstance(output, Tensor):
            self._made[output.data_ptr()] = self._names[module], output

    def drop(self, dropout: nn.Module, x: Tensor) -> Tensor:
        """What takes the place of :meth:`Dropout.forward`."""
        name, whole = self._made.get(x.data_ptr(), ("", x))
        shape = "".join(LETTERS[size] for size in x.shape)
        self.places.append((self._names[dropout], name if name and whole.numel() == x.numel() else shape))
        return x * 0 if len(self.places) - 1 == self.zeroed else x


@contextmanager
def watching(model: AnyModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watch = Watch(model)
    monkeypatch.setattr(Dropout, "forward", lambda dropout, x: watch.drop(dropout, x))
    hooks = [module.register_forward_hook(watch.made) for module in model.modules()]
    yield watch
    for hook in hooks:
        hook.remove()


def built(name: str) -> AnyModel:
    """A model of an architecture, or of a variant of it, with sizes as ``LETTERS`` has them."""
    architecture, _, variant = name.partition("-")
    variants = VARIANTS[architecture]
    known = ARCHITECTURES[architecture][0].__dataclass_fields__
    rates = {"dropout": RATE} | ({"attention_dropout": OF_WEIGHTS} if "attention_dropout" in known else {})
    keys = (variants[variant] if variant else next(iter(variants.values()))) | rates
    if architecture == "multisource":
        keys |= {"embedding": 12} | ({"features": [0, 12]} if "features" in keys else {})
    torch.manual_seed(1)
    return build_model(architecture, load_config(architecture, keys, "x")).double()


def test_every_architecture_has_a_row() -> None:
    trainable = {name for name, (_, model) in ARCHITECTURES.items() if model.trainable}
    assert {name.partition("-")[0] for name in PLACES} == trainable


@pytest.mark.parametrize("name", PLACES)
def test_places(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dropout is called where the table says, and without what it returns the scores are others."""
    model = built(name)
    sources, target_BT = batch(sentences(model, (5, 2, 3))), targets(3, 4)
    encoder, decoder = PLACES[name]
    scores = []
    for zeroed in (None, *range(len(encoder) + len(decoder))):
        with watching(model, monkeypatch) as watch:
            watch.zeroed = zeroed
            memory = model.encode(sources)
            first = len(watch.places)
            scores.append(model.score(target_BT, memory))
            assert watch.places[:first] == encoder
            assert watch.places[first:] == decoder
    unused = [place for place, score in zip([*encoder, *decoder], scores[1:], strict=True) if score.equal(scores[0])]
    assert unused == []


@pytest.mark.parametrize("name", PLACES)
def test_rates(name: str) -> None:
    """Attention weights have a rate of their own."""
    named = {place: module.rate for place, module in built(name).named_modules() if isinstance(module, Dropout)}
    of_weights = ("attention.dropout", "source_dropout")
    assert named == {place: OF_WEIGHTS if place.endswith(of_weights) else RATE for place in named}
    assert named
