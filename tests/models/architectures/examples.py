"""Small configurations of every registered architecture: a new one is one more entry here, and has all the tests.

Shape suffixes: B sentences, R rows, S source positions, T target positions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from tandem.models.architectures.protocol import ModelConfig, Padded, Seq2SeqModel, feature_widths
from tandem.models.architectures.registry import ARCHITECTURES, build_model, load_config
from tandem.models.search import Array

AnyModel = Seq2SeqModel[Any, Any]
BOS, EOS, FIRST = 2, 3, 4  # the first ordinary symbol
SOURCE_TYPES, TARGET_TYPES = 13, 11

_SIZES = {"source_vocabularies": [SOURCE_TYPES], "target_vocabulary": TARGET_TYPES}
_DPN = _SIZES | {"width": 8, "hidden": 12, "heads": 2, "cnn_layers": 2, "san_layers": 2, "max_positions": 32}
_TRANSFORMER = _SIZES | {"width": 8, "hidden": 12, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
_TRANSFORMER |= {"max_positions": 32}
_CONVS2S = _SIZES | {"embedding": 8, "output_embedding": 6, "max_positions": 32}
_CONVS2S |= {"encoder_widths": [8, 8], "encoder_kernels": [3, 3], "decoder_widths": [8, 8], "decoder_kernels": [3, 3]}
_LAYERWISE = {"source_vocabularies": [TARGET_TYPES], "target_vocabulary": TARGET_TYPES, "width": 8, "hidden": 12}
_LAYERWISE |= {"heads": 2, "layers": 2, "max_positions": 32}
_MEMD = _SIZES | {"width": 8}
_MULTISOURCE = {"source_vocabularies": [SOURCE_TYPES, 12], "target_vocabulary": TARGET_TYPES, "embedding": 6}
_MULTISOURCE |= {"encoder_width": 4, "attention_width": 7, "decoder_width": 8, "strategy": "hierarchical"}
_FEATURES = _MULTISOURCE | {"source_vocabularies": [SOURCE_TYPES, 0], "features": [0, 5]}
_JOINT = {"source_vocabularies": [TARGET_TYPES], "target_vocabulary": TARGET_TYPES}
_FLAT = _MULTISOURCE | {"strategy": "flat"}
_PATHS = ("both", "cnn", "san")


def _members(*members: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """The keys of an ensemble of such models."""
    sizes = {key: members[0][1][key] for key in _SIZES}
    return {**sizes, "members": [{"architecture": name, "config": config} for name, config in members]}


VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "dpn": {
        f"{encoder}-{decoder}": _DPN | {"encoder_paths": encoder, "decoder_paths": decoder}
        for encoder, decoder in product(_PATHS, _PATHS)
    }
    | {
        "plain-weights": _DPN | {"weight_norm": False},
        "kernel-5": _DPN | {"kernel": 5},
        "kernel-1": _DPN | {"kernel": 1},
        "equal-embeddings": _DPN | {"equal_embeddings": True, "source_vocabularies": [TARGET_TYPES]},
        "tied": _DPN | {"tied": "all", "source_vocabularies": [TARGET_TYPES]},
        "projections": _DPN | {"projections": True},
        "projections-san-cnn": _DPN | {"projections": True, "encoder_paths": "san", "decoder_paths": "cnn"},
        "projections-cnn-both": _DPN | {"projections": True, "encoder_paths": "cnn"},
    },
    "transformer": {
        f"{norm}-{positions}-{tied}": _TRANSFORMER
        | {"norm": norm, "positions": positions, "tied": tied}
        | ({"source_vocabularies": [TARGET_TYPES]} if tied == "all" else {})
        for norm, positions, tied in product(("pre", "post"), ("learned", "sinusoidal"), ("none", "decoder", "all"))
    }
    | {
        "no-positions": _TRANSFORMER | {"positions": "none"},
        "all-biases": _TRANSFORMER | {"attention_bias": True, "hidden_bias": True, "output_bias": True},
        "context-gate": _TRANSFORMER | {"context_gate": True},
        "context-gate-post": _TRANSFORMER | {"context_gate": True, "norm": "post"},
        "ssru": _TRANSFORMER | {"history": "ssru"},
        # The form of Firefox's models.
        "ssru-guided": _TRANSFORMER
        | {"norm": "post", "positions": "tensor2tensor", "history": "ssru", "guided_alignment": True}
        | {"attention_bias": True, "output_bias": True},
        "guided": _TRANSFORMER | {"guided_alignment": True},
        "no-biases": _TRANSFORMER | {"hidden_bias": False, "scale_embedding": False},
        # The forms of public models: those of MarianMT, of M2M100 and NLLB, and of BART.
        "swish-halves": _TRANSFORMER | {"norm": "post", "positions": "halves", "activation": "swish"},
        "reads-no-end": _TRANSFORMER | {"reads_end": False},
        "tensor2tensor": _TRANSFORMER | {"positions": "tensor2tensor", "first_position": 2},
        "embedding-norm": _TRANSFORMER
        | {"norm": "post", "positions": "learned", "activation": "gelu", "embedding_norm": True},
    },
    "convs2s": {
        "plain": _CONVS2S,
        "widths": _CONVS2S
        | {"encoder_widths": [8, 12, 6], "encoder_kernels": [3, 3, 1]}
        | {"decoder_widths": [10, 10, 6], "decoder_kernels": [3, 3, 1]},
        "kernels": _CONVS2S | {"encoder_kernels": [5, 2], "decoder_kernels": [1, 5]},
        "kernel-1": _CONVS2S | {"encoder_kernels": [1, 1], "decoder_kernels": [1, 1]},
        "attention-first": _CONVS2S | {"attention": [True, False]},
        "attention-last": _CONVS2S | {"attention": [False, True]},
        "no-source-positions": _CONVS2S | {"source_positions": False},
        "no-target-positions": _CONVS2S | {"target_positions": False},
        "no-positions": _CONVS2S | {"source_positions": False, "target_positions": False},
        "plain-weights": _CONVS2S | {"weight_norm": False},
        "tied-decoder": _CONVS2S | {"tied": "decoder", "output_embedding": 8},
        "tied-all": _CONVS2S | {"tied": "all", "output_embedding": 8, "source_vocabularies": [TARGET_TYPES]},
    },
    "layerwise": {
        "full": _LAYERWISE,
        "no-weight-sharing": _LAYERWISE | {"layers": 4, "share_weights": False},
        "no-mixed-attention": _LAYERWISE | {"mixed_attention": False},
        "no-side-embeddings": _LAYERWISE | {"side_embeddings": False},
        "no-positions": _LAYERWISE | {"positions": "none"},
        "nothing-shared": _LAYERWISE | {"share_weights": False, "mixed_attention": False, "side_embeddings": False},
        "one-layer": _LAYERWISE | {"layers": 1},
        "post-norm": _LAYERWISE | {"norm": "post"},
        "post-norm-no-weight-sharing": _LAYERWISE | {"norm": "post", "layers": 4, "share_weights": False},
        "deepnorm": _LAYERWISE | {"norm": "deepnorm", "layers": 3},
        "deepnorm-no-weight-sharing": _LAYERWISE | {"norm": "deepnorm", "layers": 4, "share_weights": False},
    },
    "multisource": {
        "hierarchical": _MULTISOURCE,
        "hierarchical-all": _FEATURES | {"share_projections": True, "sentinel": True, "decoder": "cgru"},
        "flat": _MULTISOURCE
        | {"strategy": "flat", "source_vocabularies": [SOURCE_TYPES, 0, 12], "features": [0, 5, 0]},
        "flat-all": _FEATURES | {"strategy": "flat", "share_projections": True, "sentinel": True, "decoder": "cgru"},
        "concatenation": _FEATURES | {"strategy": "concatenation"},
        "reset-before": _FLAT | {"gru_reset": "before"},
        "reset-before-cgru": _MULTISOURCE | {"gru_reset": "before", "decoder": "cgru", "sentinel": True},
        "no-energy-bias": _MULTISOURCE | {"energy_bias": False},
        "one-text-no-energy-bias": _MULTISOURCE
        | {"strategy": "concatenation", "source_vocabularies": [TARGET_TYPES], "energy_bias": False},
        "one-text": _MULTISOURCE | {"strategy": "concatenation", "source_vocabularies": [SOURCE_TYPES]},
        "one-matrix": _MULTISOURCE | {"strategy": "concatenation", "source_vocabularies": [0], "features": [5]},
    },
    "memd": {
        "3-encoders-3-decoders": _MEMD | {"encoders": ["gru2", "gru1", "cnn"], "decoders": [1, 2, 3]},
        "one-each": _MEMD | {"encoders": ["gru2"], "decoders": [1]},
        "one-cnn": _MEMD | {"encoders": ["cnn"], "decoders": [2]},
        "gru4-cnn": _MEMD | {"encoders": ["gru4", "cnn"], "decoders": [1]},
    },
}

VARIANTS["ensemble"] = {
    "dpn-transformer": _members(("dpn", _DPN), ("transformer", _TRANSFORMER)),
    "one": _members(("transformer", _TRANSFORMER)),
    "three": _members(("dpn", _DPN), ("convs2s", _CONVS2S), ("memd", _MEMD)),
    "joint-vocabulary": _members(("layerwise", _LAYERWISE), ("transformer", _TRANSFORMER | _JOINT)),
    "two-sources": _members(("multisource", _MULTISOURCE), ("multisource", _FLAT)),
}

LEARNERS: dict[str, dict[str, Any]] = {
    "dpn": {"width": 32, "hidden": 48, "heads": 2, "cnn_layers": 1, "san_layers": 1, "max_positions": 16},
    "transformer": {"width": 32, "hidden": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    | {"max_positions": 16},
    "convs2s": {"embedding": 24, "output_embedding": 24, "encoder_widths": [32, 24], "encoder_kernels": [3, 1]}
    | {"decoder_widths": [24, 32], "decoder_kernels": [3, 1], "max_positions": 16},
    "layerwise": {"width": 32, "hidden": 64, "heads": 2, "layers": 3, "max_positions": 16},
    "multisource": {
        "embedding": 24,
        "encoder_width": 24,
        "attention_width": 24,
        "decoder_width": 48,
        "strategy": "flat",
    },
    "memd": {"width": 32, "encoders": ["gru2", "cnn"], "decoders": [2]},
}
"""For each architecture a configuration, without vocabularies and dropout, that can learn a toy task."""

FRESH: dict[str, float] = {
    "dpn": 1.7e-2,
    "transformer": 0.48,
    "convs2s": 8.1e-3,
    "layerwise": 0.48,
    "multisource": 5.9e-4,
    "memd": 2.4e-7,
    "ensemble": 0.10,
}
"""Nats by which the loss of an untrained first variant exceeds log V, half the variance of its logits: mean of 60."""

# Pools and rows, several positions at once and one after another: all that a state can be.
LEARNERS["ensemble"] = {
    "members": [{"architecture": name, "config": LEARNERS[name]} for name in ("transformer", "memd")]
}


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration of one architecture."""

    architecture: str
    variant: str

    def __str__(self) -> str:
        return f"{self.architecture}-{self.variant}"

    @property
    def trainable(self) -> bool:
        """Whether it is trained as a whole, and so has an output layer and dropout of its own."""
        return ARCHITECTURES[self.architecture][1].trainable

    @property
    def recurrent(self) -> bool:
        """Whether it goes from position to position, which takes no numbers to tell."""
        with torch.device("meta"):
            return build_model(self.architecture, self._config()).recurrent

    def _config(self, **rates: float) -> ModelConfig:
        return load_config(self.architecture, VARIANTS[self.architecture][self.variant] | rates, str(self))

    def build(self, dtype: torch.dtype = torch.float64, *, seed: int = 1, dropout: float = 0.0) -> AnyModel:
        """The model in evaluation mode, moved off its initial values: zeros and ones would hide a wrong term."""
        known = {field.name for field in fields(ARCHITECTURES[self.architecture][0])}
        rates = {name: dropout for name in ("dropout", "attention_dropout") if name in known}
        torch.manual_seed(seed)
        model = build_model(self.architecture, self._config(**rates))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model.to(dtype).eval()


