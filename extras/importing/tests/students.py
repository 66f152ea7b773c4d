"""Small students in the form of Firefox's: random levels, and what they compute written down a second time."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from tandem.extras.importing.tests.support import ENGLISH, GERMAN
from tandem.extras.proofs.shapes import sentencepiece_model
from tests.reference.layers import sigmoid, sinusoids, softmax

Array = NDArray[Any]
CONFIG: dict[str, Any] = {
    "type": "transformer",
    "dim-emb": 16,
    "enc-depth": 2,
    "dec-depth": 2,
    "transformer-heads": 2,
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "relu",
    "transformer-ffn-depth": 2,
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "transformer-guided-alignment-layer": "last",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "tied-embeddings-all": True,
    "layer-normalization": False,
    "version": "v1.9",
}
TYPES = 150
FIRST, EOS = 5, 0  # how many of the first ids every sentence may use; the end's id


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """A matrix of 8 bits, inputs x outputs (tables: rows x width), and the multiplier of its weights."""

    levels: Array
    multiplier: float

    @property
    def values(self) -> Array:
        return self.levels / np.float32(self.multiplier)


def binary(arrays: Mapping[str, Array | Rounded], config: Mapping[str, Any], gap: int = 24) -> bytes:
    """A file of Marian's, as its converter writes it."""
    items = [(name, *_stored(name, one)) for name, one in arrays.items()]
    text = yaml.safe_dump(dict(config)).encode() + b"\x00"
    items.append(("special:model.yml", 0x101, (len(text),), text))
    made = struct.pack("<2Q", 1, len(items))
    made += b"".join(struct.pack("<4Q", len(n) + 1, kind, len(shape), len(data)) for n, kind, shape, data in items)
    made += b"".join(name.encode() + b"\x00" for name, *_ in items)
    made += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    return made + struct.pack("<Q", gap) + bytes(gap) + b"".join(data for *_, data in items)


def _stored(name: str, one: Array | Rounded) -> tuple[int, tuple[int, ...], bytes]:
    if isinstance(one, Rounded):
        levels = one.levels if name.endswith("Wemb") else one.levels.T
        data = np.ascontiguousarray(levels).tobytes() + struct.pack("<f", one.multiplier)
        return 0x4101, one.levels.shape, data + bytes(-len(data) % 256)
    data = one.astype("<f4").tobytes()
    return 0x404, one.shape, data + bytes(-len(data) % 256)


def student_arrays(config: Mapping[str, Any] = CONFIG, *, types: Sequence[int] = (TYPES,), seed: int = 1) -> Any:
    """Random arrays under Marian's names; two numbers of types are those of two vocabularies."""
    rng = np.random.default_rng(seed)
    d, f = config["dim-emb"], config["transformer-dim-ffn"]
    made: dict[str, Array | Rounded] = {}

    def rounded(inputs: int, outputs: int, size: float) -> Rounded:
        values = rng.normal(size=(inputs, outputs)) * size
        multiplier = 127 / np.abs(values).max()
        return Rounded(np.rint(values * multiplier).astype(np.int8), float(np.float32(multiplier)))

    def number(value: float) -> Array:
        return np.full((1, 1), value, np.float32)

    def product(name: str, inputs: int, outputs: int, bias: str = "", alpha: float = 30.0) -> None:
        made[name] = rounded(inputs, outputs, 0.4)
        made[f"{name}_QuantMultA"] = number(alpha)
        if bias:
            made[bias] = rng.normal(size=(1, outputs)).astype(np.float32) * np.float32(0.3)

    def norm(name: str) -> None:
        made[f"{name}_ln_scale"] = 1 + rng.normal(size=(1, d)).astype(np.float32) * np.float32(0.3)
        made[f"{name}_ln_bias"] = rng.normal(size=(1, d)).astype(np.float32) * np.float32(0.3)

    def attention(name: str) -> None:
        for part in "qkvo":
            product(f"{name}_W{part}", d, d, f"{name}_b{part}", 20.0 if part in "qkv" else 25.0)
        norm(f"{name}_Wo")

    for side, own in zip(("",) if len(types) == 1 else ("encoder_", "decoder_"), types, strict=True):
        made[f"{side}Wemb"] = rounded(own, d, 0.25)
        made[f"{side}Wemb_QuantMultA"] = Rounded(np.zeros((1, 1), np.int8), math.nan)  # junk, in real files too
    made["none_QuantMultA"] = number(35.0)
    bias = rng.normal(size=(1, types[-1])).astype(np.float32) * np.float32(0.3)
    bias[0, EOS] += 2.0
    made["decoder_ff_logit_out_b"] = bias
    for side in ("encoder", "decoder"):
        for layer in range(1, config[f"{side[:3]}-depth"] + 1):
            own_layer = f"{side}_l{layer}"
            if side == "encoder":
                attention(f"{own_layer}_self")
            else:
                product(f"{own_layer}_rnn_W", d, d)
                product(f"{own_layer}_rnn_Wf", d, d, f"{own_layer}_rnn_bf")
                norm(f"{own_layer}_rnn_ffn")
                attention(f"{own_layer}_context")
            product(f"{own_layer}_ffn_W1", d, f, f"{own_layer}_ffn_b1")
            product(f"{own_layer}_ffn_W2", f, d, f"{own_layer}_ffn_b2")
            norm(f"{own_layer}_ffn_ffn")
    return made


