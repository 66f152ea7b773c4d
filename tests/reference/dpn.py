"""DPN-S2S (Song et al., COLING 2018) in plain NumPy: one sentence, one position at a time, equations as printed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.reference.layers import (
    Matrix,
    Vector,
    Vectors,
    Weights,
    attention,
    feed_forward,
    gated_convolution,
    layer_norm,
    linear,
    logits,
    multi_head,
    self_attention,
    sigmoid,
)

ROOT_HALF = np.sqrt(0.5)


@dataclass
class DpnReference:
    """The whole model for one sentence.

    Attributes:
        weights: the model's state.
        kernel: width of the convolutions.
        heads: of the self-attention, and of the attention to the encoders where it has maps of its own.
        seen: after :meth:`score` the weights of every attention, by path, layer and source: T vectors of length S.
    """

    weights: Weights
    kernel: int
    heads: int
    seen: dict[str, list[Vector]] = field(default_factory=dict)

    def score(self, source: list[int], target: list[int]) -> Matrix:
        """Logits T x V."""
        paths = self.encode(source)
        features = self.decode(target, paths)
        return logits(features, self.weights["target_embedding"], self.weights["output_bias"])

    def encode(self, source: list[int]) -> dict[str, Vectors]:
        """Both encoder paths read word + position (section 3.1)."""
        w = self.weights
        e = [w["source_embedding"][token] + w["source_positions.table"][i] for i, token in enumerate(source)]
        paths: dict[str, Vectors] = {}
        if cnn := w.layers("cnn_encoder"):
            paths["cnn"] = e
            for layer in cnn:
                paths["cnn"] = cnn_encoder_layer(layer, paths["cnn"], self.kernel)
        if san := w.layers("san_encoder"):
            h = e
            for layer in san:
                h = san_encoder_layer(layer, h, self.heads)
            paths["san"] = [layer_norm(w.under("san_encoder_norm"), x) for x in h]
        return paths

    def decode(self, target: list[int], paths: dict[str, Vectors]) -> Vectors:
        """Both decoder paths read word + position; an output gate mixes them (section 3.3)."""
        w = self.weights
        g = [w["target_embedding"][token] + w["target_positions.table"][i] for i, token in enumerate(target)]
        decoded: list[Vectors] = []
        if cnn := w.layers("cnn_decoder"):
            x = g
            for index, layer in enumerate(cnn):
                x, weights = cnn_decoder_layer(layer, x, g, paths, self.kernel, self.heads)
                self._keep(f"cnn.{index}", weights)
            decoded.append(x)
        if san := w.layers("san_decoder"):
            x = g
            for index, layer in enumerate(san):
                x, weights = san_decoder_layer(layer, x, paths, self.heads)
                self._keep(f"san.{index}", weights)
            decoded.append([layer_norm(w.under("san_decoder_norm"), z) for z in x])
        if len(decoded) == 1:
            return decoded[0]
        return [eq10(w.under("output_gate"), z_c, z_a) for z_c, z_a in zip(*decoded, strict=True)]

    def _keep(self, layer: str, weights: list[dict[str, Vector]]) -> None:
        for name in weights[0]:
            self.seen[f"{layer}.{name}"] = [one[name] for one in weights]


def eq8(q: Vector, paths: dict[str, Vectors], scale: float) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """ctx_c. = Att(q, k_c, v_c) and ctx_.a = Att(q, k_a, v_a), keys and values being the encoder output itself."""
    attended = {name: attention(q, h, h, scale) for name, h in paths.items()}
    return {name: context for name, (context, _) in attended.items()}, {name: a for name, (_, a) in attended.items()}


def eq6(w: Weights, q: Vector, paths: dict[str, Vectors], heads: int) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """MH(q, k, v) on each path with its own W_k and W_v; the decoder layer has W_q and the map after the heads."""
    contexts, weights = {}, {}
    for number, (name, h) in enumerate(paths.items()):
        keys = [linear(w.under(f"keys.{number}"), x) for x in h]
        values = [linear(w.under(f"values.{number}"), x) for x in h]
        contexts[name], by_head = multi_head(q, keys, values, heads)
        weights[name] = np.mean(by_head, axis=0)
    return contexts, weights


def attend(
    w: Weights, q: Vector, paths: dict[str, Vectors], scale: float, heads: int
) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """eq. 8, with eq. 6 for eq. 4 where the layer has projections."""
    attention_weights = w.under("attention")
    if "keys.0.weight" in attention_weights:
        return eq6(attention_weights, q, paths, heads)
    return eq8(q, paths, scale)


def eq9(w: Weights, own: Vector, other: Vector) -> Vector:
    """g = sigmoid([own, other] W + b);  own (1 - g) + other g."""
    g = sigmoid(linear(w.under("linear"), np.concatenate([own, other])))
    return own * (1 - g) + other * g


def eq10(w: Weights, z_c: Vector, z_a: Vector) -> Vector:
    """g_o = sigmoid([z_c, z_a] W_o + b_o);  z_o = z_c (1 - g_o) + z_a g_o."""
    g_o = sigmoid(linear(w.under("linear"), np.concatenate([z_c, z_a])))
    return z_c * (1 - g_o) + z_a * g_o


def fuse(w: Weights, own: str, contexts: dict[str, Vector]) -> Vector:
    """eq. 9 with the decoder path's own encoder path first; with one encoder path there is nothing to mix."""
    if len(contexts) == 1:
        return next(iter(contexts.values()))
    other = "san" if own == "cnn" else "cnn"
    return eq9(w.under("attention.gate"), contexts[own], contexts[other])


