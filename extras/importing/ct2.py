"""CTranslate2's folders, and Argos Translate's packages, which hold one.

    model.bin                              named variables, 8-bit ones with a scale for each row, and aliases
    config.json                            names of special tokens, and what a source begins and ends with
    shared_vocabulary.json, or source_vocabulary.json and target_vocabulary.json (older: .txt)
    source.spm and target.spm, or sentencepiece.model    not CTranslate2's own: what cuts text into the tokens

An Argos package is a folder with ``metadata.json`` and ``sentencepiece.model`` around such a folder, ``model``. Source
of the format: CTranslate2's public code, which writes and reads it.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from tandem.extras.importing.fields import Fields, read_table
from tandem.extras.importing.languages import languages_of, tags_of
from tandem.extras.importing.model import BIASES, Asked, ForeignModel, Types, arranged
from tandem.extras.importing.pieces import mapped_vocabulary
from tandem.extras.importing.plan import NEVER, ParameterPlan, Plan, TensorPart, part
from tandem.extras.importing.tensors import Tensors
from tandem.models.architectures.layers.attention import Activation
from tandem.models.architectures.layers.embedding import Sinusoids, sinusoids
from tandem.models.architectures.transformer import TransformerConfig
from tandem.models.search import SearchOptions
from tandem.models.vocabulary import BOS, PAD

CT2, ARGOS = "CTranslate2", "Argos Translate package"
_VERSION = 6
_TYPES: tuple[tuple[str, int], ...] = (("<f4", 4), ("i1", 1), ("<i2", 2), ("<i4", 4), ("<f2", 2), ("<u2", 2))
_BFLOAT16 = 5
_ACTIVATIONS: Mapping[str, Activation] = {"0": "relu", "2": "swish", "3": "gelu"}
_SINUSOIDS: tuple[tuple[Sinusoids, int], ...] = tuple(
    (kind, first) for kind in ("sinusoidal", "halves", "tensor2tensor") for first in (0, 1, 2)
)
_WITHOUT_MEANING = ("alignment_layer", "alignment_heads", "embeddings_merge", "multi_query_attention")


class Ct2Tensors(Tensors):
    """The variables of a ``model.bin``, mapped into memory.

    Attributes:
        scalars: those that are single numbers, which are its configuration.
        aliases: other names of variables.

    Raises:
        ValueError: not such a file, one of another version, or of something else than a Transformer.
    """

    def __init__(self, path: Path) -> None:
        self.files = (path,)
        try:
            self._content = np.memmap(path, np.uint8, "r")
            self._read()
        except (OSError, ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name} is not a readable model of CTranslate2: {error}") from error

    def _read(self) -> None:
        self._place = 0
        (version,) = self._numbers("<I")
        if version != _VERSION:
            raise ValueError(f"its version must be {_VERSION}, but is {version}; convert it anew")
        kind = self._text()
        if kind != "TransformerSpec":
            raise ValueError(f"it must be a TransformerSpec, but is {kind!r}")
        self._numbers("<I")  # the revision of that kind
        variables: dict[str, tuple[tuple[int, ...], int, int]] = {}
        for _ in range(self._numbers("<I")[0]):
            name, rank = self._text(), self._numbers("<B")[0]
            shape = self._numbers(f"<{rank}I")
            kind_id, size = self._numbers("<BI")
            if kind_id >= len(_TYPES) or size != _TYPES[kind_id][1] * math.prod(shape):
                raise ValueError(f"{name} must have {math.prod(shape)} numbers of a known type, but has {size} bytes")
            if self._place + size > len(self._content):
                raise ValueError(f"it ends within {name}")
            variables[name] = (shape, kind_id, self._place)
            self._place += size
        self.aliases = {self._text(): self._text() for _ in range(self._numbers("<I")[0])}
        self._variables = variables | {one: variables[name] for one, name in self.aliases.items() if name in variables}
        self.scalars = {name: self._array(name).item() for name, (shape, *_) in self._variables.items() if not shape}
        self.shapes = {
            name: shape
            for name, (shape, *_) in self._variables.items()
            if shape and not name.endswith(("/weight_scale", "/weight_zero"))
        }

    def _numbers(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        found = struct.unpack(form, self._content[self._place : self._place + size].tobytes())
        self._place += size
        return found

    def _text(self) -> str:
        (length,) = self._numbers("<H")
        text = self._content[self._place : self._place + length].tobytes().rstrip(b"\x00").decode()
        self._place += length
        return text

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        shape, kind, place = self._variables[name]
        form, size = _TYPES[kind]
        raw = self._content[place : place + size * math.prod(shape)].tobytes()
        array: np.ndarray[Any, Any] = np.frombuffer(raw, form).reshape(shape)
        if kind == _BFLOAT16:  # the upper half of a float32
            array = (array.astype("<u4") << np.uint32(16)).view("<f4")
        return array

    def read(self, name: str) -> Tensor:
        own = self.aliases.get(name, name)
        array = self._array(own).astype(np.float32)
        if (scale := f"{own}_scale") in self._variables:  # of a whole matrix, or of each row
            factors = self._array(scale).astype(np.float32)
            array = array / (factors.reshape(-1, 1) if factors.size == len(array) else factors)
        return torch.from_numpy(np.ascontiguousarray(array))

    def same(self, one: str, other: str) -> bool:
        """Whether two names are of one variable."""
        return self.aliases.get(one, one) == self.aliases.get(other, other)


def read_argos(folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A folder of an Argos package. See :func:`read_ct2`."""
    table = read_table(folder / "metadata.json", faults)
    if table.get("target_prefix"):
        faults.append("metadata.json: target_prefix must be empty: models of several targets are not supported")
    codes = [(one,) if isinstance(one := table.get(f"{side}_code"), str) else () for side in ("from", "to")]
    known = Asked(asked.sources or codes[0], asked.targets or codes[1], asked.tags, asked.ignored)
    pieces = folder / "sentencepiece.model"
    return _read(folder / "model", (pieces, pieces), ARGOS, known, faults)