CASES = [Case(architecture, variant) for architecture, variants in VARIANTS.items() for variant in variants]
FIRST_CASES = [Case(architecture, next(iter(variants))) for architecture, variants in VARIANTS.items()]
"""One of each architecture, for what does not depend on the variant."""


RARE = {
    *("dpn-both-cnn", "dpn-both-san", "dpn-cnn-both", "dpn-cnn-cnn", "dpn-san-both", "dpn-san-san"),
    *("dpn-projections-cnn-both", "transformer-pre-learned-decoder", "transformer-pre-sinusoidal-none"),
    *("transformer-pre-sinusoidal-all", "transformer-post-learned-none", "transformer-post-learned-all"),
    *("transformer-post-sinusoidal-decoder", "transformer-context-gate-post", "convs2s-attention-first"),
    *("convs2s-no-source-positions", "convs2s-no-target-positions", "layerwise-no-weight-sharing"),
    *("layerwise-no-mixed-attention", "layerwise-no-side-embeddings", "layerwise-post-norm-no-weight-sharing"),
    *("layerwise-deepnorm-no-weight-sharing", "multisource-reset-before", "multisource-one-text-no-energy-bias"),
    *("memd-one-each", "dpn-kernel-5", "dpn-projections-san-cnn", "transformer-pre-learned-all"),
    *("transformer-pre-sinusoidal-decoder", "transformer-post-sinusoidal-none", "convs2s-kernel-1"),
    *("multisource-flat", "multisource-one-text"),
}
"""Mixtures of choices of which every one is in a case that is left."""


