"""ConvS2S (Gehring et al., ICML 2017) in plain NumPy: one sentence, one position at a time, equations as printed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.reference.layers import Matrix, Vector, Vectors, Weights, gated_convolution, linear, logits, softmax

ROOT_HALF = np.sqrt(0.5)


@dataclass
class ConvS2SReference:
    """The whole model for one sentence.

    Attributes:
        weights: the model's state.
        encoder_kernels: convolution width of each encoder block.
        decoder_kernels: convolution width of each decoder block.
        seen: after :meth:`score` the attention of every decoder block that has one: T vectors of length S.
    """

    weights: Weights
    encoder_kernels: tuple[int, ...]
    decoder_kernels: tuple[int, ...]
    seen: dict[str, list[Vector]] = field(default_factory=dict)

    def score(self, source: list[int], target: list[int]) -> Matrix:
        """Logits T x V."""
        e = self.embed("source", source)
        z = self.encode(e)
        features = self.decode(self.embed("target", target), z, e)
        if "output_bias" in self.weights:  # tied: the output layer is the target's table
            return logits(features, self.weights["target_embedding"], self.weights["output_bias"])
        w = self.weights.under("output")
        return logits(features, effective(w), w["bias"])

    def embed(self, side: str, ids: list[int]) -> Vectors:
        """Section 3.1:  e_j = w_j + p_j, or w_j alone."""
        words = [self.weights[f"{side}_embedding"][token] for token in ids]
        if f"{side}_positions.table" not in self.weights:
            return words
        return [word + p for word, p in zip(words, self.weights[f"{side}_positions.table"], strict=False)]

    def encode(self, e: Vectors) -> Vectors:
        """Section 3.2: a linear map, the blocks, a linear map back to the width of the embeddings."""
        w = self.weights
        z = [linear(w.under("encoder_input"), x) for x in e]
        for layer, kernel in zip(w.layers("encoder"), self.encoder_kernels, strict=True):
            z = encoder_block(layer, z, kernel)
        return [linear(w.under("encoder_output"), x) for x in z]

    def decode(self, g: Vectors, z: Vectors, e: Vectors) -> Vectors:
        """Section 3.2 and 3.3: a linear map, the blocks, a linear map to the width of the output embeddings."""
        w = self.weights
        h = [linear(w.under("decoder_input"), x) for x in g]
        for index, (layer, kernel) in enumerate(zip(w.layers("decoder"), self.decoder_kernels, strict=True)):
            h, weights = decoder_block(layer, h, g, z, e, kernel)
            if weights:
                self.seen[f"decoder.{index}.source0"] = weights
        return [linear(w.under("decoder_output"), x) for x in h]


def encoder_block(w: Weights, z: Vectors, kernel: int) -> Vectors:
    """z^l = (glu(conv_k(z^{l-1})) + z^{l-1}) sqrt(1/2), (k - 1) // 2 zeros before and k // 2 after the sentence."""
    convolved = gated_convolution(w.under("convolution"), z, kernel, before=(kernel - 1) // 2)
    return [(h + residual(w, x)) * ROOT_HALF for h, x in zip(convolved, z, strict=True)]


def decoder_block(
    w: Weights, xs: Vectors, g: Vectors, z: Vectors, e: Vectors, kernel: int
) -> tuple[Vectors, list[Vector]]:
    """A causal convolution h, then ((W_c c + b_c + h) sqrt(1/2) + x) sqrt(1/2), or without attention (h + x) sqrt(1/2).

    Returns:
        The block's output and, where it attends, its weights.
    """
    outputs, seen = [], []
    for x, h, g_i in zip(xs, gated_convolution(w.under("convolution"), xs, kernel, before=kernel - 1), g, strict=True):
        if "query.weight" in w:
            a = eq1(w, h, g_i, z)
            c = eq2(a, z, e)
            h = (linear(w.under("context"), c) + h) * ROOT_HALF
            seen.append(a)
        outputs.append((h + residual(w, x)) * ROOT_HALF)
    return outputs, seen


def eq1(w: Weights, h: Vector, g: Vector, z: Vectors) -> Vector:
    """d = (W_d h + b_d + g) sqrt(1/2);  a_j = exp(d . z_j) / sum_t exp(d . z_t)."""
    d = (linear(w.under("query"), h) + g) * ROOT_HALF
    return softmax(np.array([(d * z_j).sum() for z_j in z]))


def eq2(a: Vector, z: Vectors, e: Vectors) -> Vector:
    """c = sum_j a_j (z_j + e_j) sqrt(1/2), times m sqrt(1/m) for a source of m positions (section 3.4)."""
    c = np.zeros_like(z[0])
    for a_j, z_j, e_j in zip(a, z, e, strict=True):
        c = c + a_j * (z_j + e_j) * ROOT_HALF
    m = len(z)
    scaled: Vector = c * (m * np.sqrt(1 / m))
    return scaled


def residual(w: Weights, x: Vector) -> Vector:
    """The block's input, through a linear map where the block changes the width."""
    return linear(w.under("residual"), x) if "residual.weight" in w else x


def effective(w: Weights) -> Matrix:
    """The weight itself or, weight-normalised, with row i being g_i v_i / |v_i| (Salimans and Kingma 2016)."""
    if "gain" not in w:
        return w["weight"]
    return np.stack([g * v / np.sqrt((v * v).sum()) for g, v in zip(w["gain"], w["weight"], strict=True)])
