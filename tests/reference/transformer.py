"""The Transformer (Vaswani et al. 2017) in plain NumPy: one sentence, one position at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference.layers import (
    Matrix,
    Vector,
    Vectors,
    Weights,
    feed_forward,
    layer_norm,
    linear,
    logits,
    multi_head,
    self_attention,
    sigmoid,
    sinusoids,
)


@dataclass
class TransformerReference:
    """The whole model for one sentence.

    Attributes:
        weights: the model's state.
        config: the configuration, read by attribute.
        seen: after :meth:`score` the source attention of every layer, averaged over heads, or with guided alignment
            that of the last layer's first head: T vectors of length S.
    """

    weights: Weights
    config: Any
    seen: dict[str, list[Vector]] = field(default_factory=dict)

    def score(self, source: list[int], target: list[int]) -> Matrix:
        """Logits T x V."""
        w, tied = self.weights, self.config.tied
        bias = w["output_bias"] if self.config.output_bias else None
        features = self.decode(target, self.encode(source))
        return logits(features, w["output_weight" if tied == "none" else "target_embedding"], bias)

    def embed(self, side: str, ids: list[int]) -> Vectors:
        """sqrt(d) times the embedding (or once), plus the position's, and their norm where there is one."""
        c, w = self.config, self.weights
        table = w["target_embedding" if c.tied == "all" else f"{side}_embedding"]
        if c.positions == "learned":
            positions = w[f"{side}_positions.table"]
        elif c.positions == "none":
            positions = np.zeros((len(ids), c.width))
        else:
            exact = sinusoids(len(ids), c.width, c.positions, c.first_position)
            positions = exact.astype(np.float32).astype(np.float64)  # the model keeps float32
        factor = np.sqrt(c.width) if c.scale_embedding else 1.0
        embedded = [factor * table[token] + positions[i] for i, token in enumerate(ids)]
        return [layer_norm(w.under(f"{side}_embedding_norm"), x) for x in embedded] if c.embedding_norm else embedded

    def encode(self, source: list[int]) -> Vectors:
        """Self-attention and feed-forward blocks; where the end is not read, it is not there."""
        xs = self.embed("source", source if self.config.reads_end else source[:-1])
        for w in self.weights.layers("encoder"):
            xs = self._residual(w, 0, xs, self._self_attention(w, causal=False))
            xs = self._residual(w, 1, xs, self._feed_forward(w))
        return self._final("encoder_norm", xs)

    def decode(self, target: list[int], source: Vectors) -> Vectors:
        """Causal self-attention, source attention and feed-forward blocks."""
        xs = self.embed("target", target)
        for index, w in enumerate(self.weights.layers("decoder")):
            history = self._unit(w) if self.config.history == "ssru" else self._self_attention(w, causal=True)
            xs = self._residual(w, 0, xs, history)
            xs = self._residual(w, 1, xs, self._source_attention(w, index, source), gate=self.config.context_gate)
            xs = self._residual(w, 2, xs, self._feed_forward(w))
        return self._final("decoder_norm", xs)

    def _residual(
        self, w: Weights, norm: int, xs: Vectors, block: Callable[[Vectors], Vectors], *, gate: bool = False
    ) -> Vectors:
        """Pre-norm x + block(LN x), post-norm LN(x + block(x)); with a gate for each head what it makes of the two."""
        n = w.under(f"norms.{norm}")
        pre = self.config.norm == "pre"
        ys = block([layer_norm(n, x) for x in xs] if pre else xs)
        sums = [self._gated(w.under("gate"), x, y) if gate else x + y for x, y in zip(xs, ys, strict=True)]
        return sums if pre else [layer_norm(n, x) for x in sums]

    def _gated(self, w: Weights, target: Vector, source: Vector) -> Vector:
        """2 ((1 - g) t + g s), g = sigmoid([t, s] W + b), head by head."""
        gates = sigmoid(linear(w.under("linear"), np.concatenate([target, source])))
        g = np.repeat(gates, len(target) // self.config.heads)
        return 2 * ((1 - g) * target + g * source)

    def _self_attention(self, w: Weights, *, causal: bool) -> Callable[[Vectors], Vectors]:
        return lambda xs: self_attention(w.under("attention"), xs, self.config.heads, causal=causal)

    def _unit(self, w: Weights) -> Callable[[Vectors], Vectors]:
        """f = sigmoid(W_f x + b), c = f c' + (1 - f) W x, max(0, c) from position to position (Kim et al. 2019)."""

        def block(xs: Vectors) -> Vectors:
            c, outputs = np.zeros(self.config.width), []
            for x in xs:
                f = sigmoid(linear(w.under("unit.forget"), x))
                c = f * c + (1 - f) * linear(w.under("unit.candidate"), x)
                outputs.append(np.maximum(0, c))
            return outputs

        return block

    def _source_attention(self, w: Weights, layer: int, source: Vectors) -> Callable[[Vectors], Vectors]:
        def block(xs: Vectors) -> Vectors:
            keys = [linear(w.under("source_keys"), h) for h in source]
            values = [linear(w.under("source_values"), h) for h in source]
            attended = [multi_head(linear(w.under("query"), x), keys, values, self.config.heads) for x in xs]
            guided = self.config.guided_alignment
            if not guided or layer == self.config.decoder_layers - 1:
                own = [weights[0] if guided else np.mean(weights, axis=0) for _, weights in attended]
                self.seen[f"decoder.{layer}.source0"] = own
            return [linear(w.under("output"), context) for context, _ in attended]

        return block

    def _final(self, name: str, xs: Vectors) -> Vectors:
        return [layer_norm(self.weights.under(name), x) for x in xs] if self.config.norm == "pre" else xs

    def _feed_forward(self, w: Weights) -> Callable[[Vectors], Vectors]:
        return lambda xs: [feed_forward(w.under("feed_forward"), x, self.config.activation) for x in xs]
