"""The equations that two architectures share, in plain NumPy: float64, one sentence and one position at a time.

Nothing here is imported from the package, and nothing is batched, padded, masked or cached: a sequence is a list of
vectors, and what may be seen is what is passed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Vectors = list[Vector]


class Weights:
    """The tensors below one name of a model's state, in float64."""

    def __init__(self, tensors: Mapping[str, NDArray[np.float64]], prefix: str = "") -> None:
        self._tensors, self._prefix = tensors, prefix

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._tensors[self._prefix + name]

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._tensors

    def under(self, name: str) -> Weights:
        """The tensors whose name goes on with ``name.``."""
        return Weights(self._tensors, f"{self._prefix}{name}.")

    def layers(self, name: str) -> list[Weights]:
        """``name.0``, ``name.1``, … as far as there are any."""
        found: list[Weights] = []
        while any(key.startswith(f"{self._prefix}{name}.{len(found)}.") for key in self._tensors):
            found.append(self.under(f"{name}.{len(found)}"))
        return found


def sigmoid(x: Vector) -> Vector:
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x: Vector) -> Vector:
    """e^x_i / sum_j e^x_j."""
    powers: Vector = np.exp(x - x.max())
    return powers / np.sum(powers)


def glu(x: Vector) -> Vector:
    """a * sigmoid(b), a and b being the halves of x."""
    a, b = x[: len(x) // 2], x[len(x) // 2 :]
    return a * sigmoid(b)


def linear(w: Weights, x: Vector) -> Vector:
    """W x + b; weight-normalised, row i of W is g_i v_i / |v_i| (Salimans and Kingma 2016)."""
    y = np.zeros(len(w["weight"]))
    for i, row in enumerate(w["weight"]):
        if "gain" in w:
            row = w["gain"][i] * row / np.sqrt((row * row).sum())
        y[i] = (row * x).sum()
    return y + w["bias"] if "bias" in w else y


def layer_norm(w: Weights, x: Vector) -> Vector:
    """(x - mean) / sqrt(variance + 1e-5) * weight + bias (Ba et al. 2016)."""
    mean = x.sum() / len(x)
    variance = ((x - mean) ** 2).sum() / len(x)
    normed: Vector = (x - mean) / np.sqrt(variance + 1e-5) * w["weight"] + w["bias"]
    return normed


def attention(q: Vector, keys: Vectors, values: Vectors, scale: float = 1.0) -> tuple[Vector, Vector]:
    """eq. 4 of DPN-S2S:  softmax(q k^T) v, the logits times ``scale``; the context and the weights."""
    weights = softmax(np.array([(q * k).sum() for k in keys]) * scale)
    context = np.zeros_like(values[0])
    for weight, value in zip(weights, values, strict=True):
        context = context + weight * value
    return context, weights


def multi_head(q: Vector, keys: Vectors, values: Vectors, heads: int) -> tuple[Vector, list[Vector]]:
    """eq. 6 of DPN-S2S without its maps: each head attends in its own d / heads dimensions, scaled by their root."""
    size = len(q) // heads
    parts, weights = [], []
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        context, weight = attention(q[own], [k[own] for k in keys], [v[own] for v in values], 1 / np.sqrt(size))
        parts.append(context)
        weights.append(weight)
    return np.concatenate(parts), weights


def self_attention(w: Weights, xs: Vectors, heads: int, *, causal: bool) -> Vectors:
    """Multi-head self-attention; the query, key and value maps lie one below the other in one matrix."""
    width = len(xs[0])
    mapped = [linear(w.under("query_key_value"), x) for x in xs]
    queries, keys, values = ([m[k * width : (k + 1) * width] for m in mapped] for k in range(3))
    outputs = []
    for i, query in enumerate(queries):
        seen = i + 1 if causal else len(xs)
        outputs.append(linear(w.under("output"), multi_head(query, keys[:seen], values[:seen], heads)[0]))
    return outputs


def activated(x: Vector, name: str) -> Vector:
    """max(0, x); x times the chance that a normal number is at most x; x sigmoid(x)."""
    if name == "gelu":
        return np.array([value * 0.5 * (1.0 + math.erf(value / math.sqrt(2.0))) for value in x])
    return x * sigmoid(x) if name == "swish" else np.maximum(0.0, x)


def feed_forward(w: Weights, x: Vector, activation: str = "relu") -> Vector:
    """eq. 7 of DPN-S2S:  f_2(max(0, f_1(x))), or another function in the maximum's place."""
    return linear(w.under("outer"), activated(linear(w.under("inner"), x), activation))


def gated_convolution(w: Weights, xs: Vectors, kernel: int, before: int) -> Vectors:
    """glu(sum_k W_k x_{i - before + k} + b), positions beyond the sequence being zeros."""
    outputs = []
    for i in range(len(xs)):
        window = [xs[j] if 0 <= j < len(xs) else np.zeros_like(xs[0]) for j in range(i - before, i - before + kernel)]
        outputs.append(glu(linear(w.under("linear"), np.concatenate(window))))
    return outputs


def gru_cell(w: Weights, x: Vector, h: Vector) -> Vector:
    """z, r = sigmoid(W x + U h + b);  z h + (1 - z) n (Cho et al. 2014), n being tanh(W_n x + b_n + r * (U_n h)) or,
    where U_n is a map of its own, tanh(W_n x + b_n + U_n (r * h))."""
    x_z, x_r, x_n = np.split(linear(w.under("inputs"), x), 3)
    before = "candidate.weight" in w
    u_z, u_r, *u_n = np.split(linear(w.under("states"), h), 2 if before else 3)
    z, r = sigmoid(x_z + u_z), sigmoid(x_r + u_r)
    recurrent = linear(w.under("candidate"), r * h) if before else r * u_n[0]
    return z * h + (1 - z) * np.tanh(x_n + recurrent)


def gru(w: Weights, xs: Vectors, *, reverse: bool) -> tuple[Vectors, Vector]:
    """The state after each position, from zeros, left to right or right to left, and the one after the last read."""
    h = np.zeros(w["cell.states.weight"].shape[1])
    outputs = []
    for x in reversed(xs) if reverse else xs:
        h = gru_cell(w.under("cell"), x, h)
        outputs.append(h)
    return outputs[::-1] if reverse else outputs, h


def additive_attention(w: Weights, s: Vector, hs: Vectors) -> tuple[Vector, Vector]:
    """softmax(v^T tanh(W s + U h_j + b)) over the positions j (Bahdanau et al. 2015); the context and the weights."""
    query = linear(w.under("query"), s)
    energies = [linear(w.under("energy"), np.tanh(query + linear(w.under("source"), h)))[0] for h in hs]
    weights = softmax(np.array(energies))
    return np.sum([weight * h for weight, h in zip(weights, hs, strict=True)], axis=0), weights


def sinusoids(length: int, width: int, kind: str = "sinusoidal", first: int = 0) -> Matrix:
    """sin(pos / 10000^(2i / d)) and cos of the same angle: of pair i side by side, or all sines before all cosines.

    In the kind "tensor2tensor" 2i is divided by d - 2.
    """
    table = np.zeros((length, width))
    pairs = (width + 1) // 2
    for row in range(length):
        for i in range(pairs):
            angle = (first + row) / 10000.0 ** (2 * i / (width - 2 if kind == "tensor2tensor" else width))
            sine, cosine = (2 * i, 2 * i + 1) if kind == "sinusoidal" else (i, pairs + i)
            table[row, sine] = np.sin(angle)
            if cosine < width:
                table[row, cosine] = np.cos(angle)
    return table


def logits(features: Sequence[Vector], weight: Matrix, bias: Vector | None) -> Matrix:
    """W_s z + b_s of every position."""
    rows = [np.array([(row * z).sum() for row in weight]) for z in features]
    return np.stack(rows) if bias is None else np.stack(rows) + bias
