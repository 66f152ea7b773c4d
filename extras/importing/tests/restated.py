"""The encoder-decoders of BART's kind in plain NumPy, on tensors by their published names: one position at a time.

What the library's models compute, written down a second time, so that an import is checked where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from tests.reference.layers import Matrix, Vectors, Weights, activated, layer_norm, linear, multi_head, sinusoids


@dataclass
class Family:
    """A model of the kind.

    Attributes:
        weights: below ``model.``.
        bias: of the logits.
        heads: of every attention.
        scale: of embeddings.
        positions: rows by position, or the kind of sinusoid.
        first: number of the first position.
        activation: of the feed-forward blocks.
        pre: whether norms stand before their blocks.
    """

    weights: Weights
    bias: Matrix | None
    heads: int
    scale: float
    positions: str = "halves"
    first: int = 0
    activation: str = "swish"
    pre: bool = False

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], **settings: object) -> Family:
        arrays = {name: tensor.double().numpy() for name, tensor in tensors.items()}
        return cls(Weights(arrays, "model."), arrays.get("final_logits_bias"), **settings)  # type: ignore[arg-type]

    def logits(self, source: list[int], target: list[int]) -> Matrix:
        """T x V, after each of the target's ids."""
        memory = self._side("encoder", source, self._encoder_layer)
        features = self._side("decoder", target, lambda w, xs: self._decoder_layer(w, xs, memory))
        rows = np.stack([self.weights["shared.weight"] @ x for x in features])
        return rows if self.bias is None else rows + self.bias

    def _side(self, side: str, ids: list[int], layer: Callable[[Weights, Vectors], Vectors]) -> Vectors:
        w = self.weights.under(side)
        if "embed_positions.weight" in w:
            table = w["embed_positions.weight"][self.first :]
        else:
            width = len(self.weights["shared.weight"][0])
            table = sinusoids(len(ids), width, self.positions, self.first).astype(np.float32).astype(np.float64)
        xs = [self.scale * self.weights["shared.weight"][token] + table[i] for i, token in enumerate(ids)]
        if "layernorm_embedding.weight" in w:
            xs = [layer_norm(w.under("layernorm_embedding"), x) for x in xs]
        for own in w.layers("layers"):
            xs = layer(own, xs)
        return [layer_norm(w.under("layer_norm"), x) for x in xs] if "layer_norm.weight" in w else xs

    def _encoder_layer(self, w: Weights, xs: Vectors) -> Vectors:
        xs = self._block(w.under("self_attn_layer_norm"), xs, lambda ys: self._attend(w.under("self_attn"), ys, ys))
        return self._block(w.under("final_layer_norm"), xs, lambda ys: self._feed_forward(w, ys))

    def _decoder_layer(self, w: Weights, xs: Vectors, memory: Vectors) -> Vectors:
        def causal(ys: Vectors) -> Vectors:
            return [self._attend(w.under("self_attn"), [y], ys[: i + 1])[0] for i, y in enumerate(ys)]

        xs = self._block(w.under("self_attn_layer_norm"), xs, causal)
        cross = w.under("encoder_attn")
        xs = self._block(w.under("encoder_attn_layer_norm"), xs, lambda ys: self._attend(cross, ys, memory))
        return self._block(w.under("final_layer_norm"), xs, lambda ys: self._feed_forward(w, ys))

    def _block(self, norm: Weights, xs: Vectors, block: Callable[[Vectors], Vectors]) -> Vectors:
        if self.pre:
            return [x + y for x, y in zip(xs, block([layer_norm(norm, x) for x in xs]), strict=True)]
        return [layer_norm(norm, x + y) for x, y in zip(xs, block(xs), strict=True)]

    def _attend(self, w: Weights, queries: Vectors, others: Vectors) -> Vectors:
        keys = [linear(w.under("k_proj"), x) for x in others]
        values = [linear(w.under("v_proj"), x) for x in others]
        contexts = [multi_head(linear(w.under("q_proj"), x), keys, values, self.heads)[0] for x in queries]
        return [linear(w.under("out_proj"), context) for context in contexts]

    def _feed_forward(self, w: Weights, xs: Vectors) -> Vectors:
        return [linear(w.under("fc2"), activated(linear(w.under("fc1"), x), self.activation)) for x in xs]
