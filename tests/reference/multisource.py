"""Multi-source attention (Libovický and Helcl 2017) in plain NumPy: one sentence, one position at a time.

Equations by their numbers in the paper, with the biases that it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference.layers import Matrix, Vector, Vectors, Weights, linear, logits, sigmoid, softmax

Source = list[int] | Vectors  # a text's ids, or feature vectors


def gru(w: Weights, x: Vector, h: Vector) -> Vector:
    """z, r = sigmoid(W x + U h + b);  h' = z h + (1 - z) n with n = tanh(W_n x + b_n + r * (U_n h)), or, where U_n is a
    map of its own, tanh(W_n x + b_n + U_n (r * h))."""
    d = len(h)
    wx, uh = linear(w.under("inputs"), x), linear(w.under("states"), h)
    z, r = sigmoid(wx[:d] + uh[:d]), sigmoid(wx[d : 2 * d] + uh[d : 2 * d])
    recurrent = linear(w.under("candidate"), r * h) if "candidate.weight" in w else r * uh[2 * d :]
    return z * h + (1 - z) * np.tanh(wx[2 * d :] + recurrent)


def run(w: Weights, xs: Vectors) -> Vectors:
    """A GRU's states from a state of zeros."""
    states, h = [], np.zeros(w["states.weight"].shape[1])
    for x in xs:
        h = gru(w, x, h)
        states.append(h)
    return states


