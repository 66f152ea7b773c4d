"""Layer-wise coordination (He et al., NeurIPS 2018) in plain NumPy: one sentence, one position at a time."""

from __future__ import annotations

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
    sinusoids,
    softmax,
)


@dataclass
class LayerwiseReference:
    """The whole model for one sentence.

    Attributes:
        weights: the model's state.
        config: the configuration, read by attribute.
        seen: after a run the weights of every layer on the source (length S) and on the target so far (length
            T, zeros for what follows), averaged over heads: T vectors each.
        prefix: after a run the keys and values of the source that each layer's target positions met.
    """

    weights: Weights
    config: Any
    seen: dict[str, list[Vector]] = field(default_factory=dict)
    prefix: list[tuple[Vectors, Vectors]] = field(default_factory=list)

    def score(self, source: list[int], target: list[int]) -> Matrix:
        """Logits T x V."""
        return logits(self.run(source, target), self.weights["embedding"], None)

    def run(self, source: list[int], target: list[int]) -> Vectors:
        """The target's last states; both sides climb the layers together."""
        c = self.config
        xs, ys = self.embed("source", source), self.embed("target", target)
        stack = self.weights.layers("stack")
        for number, w in enumerate(stack):
            own = w if c.share_weights else self.weights.under(f"source_stack.{number}")
            attended = self_attention(own.under("attention"), given(c, own, 0, xs), c.heads, causal=False)
            below, xs = xs, rest(c, own, xs, attended)
            # One stack: source states of the layer below. Two stacks: those of the corresponding layer.
            ys = self._target_layer(number, w, below if c.share_weights else xs, ys)
        return [layer_norm(self.weights.under("final_norm"), y) for y in ys] if c.norm == "pre" else ys

    def embed(self, side: str, ids: list[int]) -> Vectors:
        """sqrt(d) times the embedding, plus the position counted on its own side, plus the side's vector."""
        c, w = self.config, self.weights
        positions = np.zeros((len(ids), c.width))
        if c.positions == "sinusoidal":
            positions = sinusoids(len(ids), c.width).astype(np.float32).astype(np.float64)  # the model keeps float32
        vector = w[f"{side}_side"] if c.side_embeddings else np.zeros(c.width)
        return [np.sqrt(c.width) * w["embedding"][token] + positions[i] + vector for i, token in enumerate(ids)]

    def _target_layer(self, number: int, w: Weights, xs: Vectors, ys: Vectors) -> Vectors:
        _, source_keys, source_values = maps(w, given(self.config, w, 0, xs))
        queries, keys, values = maps(w, given(self.config, w, 0, ys))
        self.prefix.append((source_keys, source_values))
        attended, on_source, on_target = [], [], []
        heads, size = self.config.heads, len(xs)
        for i, query in enumerate(queries):
            own_keys, own_values = keys[: i + 1], values[: i + 1]
            if self.config.mixed_attention:
                context, by_head = multi_head(query, source_keys + own_keys, source_values + own_values, heads)
                mean = np.mean(by_head, axis=0)
            else:
                from_source, one = multi_head(query, source_keys, source_values, heads)
                from_target, other = multi_head(query, own_keys, own_values, heads)
                context, mean = (
                    from_source + from_target,
                    np.concatenate([np.mean(one, axis=0), np.mean(other, axis=0)]),
                )
            attended.append(linear(w.under("attention.output"), context))
            on_source.append(mean[:size])
            on_target.append(np.pad(mean[size:], (0, len(ys) - i - 1)))
        self.seen |= {f"mixed.{number}.source0": on_source, f"mixed.{number}.target": on_target}
        return rest(self.config, w, ys, attended)


def maps(w: Weights, xs: Vectors) -> tuple[Vectors, Vectors, Vectors]:
    """W_Q x, W_K x and W_V x: the maps lie one below the other in one matrix."""
    mapped = [np.split(linear(w.under("attention.query_key_value"), x), 3) for x in xs]
    return [m[0] for m in mapped], [m[1] for m in mapped], [m[2] for m in mapped]


def given(config: Any, w: Weights, norm: int, xs: Vectors) -> Vectors:
    """What a sub-layer reads: LN(x) with pre-norm, x itself with the others."""
    return [layer_norm(w.under(f"norms.{norm}"), x) for x in xs] if config.norm == "pre" else xs


def added(config: Any, w: Weights, norm: int, xs: Vectors, ys: Vectors) -> Vectors:
    """x + y with pre-norm, else LN(alpha x + y), alpha being 1 (figure 1) or (2 N)^(1/4) (DeepNorm, N layers)."""
    if config.norm == "pre":
        return [x + y for x, y in zip(xs, ys, strict=True)]
    layers = config.layers if config.share_weights else config.layers / 2
    alpha = (2 * layers) ** 0.25 if config.norm == "deepnorm" else 1.0
    return [layer_norm(w.under(f"norms.{norm}"), alpha * x + y) for x, y in zip(xs, ys, strict=True)]


def rest(config: Any, w: Weights, xs: Vectors, attended: Vectors) -> Vectors:
    """The attention's sub-layer to its end, then the feed-forward's (eq. 2)."""
    xs = added(config, w, 0, xs, attended)
    hidden = [feed_forward(w.under("feed_forward"), x) for x in given(config, w, 1, xs)]
    return added(config, w, 1, xs, hidden)


def eq3(q: Matrix, k: Matrix, v: Matrix, n: int) -> Matrix:
    """softmax(Q K^T / sqrt(d) + M) V with M(i, j) = 0 if j < n or j <= i + n, else -inf, for one head of width d."""
    m, d = q.shape
    mask = np.full((m, n + m), -np.inf)
    for i in range(m):
        for j in range(n + m):
            if j < n or j <= i + n:
                mask[i, j] = 0.0
    energies = q @ k.T / np.sqrt(d) + mask
    mixed: Matrix = np.stack([softmax(row) for row in energies]) @ v
    return mixed
