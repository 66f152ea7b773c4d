"""ME-MD (Zhang et al., IJCAI 2017) in plain NumPy: one sentence, one position at a time, equations as printed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.reference.layers import (
    Matrix,
    Vector,
    Vectors,
    Weights,
    additive_attention,
    gru,
    gru_cell,
    linear,
    logits,
    sigmoid,
)


@dataclass
class MemdReference:
    """The whole model for one sentence.

    Attributes:
        weights: the model's state.
        encoders: "gru2", "cnn", ….
        seen: after :meth:`score` the attention of every decoder: T vectors of length S.
    """

    weights: Weights
    encoders: tuple[str, ...]
    seen: dict[str, list[Vector]] = field(default_factory=dict)

    def score(self, source: list[int], target: list[int]) -> Matrix:
        """Logits T x V."""
        w = self.weights
        features = self.decode(target, self.encode(source))
        return logits(features, w["output_weight"], w["output_bias"])

    def encode(self, source: list[int]) -> Vectors:
        """h_1 … h_m."""
        w = self.weights
        e = [w["source_embedding"][token] for token in source]
        outputs = []
        for name, encoder in zip(self.encoders, w.layers("encoders"), strict=True):
            outputs.append(eq10(encoder, e) if name == "cnn" else stacked(encoder, e))
        if len(outputs) == 1:
            return outputs[0]
        gates = w.layers("encoder_gates")
        gated = [
            [eq7(gate, x, o) for x, o in zip(e, own, strict=True)] for gate, own in zip(gates, outputs, strict=True)
        ]
        return [combine(w.under("encoder_output"), list(hs)) for hs in zip(*gated, strict=True)]

    def decode(self, target: list[int], h: Vectors) -> Vectors:
        """q_1 … q_n, before the softmax."""
        w = self.weights
        y = [w["target_embedding"][token] for token in target]
        outputs = []
        for index, decoder in enumerate(w.layers("decoders")):
            qs, weights = eq11(decoder, y, h)
            self.seen[f"decoder{index}.0.source0"] = weights
            outputs.append(qs)
        if len(outputs) == 1:
            return outputs[0]
        return [combine(w.under("decoder_output"), list(qs)) for qs in zip(*outputs, strict=True)]


def stacked(w: Weights, xs: Vectors) -> Vectors:
    """LGRU, RGRU, LGRU, … one upon another."""
    for index, layer in enumerate(w.layers("layers")):
        xs, _ = gru(layer, xs, reverse=index % 2 == 1)
    return xs


def eq7(w: Weights, e: Vector, o: Vector) -> Vector:
    """z = sigmoid(W_xz e + W_oz o + b_z);  h~ = tanh(W_xh e + W_oh o + b_h);  (1 - z) e + z h~."""
    e_z, e_h = np.split(linear(w.under("embedded"), e), 2)
    o_z, o_h = np.split(linear(w.under("encoded"), o), 2)
    z = sigmoid(e_z + o_z)
    return (1 - z) * e + z * np.tanh(e_h + o_h)


def combine(w: Weights, parts: Vectors) -> Vector:
    """eq. 9 and 13:  tanh(sum_k W_k h_k + b)."""
    width = len(parts[0])
    total = w["bias"].copy()
    for k, part in enumerate(parts):
        for i, row in enumerate(w["weight"][:, k * width : (k + 1) * width]):
            total[i] += (row * part).sum()
    combined: Vector = np.tanh(total)
    return combined


def eq10(w: Weights, xs: Vectors) -> Vectors:
    """p_i = tanh(W_f [x_{i-1} : x_i : x_{i+1}] + b), positions beyond the sentence being zeros."""
    padded = [np.zeros_like(xs[0]), *xs, np.zeros_like(xs[0])]
    return [np.tanh(linear(w.under("linear"), np.concatenate(padded[i : i + 3]))) for i in range(len(xs))]


def eq11(w: Weights, ys: Vectors, h: Vectors) -> tuple[Vectors, list[Vector]]:
    """The outputs q and the attention of one decoder; every initial state is 0."""
    first, *others = w.layers("layers")
    s = np.zeros_like(h[0])
    upper = [np.zeros_like(s) for _ in others]
    outputs, seen = [], []
    for y in ys:
        inner = gru_cell(first, y, s)
        for index, layer in enumerate(others):
            inner = upper[index] = gru_cell(layer, inner, upper[index])
        c, weights = additive_attention(w.under("attention"), inner, h)
        s = eq12(w.under("gate"), inner, c)
        outputs.append(linear(w.under("output"), np.concatenate([s, c, y])))
        seen.append(weights)
    return outputs, seen


def eq12(w: Weights, s: Vector, c: Vector) -> Vector:
    """z, r = sigmoid(W_c. c + W_s. s + b);  s' = tanh((W_ss s + b_ss) * r + W_cs c);  s z + s' (1 - z)."""
    s_z, s_r, s_s = np.split(linear(w.under("states"), s), 3)
    c_z, c_r, c_s = np.split(linear(w.under("contexts"), c), 3)
    z, r = sigmoid(c_z + s_z), sigmoid(c_r + s_r)
    return s * z + np.tanh(s_s * r + c_s) * (1 - z)