def cnn_encoder_layer(w: Weights, xs: Vectors, kernel: int) -> Vectors:
    """(glu(conv_k(x)) + x) sqrt(1/2), zero padding of (k - 1) / 2 on both sides."""
    convolved = gated_convolution(w.under("convolution"), xs, kernel, before=(kernel - 1) // 2)
    return [(h + x) * ROOT_HALF for h, x in zip(convolved, xs, strict=True)]


def san_encoder_layer(w: Weights, xs: Vectors, heads: int) -> Vectors:
    """x += MH(LN x);  x += FFN(LN x)."""
    attended = self_attention(w.under("attention"), _norm(w, 0, xs), heads, causal=False)
    xs = [x + a for x, a in zip(xs, attended, strict=True)]
    return [x + feed_forward(w.under("feed_forward"), n) for x, n in zip(xs, _norm(w, 1, xs), strict=True)]


def cnn_decoder_layer(
    w: Weights, xs: Vectors, g: Vectors, paths: dict[str, Vectors], kernel: int, heads: int = 1
) -> tuple[Vectors, list[dict[str, Vector]]]:
    """Causal convolution h; q_c = (W_q h + b + g) sqrt(1/2); ((W_o ctx_c sqrt(S) + b + h) sqrt(1/2) + x) sqrt(1/2)."""
    length = len(next(iter(paths.values())))
    outputs, seen = [], []
    for x, h, g_i in zip(xs, gated_convolution(w.under("convolution"), xs, kernel, before=kernel - 1), g, strict=True):
        q_c = (linear(w.under("query"), h) + g_i) * ROOT_HALF
        contexts, weights = attend(w, q_c, paths, 1.0, heads)
        ctx_c = fuse(w, "cnn", contexts)
        attended = linear(w.under("output"), ctx_c * np.sqrt(length))
        outputs.append(((attended + h) * ROOT_HALF + x) * ROOT_HALF)
        seen.append(weights)
    return outputs, seen


def san_decoder_layer(
    w: Weights, xs: Vectors, paths: dict[str, Vectors], heads: int
) -> tuple[Vectors, list[dict[str, Vector]]]:
    """x += MH(LN x);  q_a = W_q LN x, logits over sqrt(d), x += W_o ctx_a;  x += FFN(LN x)."""
    attended = self_attention(w.under("self_attention"), _norm(w, 0, xs), heads, causal=True)
    outputs, seen = [], []
    for x, a in zip(xs, attended, strict=True):
        x = x + a
        q_a = linear(w.under("query"), layer_norm(w.under("norms.1"), x))
        contexts, weights = attend(w, q_a, paths, 1 / np.sqrt(len(x)), heads)
        x = x + linear(w.under("output"), fuse(w, "san", contexts))
        outputs.append(x + feed_forward(w.under("feed_forward"), layer_norm(w.under("norms.2"), x)))
        seen.append(weights)
    return outputs, seen


def _norm(w: Weights, index: int, xs: Vectors) -> Vectors:
    return [layer_norm(w.under(f"norms.{index}"), x) for x in xs]