@dataclass
class MultiSourceReference:
    """The whole model for one sentence.

    Attributes:
        weights: the model's state.
        config: the configuration, read by attribute.
        seen: after :meth:`score` every distribution by name, T vectors each.
    """

    weights: Weights
    config: Any
    seen: dict[str, list[Vector]] = field(default_factory=dict)

    def score(self, sources: Sequence[Source], target: list[int]) -> Matrix:
        """Logits T x V."""
        w, c = self.weights, self.config
        encoded = [self.encode(w.under(f"encoders.{k}"), source) for k, source in enumerate(sources)]
        states = [h for h, _ in encoded]
        s = linear(w.under("initial"), np.concatenate([final for _, final in encoded]))
        context: Vectors | None = None
        outputs = []
        for token in target:
            y, previous = w["target_embedding"][token], s
            if c.decoder == "gru":
                before = self.no_contexts(states) if context is None else context
                s = gru(w.under("cell"), linear(w.under("input"), np.concatenate([y, *before])), previous)
                context = self.attend(s, previous, y, states)
            else:
                first = gru(w.under("cell"), y, previous)
                context = self.attend(first, previous, y, states)
                s = gru(w.under("second_cell"), np.concatenate(context), first)
            outputs.append(linear(w.under("output"), np.concatenate([s, *context])))
        return logits(outputs, w["output_weight"], w["output_bias"])

    def encode(self, w: Weights, source: Source) -> tuple[Vectors, Vector]:
        """States and final state: of both directions side by side, or the feature vectors and their mean."""
        if "embedding" not in w:
            vectors = [np.asarray(x) for x in source]
            return vectors, np.mean(vectors, axis=0)
        xs = [w["embedding"][token] for token in source]
        forwards = run(w.under("forwards.cell"), xs)
        backwards = run(w.under("backwards.cell"), xs[::-1])[::-1]
        states = [np.concatenate([f, b]) for f, b in zip(forwards, backwards, strict=True)]
        return states, np.concatenate([forwards[-1], backwards[0]])

    def no_contexts(self, states: list[Vectors]) -> Vectors:
        """What stands for the contexts before there are any."""
        if self.config.strategy == "concatenation":
            return [np.zeros(len(h[0])) for h in states]
        return [np.zeros(self.config.attention_width)]

    def attend(self, s: Vector, previous: Vector, y: Vector, states: list[Vectors]) -> Vectors:
        """The contexts of one position."""
        w = self.weights.under("combination")
        if self.config.strategy == "concatenation":
            return self.each(w, s, states)
        if self.config.strategy == "flat":
            return [self.flat(w, s, previous, y, states)]
        return [self.hierarchical(w, s, previous, y, states)]

    def each(self, w: Weights, s: Vector, states: list[Vectors]) -> Vectors:
        """eq. 1-3:  e_j = v^T tanh(W s + U h_j);  alpha = softmax(e);  c = sum_j alpha_j h_j, for every encoder."""
        contexts = []
        for k, hs in enumerate(states):
            own = w.under(f"energies.{k}")
            alpha = softmax(np.array([energy(own, s, linear(w.under(f"keys.{k}"), h)) for h in hs]))
            self.see(f"source{k}", alpha)
            contexts.append(np.sum([a * h for a, h in zip(alpha, hs, strict=True)], axis=0))
        return contexts

    def flat(self, w: Weights, s: Vector, previous: Vector, y: Vector, states: list[Vectors]) -> Vector:
        """eq. 4-5:  one softmax over all states;  c = sum_k sum_j alpha_j^(k) U_c^(k) h_j^(k)."""
        energies, values = [], []
        for k, hs in enumerate(states):
            for h in hs:
                own = energy(w.under("energy"), s, linear(w.under(f"projections.{k}.key"), h))
                energies.append(own + offset(w, k))
                values.append(self.value(w.under(f"projections.{k}"), h))
        if self.config.sentinel:
            key, value = self.sentinel(w.under("sentinel"), s, previous, y)
            energies.append(energy(w.under("energy"), s, key) + offset(w, len(states)))
            values.append(value)
        alpha = softmax(np.array(energies))
        start = 0
        for k, hs in enumerate(states):
            self.see(f"source{k}", alpha[start : start + len(hs)])
            start += len(hs)
        if self.config.sentinel:
            self.see("sentinel", alpha[-1:])
        context: Vector = np.sum([a * value for a, value in zip(alpha, values, strict=True)], axis=0)
        return context

    def hierarchical(self, w: Weights, s: Vector, previous: Vector, y: Vector, states: list[Vectors]) -> Vector:
        """eq. 8-10:  e^(k) = v_b^T tanh(W_b s + U_b^(k) c^(k));  beta = softmax(e);  c = sum_k beta_k U_c^(k) c^(k)."""
        contexts = self.each(w.under("first"), s, states)
        keys = [linear(w.under(f"projections.{k}.key"), c) for k, c in enumerate(contexts)]
        values = [self.value(w.under(f"projections.{k}"), c) for k, c in enumerate(contexts)]
        if self.config.sentinel:
            key, value = self.sentinel(w.under("sentinel"), s, previous, y)
            keys.append(key)
            values.append(value)
        beta = softmax(np.array([energy(w.under("energy"), s, key) + offset(w, k) for k, key in enumerate(keys)]))
        self.see("encoders", beta)
        context: Vector = np.sum([b * value for b, value in zip(beta, values, strict=True)], axis=0)
        return context

    def sentinel(self, w: Weights, s: Vector, previous: Vector, y: Vector) -> tuple[Vector, Vector]:
        """psi = sigmoid(W_y y + W_s s_{i-1} + b);  U (psi * s) and U_c (psi * s)."""
        psi = sigmoid(linear(w.under("symbol"), y) + linear(w.under("previous"), previous))
        own = w.under("projections")
        return linear(own.under("key"), psi * s), self.value(own, psi * s)

    def value(self, w: Weights, x: Vector) -> Vector:
        """U_c x, U_c being U where they are shared."""
        return linear(w.under("key" if self.config.share_projections else "value"), x)

    def see(self, name: str, weights: Vector) -> None:
        self.seen.setdefault(f"decoder.0.{name}", []).append(weights)


def offset(w: Weights, k: int) -> float:
    """The number that is added to the energies of encoder k, or of the sentinel, last."""
    return float(w["offsets"][k]) if "offsets" in w else 0.0


def energy(w: Weights, s: Vector, key: Vector) -> float:
    """eq. 1:  v^T tanh(W s + b + key)."""
    return float((w["vector.weight"][0] * np.tanh(linear(w.under("query"), s) + key)).sum())
