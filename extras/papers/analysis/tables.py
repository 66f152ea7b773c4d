"""Numbers about attention: how spread it is, and how it divides between sources, target and encoders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tandem.extras.papers.analysis.attention import AttentionName, SentenceAttention, Weights


@dataclass(frozen=True, slots=True)
class Entropy:
    """How spread one path's attention over one encoder is.

    Attributes:
        path: the decoder's path.
        over: what it attends to.
        nats: mean entropy, natural logarithm.
        uniform: what attention spread evenly would have, for scale.
    """

    path: str
    over: str
    nats: float
    uniform: float


def entropies(sentences: Sequence[SentenceAttention]) -> list[Entropy]:
    """Entropy of each attention over a source: the mean over layers, then target tokens, then sentences (DPN, table 5).

    Attention that shares its softmax with something else is no distribution over the source and is left out; see
    :func:`source_shares` for it.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for sentence in sentences:
        layers: dict[tuple[str, str], list[Weights]] = defaultdict(list)
        for name, weights_TX in sentence.weights.items():
            parts = AttentionName.parse(name)
            if parts.source is not None and np.allclose(weights_TX.sum(axis=1), 1.0, atol=1e-3):
                layers[parts.path, parts.over].append(weights_TX)
        for key, stack in layers.items():
            per_layer = np.stack([_entropy(weights_TX) for weights_TX in stack])
            found[key].append((float(per_layer.mean(axis=0).mean()), float(np.log(stack[0].shape[1]))))
    return [Entropy(path, over, *np.mean(values, axis=0).tolist()) for (path, over), values in sorted(found.items())]


def _entropy(weights_TX: Weights) -> Weights:
    """Of each row, in nats; 0 log 0 = 0."""
    logs = np.log(np.where(weights_TX > 0, weights_TX, 1.0))
    spread: Weights = -(weights_TX * logs).sum(axis=1)
    return spread


@dataclass(frozen=True, slots=True)
class AttentionShare:
    """How one layer's mixed attention divides.

    Attributes:
        layer: its name, ``path.layer``.
        source: the mean weight that lies on the source.
        target: the mean weight that lies on the target so far.
    """

    layer: str
    source: float
    target: float


def source_shares(sentences: Sequence[SentenceAttention]) -> list[AttentionShare]:
    """Mixed attention, layer by layer: the mean over target tokens, then sentences, of the weight on either side."""
    means = {layer: float(np.mean([row.mean() for row in rows])) for layer, rows in _source_weights(sentences).items()}
    return [AttentionShare(layer, mean, 1.0 - mean) for layer, mean in means.items()]


def shares_by_position(sentences: Iterable[SentenceAttention], longest: int) -> tuple[tuple[str, ...], Weights]:
    """Names of the layers with mixed attention, and the mean weight on the source: layers x target positions.

    Args:
        sentences: with their attention.
        longest: positions beyond are left out; where no sentence reaches, there is NaN.
    """
    found = _source_weights(sentences)
    means = np.full((len(found), longest), np.nan)
    for layer, rows in enumerate(found.values()):
        for place in range(min(longest, max(map(len, rows)))):
            means[layer, place] = np.mean([row[place] for row in rows if place < len(row)])
    return tuple(found), means


def _source_weights(sentences: Iterable[SentenceAttention]) -> dict[str, list[Weights]]:
    """By layer of mixed attention, for each sentence the weight on the source at its target positions."""
    found: dict[tuple[str, int], list[Weights]] = defaultdict(list)
    for sentence in sentences:
        for name, weights_TX in sentence.weights.items():
            parts = AttentionName.parse(name)
            if parts.over == "target":
                found[parts.path, parts.layer].append(1.0 - weights_TX.sum(axis=1))
    return {f"{path}.{layer}": found[path, layer] for path, layer in sorted(found)}


@dataclass(frozen=True, slots=True)
class EncoderWeight:
    """The mean weight of one encoder, or of the sentinel, in hierarchical attention."""

    encoder: str
    weight: float


def encoder_weights(sentences: Sequence[SentenceAttention]) -> list[EncoderWeight]:
    """Hierarchical attention's second level: the mean over target tokens, then sentences."""
    found: dict[str, list[float]] = defaultdict(list)
    for sentence in sentences:
        for name, weights_TX in sentence.weights.items():
            if AttentionName.parse(name).over == "encoders":
                for label, mean in zip(sentence.labels(name), weights_TX.mean(axis=0), strict=True):
                    found[label].append(float(mean))
    return [EncoderWeight(label, float(np.mean(values))) for label, values in found.items()]
