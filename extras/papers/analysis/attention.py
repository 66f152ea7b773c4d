"""Attention of whole sentences under teacher forcing, by name, with the symbols it lies between.

Shape suffixes: T target positions (EOS included), X what the attention is over: source positions, target positions,
or encoders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from tandem.models.architectures.protocol import Padded
from tandem.models.bundle import Bundle
from tandem.models.search import Graphs, SearchOptions, translate_batch
from tandem.models.search.graphs import Array
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import AnyModel
from tandem.models.translation.translator import Column, encode_columns, written_lines
from tandem.models.vocabulary import BOS, EOS, Vocabulary

Weights = NDArray[np.float64]
_NAME = re.compile(r"(?P<path>.+)\.(?P<layer>\d+)\.(?P<over>\w+)")


@dataclass(frozen=True, slots=True)
class AttentionName:
    """A name such as ``cnn.3.san`` in its parts.

    Attributes:
        path: which part of the decoder attends.
        layer: its number there.
        over: what it attends to: ``source0``, ``target``, ``encoders``, or an encoder path.
    """

    path: str
    layer: int
    over: str

    @classmethod
    def parse(cls, name: str) -> AttentionName:
        """The parts of a name. Raises ValueError where a model names its attention otherwise."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"attention must be named path.layer.over, but one is named {name!r}")
        return cls(match["path"], int(match["layer"]), match["over"])

    @property
    def source(self) -> int | None:
        """Which source it is over; None where it is over something else. A path of one encoder is over source 0."""
        if self.over in ("target", "encoders", "sentinel"):
            return None
        match = re.fullmatch(r"source(\d+)", self.over)
        return int(match[1]) if match else 0


@dataclass(frozen=True, slots=True, eq=False)
class SentenceAttention:
    """One sentence and every attention of its decoding.

    Attributes:
        sources: the symbols of each source, EOS included; numbers where a source is of features.
        target: the symbols that were predicted, EOS last.
        weights: T x X by name, in float64.
    """

    sources: tuple[tuple[str, ...], ...]
    target: tuple[str, ...]
    weights: dict[str, Weights]

    def labels(self, name: str) -> tuple[str, ...]:
        """What the columns of an attention stand for."""
        parts, columns = AttentionName.parse(name), self.weights[name].shape[1]
        if parts.source is not None:
            return self.sources[parts.source]
        if parts.over == "target":
            return ("<s>", *self.target[:-1])
        if parts.over == "encoders":
            names = [f"source {index}" for index in range(len(self.sources))]
            return tuple([*names, "sentinel"][:columns])
        return tuple([parts.over] * columns)


def groups(names: Iterable[str]) -> dict[str, list[str]]:
    """The names of one path's attentions over one thing, layer after layer, by ``path-over``."""
    found: dict[str, list[str]] = {}
    for name in names:
        parts = AttentionName.parse(name)
        found.setdefault(f"{parts.path}-{parts.over}", []).append(name)
    return found


def attended(
    model: AnyModel,
    vocabularies: tuple[Sequence[Vocabulary | None], Vocabulary],
    sources: Sequence[tuple[Array, ...]],
    targets: Sequence[Sequence[int]],
) -> Iterator[SentenceAttention]:
    """Every attention of the given targets (ids without BOS and EOS), one sentence at a time: nothing is padded.

    Args:
        model: prepared for inference.
        vocabularies: one per source (None for feature matrices), and the target's.
        sources: per sentence, its sources as they were decoded.
        targets: per sentence, what is to be predicted.
    """
    for columns, target in zip(sources, targets, strict=True):
        # Copied: matrices may lie in a file that is open for reading only, which tensors cannot be.
        padded = tuple(
            Padded(torch.from_numpy(np.array(one, order="C"))[None], torch.tensor([len(one)])) for one in columns
        )
        with torch.inference_mode():
            weights = model.attention(torch.tensor([[BOS, *target]]), model.encode(padded))
        yield SentenceAttention(
            sources=tuple(_pieces(v, one) for v, one in zip(vocabularies[0], columns, strict=True)),
            target=tuple(vocabularies[1].piece_of(token) for token in (*target, EOS)),
            weights={name: tensor[0].double().numpy() for name, tensor in weights.items()},
        )


def _pieces(vocabulary: Vocabulary | None, source: Array) -> tuple[str, ...]:
    if vocabulary is None:
        return tuple(map(str, range(len(source))))
    return tuple(vocabulary.piece_of(int(token)) for token in source)


def attended_lines(
    bundle: Bundle, graphs: Graphs, options: SearchOptions, columns: Sequence[Column]
) -> list[SentenceAttention]:
    """What the model attends to as it writes its own best output of each line; lines without text in some source are
    left out. Needs torch, whatever the graphs run on.
    """
    vocabularies, most = bundle.sources, bundle.manifest.limits.max_source_tokens + 1
    written = written_lines(vocabularies, columns)
    kept = [
        index
        for index, texts in enumerate(written)
        if all(text.strip() or not one for text, one in zip(texts, vocabularies, strict=True))
    ]
    if not kept:
        return []
    encoded = encode_columns(vocabularies, columns, most)
    sources = [tuple(column[index] for column in encoded) for index in kept]
    hypotheses = translate_batch(graphs, sources, replace(options, n_best=1))
    targets = [one[0].tokens for one in hypotheses]
    both = (vocabularies, bundle.target_vocabulary)
    return list(attended(load_bundle_model(bundle), both, sources, targets))