def cases(of: Sequence[Case], everyday: Collection[Case]) -> pytest.MarkDecorator:
    """A test of cases, some of which it takes every day and the others slowly."""
    marks = {case: [] if case in everyday else [pytest.mark.slow] for case in of}
    return pytest.mark.parametrize("case", [pytest.param(case, id=str(case), marks=marks[case]) for case in of])


# What is rare has its equations and its steps checked every day, all else slowly.
every_case = cases(CASES, [case for case in CASES if str(case) not in RARE])
# Where another test of every case passes through the same code.
every_case_slowly = cases(CASES, FIRST_CASES)
first_cases = cases(FIRST_CASES, FIRST_CASES)


def needs_training(case: Case) -> None:
    """Skip a test of what only a model that is trained as a whole has."""
    if not case.trainable:
        pytest.skip("not trained as a whole")


def parts_of(architecture: str, config: ModelConfig) -> dict[str, int]:
    """Parameters by part; counting them needs no memory."""
    with torch.device("meta"):
        return dict(build_model(architecture, config).parameter_parts())


def random_ids(size: int, *shape: int, seed: int) -> Tensor:
    """Ordinary symbols."""
    return torch.randint(FIRST, size, shape, generator=torch.Generator().manual_seed(seed))


def sentences(model: AnyModel, lengths: Sequence[int], *, seed: int = 7) -> list[tuple[Tensor, ...]]:
    """Random sentences with one sequence per source; further sources are longer by one each.

    Texts are ids that end with EOS, feature matrices S x D normal numbers.
    """
    kinds = list(zip(model.config.source_vocabularies, feature_widths(model.config), strict=True))
    made = []
    for number, length in enumerate(lengths):
        sources = []
        for index, (size, width) in enumerate(kinds):
            own = seed + 31 * number + index
            if width:
                sources.append(torch.randn(length + index, width, generator=torch.Generator().manual_seed(own)))
                continue
            ids = random_ids(size, length + index, seed=own)
            ids[-1] = EOS
            sources.append(ids)
        made.append(tuple(sources))
    return made


