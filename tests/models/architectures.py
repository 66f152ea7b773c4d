"""Small configurations of every registered architecture: a new one is one more entry here, and has all the tests.

Shape suffixes: B sentences, R rows, S source positions, T target positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import torch
from torch import Tensor

from models.protocol import Padded, Seq2SeqModel
from models.registry import ARCHITECTURES, build_model, load_config

AnyModel = Seq2SeqModel[Any, Any]
BOS, EOS, FIRST = 2, 3, 4  # the first ordinary symbol
SOURCE_TYPES, TARGET_TYPES = 13, 11

_SIZES = {"source_vocabularies": [SOURCE_TYPES], "target_vocabulary": TARGET_TYPES}
_DPN = _SIZES | {"width": 8, "hidden": 12, "heads": 2, "cnn_layers": 2, "san_layers": 2, "max_positions": 32}
_TRANSFORMER = _SIZES | {"width": 8, "hidden": 12, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
_TRANSFORMER |= {"max_positions": 32}
_PATHS = ("both", "cnn", "san")

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
        "no-biases": _TRANSFORMER | {"hidden_bias": False, "scale_embedding": False},
    },
}

LEARNERS: dict[str, dict[str, Any]] = {
    "dpn": {"width": 32, "hidden": 48, "heads": 2, "cnn_layers": 1, "san_layers": 1, "max_positions": 16},
    "transformer": {"width": 32, "hidden": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    | {"max_positions": 16},
}
"""For each architecture a configuration, without vocabularies and dropout, that can learn a toy task."""


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration of one architecture."""

    architecture: str
    variant: str

    def __str__(self) -> str:
        return f"{self.architecture}-{self.variant}"

    def build(self, dtype: torch.dtype = torch.float64, *, seed: int = 1, dropout: float = 0.0) -> AnyModel:
        """The model in evaluation mode, moved off its initial values: zeros and ones would hide a wrong term."""
        known = {field.name for field in fields(ARCHITECTURES[self.architecture][0])}
        rates = {name: dropout for name in ("dropout", "attention_dropout") if name in known}
        mapping = VARIANTS[self.architecture][self.variant] | rates
        torch.manual_seed(seed)
        model = build_model(self.architecture, load_config(self.architecture, mapping, str(self)))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model.to(dtype).eval()


CASES = [Case(architecture, variant) for architecture, variants in VARIANTS.items() for variant in variants]
FIRST_CASES = [Case(architecture, next(iter(variants))) for architecture, variants in VARIANTS.items()]
"""One of each architecture, for what does not depend on the variant."""


def random_ids(size: int, *shape: int, seed: int) -> Tensor:
    """Ordinary symbols."""
    return torch.randint(FIRST, size, shape, generator=torch.Generator().manual_seed(seed))


def sentences(model: AnyModel, lengths: Sequence[int], *, seed: int = 7) -> list[tuple[Tensor, ...]]:
    """Random sentences with one sequence per source, each ending with EOS; further sources are longer by one each."""
    made = []
    for number, length in enumerate(lengths):
        sources = []
        for index, size in enumerate(model.config.source_vocabularies):
            ids = random_ids(size, length + index, seed=seed + 31 * number + index)
            ids[-1] = EOS
            sources.append(ids)
        made.append(tuple(sources))
    return made


def batch(made: Sequence[tuple[Tensor, ...]], *, extra: int = 0, filler: int = 0) -> tuple[Padded, ...]:
    """Sentences side by side, padded with ``filler`` to the longest and ``extra`` positions beyond."""
    padded = []
    for column in zip(*made, strict=True):
        lengths = torch.tensor([len(ids) for ids in column])
        values_BS = torch.full((len(column), int(lengths.max()) + extra), filler)
        for row, ids in enumerate(column):
            values_BS[row, : len(ids)] = ids
        padded.append(Padded(values_BS, lengths))
    return tuple(padded)


def targets(count: int, length: int, *, seed: int = 3) -> Tensor:
    """Decoder inputs B x T: BOS and random symbols."""
    target_BT = random_ids(TARGET_TYPES, count, length, seed=seed)
    target_BT[:, 0] = BOS
    return target_BT