def read_ct2(folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A folder of CTranslate2's, understood and checked but for its weights' values.

    Args:
        folder: holds the files.
        asked: what the user says.
        faults: every reason why it cannot be imported is added.

    Returns:
        None where there are faults.
    """
    shared = folder / "sentencepiece.model"
    pieces = (shared, shared) if shared.is_file() else (folder / "source.spm", folder / "target.spm")
    return _read(folder, pieces, CT2, asked, faults)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Names of special tokens, and what sources begin and end with."""

    unk: str
    eos: str
    start: str
    before: tuple[str, ...]
    ends: bool


def _read(folder: Path, pieces: tuple[Path, Path], form: str, asked: Asked, faults: list[str]) -> ForeignModel | None:
    tokens = _special(read_table(folder / "config.json", faults), faults, asked.ignored)
    try:
        tensors = Ct2Tensors(folder / "model.bin")
    except ValueError as error:
        faults.append(str(error))
        return None
    zeros = tensors.scalars.get("decoder/start_from_zero_embedding", 0) == 1
    common = _transformer(tensors, faults, asked.ignored)
    names = [_names(folder, side, faults) for side in ("source", "target")]
    types = [_types(one, tokens, zeros=zeros, faults=faults) for one in names]
    sources, targets = languages_of(folder, {}, asked, faults)
    tags, languages = tags_of(names[0], targets, asked, faults)
    silent = {*tags, tokens.start, "<s>", "<blank>", "<pad>"}
    made = [
        mapped_vocabulary(path, one, faults, silent=silent, languages=languages, before=before)
        for path, one, before in zip(pieces, types, (tokens.before, ()), strict=True)
    ]
    if faults or types[0] is None or types[1] is None:
        return None
    source, target = made
    assert source is not None and target is not None  # else there was a fault
    shared = names[0] == names[1] and tensors.same("encoder/embeddings_0/weight", "decoder/embeddings/weight")
    reused = tensors.same("decoder/projection/weight", "decoder/embeddings/weight")
    tied: Literal["none", "decoder", "all"] = "all" if shared and reused else "decoder" if reused else "none"
    config = TransformerConfig((source.size,), target.size, tied=tied, reads_end=tokens.ends, **common)
    return ForeignModel(
        form=form,
        config=config,
        plan=_plan(config, types[0], types[1]),
        tensors=tensors,
        beside=_beside(config),
        files=tuple(dict.fromkeys(pieces)),
        source=source,
        target=target,
        sources=sources,
        targets=targets,
        tags="target" if languages else "",
        decoding=SearchOptions(max_length=common["max_positions"] - 2, max_length_ratio=3.0, suppressed=(PAD, BOS)),
    )


def _special(table: Mapping[str, Any], faults: list[str], waived: Sequence[str]) -> _Tokens:
    fields = Fields(table, "config.json", faults, waived)
    epsilon = fields.take("layer_norm_epsilon")
    if epsilon is not None and abs(epsilon - 1e-5) > 1e-6:
        fields.refuse(f"layer_norm_epsilon must be 1e-05, but is {epsilon}")
    fields.fixed(multi_query_attention=False, quantization_type=None, quantization_bits=None)
    fields.without_meaning("quantization_group_size")
    bos = str(fields.take("bos_token", "<s>"))
    found = _Tokens(
        unk=str(fields.take("unk_token", "<unk>")),
        eos=str(fields.take("eos_token", "</s>")),
        start=str(fields.take("decoder_start_token", "<s>")),
        before=(bos,) if fields.flag("add_source_bos", False) else (),
        ends=fields.flag("add_source_eos", False),
    )
    fields.finish()
    return found


def _transformer(tensors: Ct2Tensors, faults: list[str], waived: Sequence[str]) -> dict[str, Any]:
    """The configuration by our names, as both sides agree on it; the vocabularies are left open."""
    sides = [_side(tensors, side, faults, waived) for side in ("encoder", "decoder")]
    for name, value in sides[0].items():
        if sides[1][name] != value:
            faults.append(f"model.bin: {name} must be the same on both sides, but is {value} and {sides[1][name]}")
    known = {*(f"encoder/{name}" for name in sides[0]["known"]), *(f"decoder/{name}" for name in sides[1]["known"])}
    own = {name: value for name, value in tensors.scalars.items() if name not in known}
    fields = Fields(own, "model.bin", faults, waived)
    fields.finish()
    embedding = tensors.shapes.get("decoder/embeddings/weight", (0, 2))
    inner = tensors.shapes.get("encoder/layer_0/ffn/linear_0/weight", (1, 0))
    layers = {side: _count(tensors, f"{side}/layer_") for side in ("encoder", "decoder")}
    return {
        **BIASES,
        **{name: value for name, value in sides[0].items() if name != "known"},
        **_positions(tensors, faults),
        "width": embedding[-1],
        "hidden": inner[0],
        "encoder_layers": max(1, layers["encoder"]),
        "decoder_layers": max(1, layers["decoder"]),
        "embedding_norm": "encoder/layernorm_embedding/gamma" in tensors.shapes,
        "attention_bias": "encoder/layer_0/self_attention/linear_0/bias" in tensors.shapes,
        "hidden_bias": "encoder/layer_0/ffn/linear_0/bias" in tensors.shapes,
    }


def _side(tensors: Ct2Tensors, side: str, faults: list[str], waived: Sequence[str]) -> dict[str, Any]:
    table = {name.removeprefix(f"{side}/"): value for name, value in tensors.scalars.items() if name.startswith(side)}
    fields = Fields(table, f"model.bin {side}", faults, waived)
    fields.fixed(alibi=0, alibi_use_positive_positions=0, scale_alibi=0, scale_outputs=0, multi_query_attention=0)
    fields.fixed(final_logit_softcapping=0, layer_norm_use_residual=0)
    scale = fields.take("scale_embeddings", 1)
    root = math.sqrt(tensors.shapes.get("decoder/embeddings/weight", (1,))[-1])
    factor = scale if isinstance(scale, float) else (1.0, root)[bool(scale)]  # a whole number only says whether
    if not any(math.isclose(factor, known, rel_tol=1e-6) for known in (1.0, root)):
        fields.refuse(f"scale_embeddings must be 1.0 or {root}, the root of the width, but is {factor}")
    activation = str(fields.take("activation", 0))
    return {
        "norm": "pre" if fields.take("pre_norm", 1) == 1 else "post",
        "heads": fields.number("num_heads"),
        "scale_embedding": factor != 1.0,
        "activation": Fields({"activation": activation}, f"model.bin {side}", faults, waived).choice(
            "activation", _ACTIVATIONS
        ),
        "known": frozenset(
            (
                *("alibi", "alibi_use_positive_positions", "scale_alibi", "scale_outputs", "final_logit_softcapping"),
                *("scale_embeddings", "activation", "pre_norm", "num_heads", "start_from_zero_embedding"),
                *("layer_norm_use_residual", *_WITHOUT_MEANING),
            )
        ),
    }


def _count(tensors: Ct2Tensors, prefix: str) -> int:
    numbers = {name.removeprefix(prefix).split("/")[0] for name in tensors.shapes if name.startswith(prefix)}
    return sum(number.isdecimal() for number in numbers)


def _positions(tensors: Ct2Tensors, faults: list[str]) -> dict[str, Any]:
    """The table of positions: one of ours where it is the same numbers, else as it is."""
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    if any(name not in tensors.shapes for name in names):
        faults.append("model.bin has no position_encodings: relative positions, or ones that are not stored")
        return {"positions": "none", "max_positions": 4}
    tables = [tensors.read(name) for name in names]
    length, width = tables[0].shape
    for kind, first in _SINUSOIDS:
        own = sinusoids(length, width, kind, first)
        if all(one.shape == own.shape and float((one - own).abs().max()) < 2e-3 for one in tables):
            return {"positions": kind, "first_position": first, "max_positions": length}
    return {"positions": "learned", "max_positions": length}


def _names(folder: Path, side: str, faults: list[str]) -> list[str]:
    """The tokens of a side by id."""
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        for path in (folder / f"{name}.json", folder / f"{name}.txt"):
            if not path.is_file():
                continue
            try:
                text = path.read_text(encoding="utf-8")
                tokens = json.loads(text) if path.suffix == ".json" else text.removesuffix("\n").split("\n")
            except (ValueError, RecursionError) as error:
                faults.append(f"{path.name} is not a list of tokens: {error}")
                return []
            if not isinstance(tokens, list) or not all(isinstance(one, str) for one in tokens):
                faults.append(f"{path.name} must be a list of tokens")
                return []
            return tokens
    faults.append(f"there is neither {side}_vocabulary.json nor shared_vocabulary.json")
    return []


def _types(names: list[str], tokens: _Tokens, *, zeros: bool, faults: list[str]) -> Types | None:
    wanted = [tokens.unk, tokens.eos, *(() if zeros else (tokens.start,))]
    missing = [one for one in wanted if names and one not in names]
    faults += [f"the list of tokens has no {one}" for one in missing]
    if missing or not names:
        return None
    pad = next((names.index(one) for one in ("<pad>", "<blank>") if one in names), None)
    start = None if zeros else names.index(tokens.start)
    return arranged(names, pad=pad, unk=names.index(tokens.unk), start=start, eos=names.index(tokens.eos))


def _plan(config: TransformerConfig, source: Types, target: Types) -> Plan:
    """How CTranslate2's variables become ours: maps of one input lie below one another in one matrix, as ours do."""
    output = part("decoder/projection/weight")
    plan: dict[str, ParameterPlan] = {
        "source_embedding": ParameterPlan(
            (part("encoder/embeddings_0/weight", "encoder/embeddings/weight"),), source.rows
        ),
        "target_embedding": ParameterPlan((part("decoder/embeddings/weight"),), target.rows),
        "output_weight": ParameterPlan((output,), target.output_rows),
        "output_bias": ParameterPlan((part("decoder/projection/bias"),), target.output_rows, NEVER, optional=True),
    }
    for side, ours in (("encoder", "source"), ("decoder", "target")):
        plan[f"{ours}_positions.table"] = ParameterPlan((part(f"{side}/position_encodings/encodings"),))
        plan |= _norm(f"{ours}_embedding_norm", f"{side}/layernorm_embedding")
        plan |= _norm(f"{side}_norm", f"{side}/layer_norm")
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            ours, theirs = f"{side}.{layer}", f"{side}/layer_{layer}"
            plan |= _map(f"{ours}.attention.query_key_value", f"{theirs}/self_attention/linear_0")
            plan |= _map(f"{ours}.attention.output", f"{theirs}/self_attention/linear_1")
            plan |= _map(f"{ours}.feed_forward.inner", f"{theirs}/ffn/linear_0")
            plan |= _map(f"{ours}.feed_forward.outer", f"{theirs}/ffn/linear_1")
            plan |= _norm(f"{ours}.norms.0", f"{theirs}/self_attention/layer_norm")
            plan |= _norm(f"{ours}.norms.{1 if side == 'encoder' else 2}", f"{theirs}/ffn/layer_norm")
            if side == "decoder":
                plan |= _map(f"{ours}.query", f"{theirs}/attention/linear_0")
                plan |= _map(f"{ours}.source_keys", f"{theirs}/attention/linear_1", (0, 2))
                plan |= _map(f"{ours}.source_values", f"{theirs}/attention/linear_1", (1, 2))
                plan |= _map(f"{ours}.output", f"{theirs}/attention/linear_2")
                plan |= _norm(f"{ours}.norms.1", f"{theirs}/attention/layer_norm")
    return plan


def _map(ours: str, theirs: str, piece: tuple[int, int] = (0, 1)) -> dict[str, ParameterPlan]:
    return {
        f"{ours}.{kind}": ParameterPlan((TensorPart((f"{theirs}/{kind}",), piece=piece),))
        for kind in ("weight", "bias")
    }


def _norm(ours: str, theirs: str) -> dict[str, ParameterPlan]:
    pairs = (("weight", "gamma"), ("bias", "beta"))
    return {f"{ours}.{kind}": ParameterPlan((part(f"{theirs}/{name}"),)) for kind, name in pairs}


def _beside(config: TransformerConfig) -> tuple[str, ...]:
    """Variables that repeat others, or that we compute."""
    names = ["decoder/projection/weight", "encoder/embeddings_0/weight", "encoder/embeddings/weight"]
    if config.positions != "learned":
        names += [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    return tuple(names)