def arrays(made: Sequence[tuple[Tensor, ...]]) -> list[tuple[Array, ...]]:
    """Sentences as search takes them."""
    return [tuple(source.numpy() for source in sources) for sources in made]


def batch(made: Sequence[tuple[Tensor, ...]], *, extra: int = 0, filler: int = 0) -> tuple[Padded, ...]:
    """Sentences side by side, padded with ``filler`` to the longest and ``extra`` positions beyond."""
    padded = []
    for column in zip(*made, strict=True):
        lengths = torch.tensor([len(one) for one in column])
        shape = (len(column), int(lengths.max()) + extra, *column[0].shape[1:])
        values = torch.full(shape, filler, dtype=column[0].dtype)
        for row, one in enumerate(column):
            values[row, : len(one)] = one
        padded.append(Padded(values, lengths))
    return tuple(padded)


def targets(count: int, length: int, *, seed: int = 3) -> Tensor:
    """Decoder inputs B x T: BOS and random symbols."""
    target_BT = random_ids(TARGET_TYPES, count, length, seed=seed)
    target_BT[:, 0] = BOS
    return target_BT


def gradients(model: AnyModel) -> dict[str, Tensor]:
    """Those of the parameters by the squared scores of three sentences."""
    model.zero_grad()
    with torch.enable_grad():
        model.score(targets(3, 4), model.encode(batch(sentences(model, (5, 2, 6))))).square().sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