def lexical(rows: Sequence[Sequence[int]], first: int = FIRST) -> bytes:
    """A shortlist of Marian's."""
    offsets = np.cumsum([0, *map(len, rows)]).astype("<u8")
    ids = np.array([one for row in rows for one in row], "<u4")
    header = struct.pack("<6Q", 0xF11A48D5013417F5, 0, first, 50, len(offsets), len(ids))
    return header + offsets.tobytes() + ids.tobytes()


def lexical_rows(source: int = TYPES, target: int = TYPES) -> list[list[int]]:
    """Three target pieces for each source piece but the first two."""
    return [[] if token < 2 else sorted({(token * k + k) % target for k in (1, 7, 11)}) for token in range(source)]


def write_student(
    folder: Path, arrays: Mapping[str, Array | Rounded] | None = None, *, split: bool = False, **changed: Any
) -> Mapping[str, Array | Rounded]:
    """A whole folder, with one vocabulary or two; its arrays are returned."""
    folder.mkdir(parents=True, exist_ok=True)
    config = CONFIG | ({"tied-embeddings-all": False, "tied-embeddings": True} if split else {}) | changed
    sides = (
        (("srcvocab", ENGLISH, TYPES), ("trgvocab", GERMAN, 130)) if split else (("vocab", ENGLISH + GERMAN, TYPES),)
    )
    for name, lines, types in sides:
        model = sentencepiece_model(lines, types, eos_id=0, unk_id=1, bos_id=-1)
        (folder / f"{name}.ende.spm").write_bytes(model)
    sizes = [types for _, _, types in sides]
    arrays = arrays or student_arrays(config, types=sizes)
    (folder / "model.ende.intgemm.alphas.bin").write_bytes(binary(arrays, config))
    (folder / "lex.50.50.ende.s2t.bin").write_bytes(lexical(lexical_rows(sizes[0], sizes[-1])))
    table = {"relative-paths": True, "beam-size": 1, "normalize": 1.0, "max-length-factor": 2.5, "word-penalty": 0}
    (folder / "config.intgemm8bitalpha.yml").write_text(yaml.safe_dump(table), encoding="utf-8")
    return arrays


@dataclass
class Restated:
    """What a student computes in float32 weights, one position at a time, by Marian's names and ids."""

    arrays: Mapping[str, Array | Rounded]
    heads: int = 2

    def __getitem__(self, name: str) -> Array:
        one = self.arrays[name]
        values = one.values if isinstance(one, Rounded) else one
        return np.asarray(values, np.float64)

    def logits(self, source: Sequence[int], target: Sequence[int]) -> Array:
        """T x V after nothing, and after each of the target's ids."""
        d = self._table("encoder").shape[1]
        memory = self._embedded(source)
        for layer in range(1, 3):
            own = f"encoder_l{layer}"
            attended = [self._attention(f"{own}_self", x, memory) for x in memory]
            memory = [self._norm(f"{own}_self_Wo", x + y) for x, y in zip(memory, attended, strict=True)]
            memory = [self._feed_forward(own, x) for x in memory]
        cells = [np.zeros(d) for _ in range(2)]
        rows = []
        for position, token in enumerate([None, *target]):
            start = np.zeros(d) if token is None else self._table("decoder")[token] * math.sqrt(d)
            x = start + sinusoids(position + 1, d, "tensor2tensor")[position]
            for layer in range(1, 3):
                own = f"decoder_l{layer}"
                forget = sigmoid(x @ self[f"{own}_rnn_Wf"] + self[f"{own}_rnn_bf"][0])
                cells[layer - 1] = forget * cells[layer - 1] + (1 - forget) * (x @ self[f"{own}_rnn_W"])
                x = self._norm(f"{own}_rnn_ffn", x + np.maximum(0, cells[layer - 1]))
                x = self._norm(f"{own}_context_Wo", x + self._attention(f"{own}_context", x, memory))
                x = self._feed_forward(own, x)
            rows.append(self._table("decoder") @ x + self["decoder_ff_logit_out_b"][0])
        return np.stack(rows)

    def _table(self, side: str) -> Array:
        return self["Wemb" if "Wemb" in self.arrays else f"{side}_Wemb"]

    def _embedded(self, ids: Sequence[int]) -> list[Array]:
        table = self._table("encoder")
        d = table.shape[1]
        places = sinusoids(len(ids), d, "tensor2tensor")
        return [table[token] * math.sqrt(d) + place for token, place in zip(ids, places, strict=True)]

    def _map(self, name: str, part: str, x: Array) -> Array:
        mapped: Array = x @ self[f"{name}_W{part}"] + self[f"{name}_b{part}"][0]
        return mapped

    def _attention(self, name: str, x: Array, memory: Sequence[Array]) -> Array:
        query = self._map(name, "q", x)
        keys, values = (np.stack([self._map(name, part, h) for h in memory]) for part in "kv")
        size = len(query) // self.heads
        parts = [slice(head * size, (head + 1) * size) for head in range(self.heads)]
        contexts = [softmax(keys[:, p] @ query[p] / math.sqrt(size)) @ values[:, p] for p in parts]
        return self._map(name, "o", np.concatenate(contexts))

    def _feed_forward(self, own: str, x: Array) -> Array:
        inner = np.maximum(0, self._map(f"{own}_ffn", "1", x))
        return self._norm(f"{own}_ffn_ffn", x + self._map(f"{own}_ffn", "2", inner))

    def _norm(self, name: str, x: Array) -> Array:
        normed = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        scaled: Array = normed * self[f"{name}_ln_scale"][0] + self[f"{name}_ln_bias"][0]
        return scaled
