"""Marian's own files (Junczys-Dowmunt et al. 2018), in which OPUS-MT's models were first published.

    *.npz                        the weights, and the configuration as YAML in one of its arrays
    decoder.yml                  names the files where there are several, and says how to search; not needed
    vocab.spm, or one a side     sentencepiece models with their own ids; or
    *.vocab.yml, source.spm, target.spm  a list of pieces, and models that cut text into them

Positions are counted as in tensor2tensor, which Hugging Face's form of the same models only approximates; decoding
begins with a vector of zeros. Source of the names: marian-nmt's public code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from extras.importing.fields import Fields
from extras.importing.joint import sentencepiece_names
from extras.importing.model import BIASES, Asked, ForeignModel, Types, arranged
from extras.importing.opus import languages_of, tags_of
from extras.importing.pieces import mapped_vocabulary
from extras.importing.tensors import Tensors
from extras.importing.weights import NEVER, ParameterPlan, Plan, TensorPart, part
from models.architectures.layers.attention import Activation
from models.architectures.transformer import TransformerConfig
from models.errors import OptionError
from models.search import SearchOptions
from models.vocabulary import BOS, PAD

FORM = "Marian"
POSITIONS = 512  # sines and cosines have no last one; public models were trained on sentences of at most so many pieces
_CONFIG = "special:model.yml"
_ACTIVATIONS: Mapping[str, Activation] = {"relu": "relu", "swish": "swish"}  # its gelu is another function
_WITHOUT_MEANING = (
    *("version", "dim-rnn", "enc-cell", "enc-cell-depth", "enc-type", "dec-cell", "dec-cell-base-depth", "max-length"),
    *("dec-cell-high-depth", "dim-pooling", "original-type", "layer-normalization", "input-types"),
    *("transformer-dim-aan", "transformer-aan-activation", "transformer-aan-depth", "transformer-aan-nogate"),
    *("transformer-guided-alignment-layer", "transformer-depth-scaling", "transformer-postprocess-emb", "skip"),
    *("bert-mask-symbol", "bert-sep-symbol", "bert-class-symbol", "bert-masking-fraction", "bert-type-vocab-size"),
    *("bert-train-type-embeddings", "embedding-fix-src", "embedding-fix-trg", "char-conv-filters-num", "char-highway"),
    *("char-conv-filters-widths", "char-stride", "ulr-query-vectors", "ulr-keys-vectors", "ulr-dim-emb", "ulr-dropout"),
    *("ulr-softmax-temperature", "ulr-trainable-transformation", "transformer-no-affine", "factors-dim-emb"),
    *("transformer-flat-out", "lsh-num", "dim-vocabs", "tied-embeddings-src"),
)


def read_marian(folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A folder of Marian's files, understood and checked but for its weights' values.

    Args:
        folder: holds the files.
        asked: what the user says.
        faults: every reason why it cannot be imported is added.

    Returns:
        None where there are faults.
    """
    decoder = _yaml((folder / "decoder.yml").read_bytes(), "decoder.yml", faults) if _has(folder, "decoder.yml") else {}
    path = _weights_file(folder, decoder, faults)
    tensors = _opened(path, faults) if path else None
    if tensors is None:
        return None
    fields = Fields(tensors.config, f"{path.name if path else ''} {_CONFIG}", faults, asked.ignored)
    common = _transformer(fields)
    fields.finish()
    files = _vocabulary_files(folder, decoder, faults)
    types = [_types(names, faults) for _, names in files]
    sources, targets = languages_of(folder, {}, asked, faults)
    tags, languages = tags_of(types[0].names if types and types[0] else (), targets, asked, faults)
    made = [
        mapped_vocabulary(model, one, faults, silent=tags, languages=languages)
        for (model, _), one in zip(files, types, strict=True)
    ]
    options = _options(decoder, faults, asked.ignored)
    if faults or len(made) != 2 or types[0] is None or types[1] is None:
        return None
    source, target = made
    assert source is not None and target is not None  # else there was a fault
    if common["tied"] == "all" and types[0] != types[1]:
        faults.append("tied-embeddings-all needs one vocabulary, but there are two")
        return None
    config = TransformerConfig((source.size,), target.size, **common)
    return ForeignModel(
        form=FORM,
        config=config,
        plan=_plan(config, types[0], types[1]),
        tensors=tensors,
        beside=(_CONFIG, "Wpos"),
        files=tuple(dict.fromkeys(model for model, _ in files)),
        source=source,
        target=target,
        sources=sources,
        targets=targets,
        tags="target" if languages else "",
        decoding=options,
    )


class NpzTensors(Tensors):
    """The arrays of an ``.npz`` file, opened so that nothing but numbers is read.

    Attributes:
        config: what the file says of the model.

    Raises:
        ValueError: not such a file, or it says nothing of the model.
    """

    def __init__(self, path: Path) -> None:
        self.files = (path,)
        try:
            self._arrays = np.load(path, allow_pickle=False)
            read = {name: self._arrays[name].shape for name in self._arrays.files if name != _CONFIG}
            text = bytes(self._arrays[_CONFIG].astype(np.uint8)).rstrip(b"\x00")
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise ValueError(f"{path.name} is not a readable file of Marian's: {error}") from error
        self.shapes = {name: tuple(shape) for name, shape in read.items()}
        faults: list[str] = []
        self.config = _yaml(text, f"{path.name} {_CONFIG}", faults)
        if faults:
            raise ValueError("; ".join(faults))

    def read(self, name: str) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(self._arrays[name], np.float32))


def _has(folder: Path, name: str) -> bool:
    return (folder / name).is_file()


def _yaml(content: bytes, where: str, faults: list[str]) -> dict[str, Any]:
    try:
        table = yaml.safe_load(content.decode())
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        faults.append(f"{where} is not YAML: {str(error).splitlines()[0]}")
        return {}
    if not isinstance(table, dict):
        faults.append(f"{where} must be a table")
        return {}
    return {str(key): value for key, value in table.items()}


def _weights_file(folder: Path, decoder: Mapping[str, Any], faults: list[str]) -> Path | None:
    named = decoder.get("models")
    found = sorted(path.name for path in folder.glob("*.npz"))
    names = [str(name) for name in named] if isinstance(named, list) else found
    if len(names) != 1 or Path(names[0]).name not in found:
        faults.append(f"there must be one .npz file, or decoder.yml must name it, but there are {found or 'none'}")
        return None
    return folder / Path(names[0]).name


def _opened(path: Path, faults: list[str]) -> NpzTensors | None:
    try:
        return NpzTensors(path)
    except ValueError as error:
        faults.append(str(error))
        return None


def _transformer(fields: Fields) -> dict[str, Any]:
    """The configuration by our names; the vocabularies are left open."""
    fields.fixed(**{"type": "transformer", "transformer-decoder-autoreg": "self-attention", "transformer-ffn-depth": 2})
    fields.fixed(**{"transformer-no-projection": False, "transformer-train-position-embeddings": False, "ulr": False})
    fields.fixed(**{"transformer-train-positions": False, "transformer-pool": False, "output-omit-bias": False})
    fields.fixed(**{"transformer-no-bias": False, "lemma-dim-emb": 0, "factors-combine": "sum", "skip": False})
    fields.fixed(**{"transformer-tied-layers": [], "transformer-rnn-projection": False, "right-left": False})
    fields.fixed(**{"transformer-decoder-dim-ffn": 0, "transformer-decoder-ffn-depth": 0})
    before = fields.take("transformer-preprocess", "")
    after = (fields.take("transformer-postprocess", "dan"), fields.take("transformer-postprocess-top", ""))
    norms = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
    if (before, *after) not in norms:
        fields.refuse(
            f"transformer-preprocess, -postprocess and -postprocess-top must be {' or '.join(map(str, norms))}, but are"
            f" {(before, *after)}"
        )
    embedded = fields.take("transformer-postprocess-emb", "d")
    if embedded not in ("", "d", "n", "nd"):
        fields.refuse(f"transformer-postprocess-emb must be '', 'd', 'n' or 'nd', but is {embedded!r}")
    tied = "all" if fields.flag("tied-embeddings-all", False) else "none"
    tied = "decoder" if tied == "none" and fields.flag("tied-embeddings", False) else tied
    fields.without_meaning(*_WITHOUT_MEANING, "tied-embeddings")
    return {
        "norm": norms.get((before, *after), "post"),
        "positions": "tensor2tensor",
        "max_positions": POSITIONS,
        "embedding_norm": "n" in str(embedded),
        "tied": tied,
        "width": fields.number("dim-emb", least=2),
        "hidden": fields.number("transformer-dim-ffn"),
        "heads": fields.number("transformer-heads"),
        "encoder_layers": fields.number("enc-depth"),
        "decoder_layers": fields.number("dec-depth"),
        "activation": fields.choice("transformer-ffn-activation", _ACTIVATIONS),
        "scale_embedding": True,
        **BIASES,
    }


def _vocabulary_files(folder: Path, decoder: Mapping[str, Any], faults: list[str]) -> list[tuple[Path, list[str]]]:
    """For source and target the sentencepiece model and the list of pieces."""
    named = decoder.get("vocabs")
    listed = [folder / Path(str(name)).name for name in named] if isinstance(named, list) else []
    if not listed:
        lists = sorted(folder.glob("*vocab*.yml")) or sorted(folder.glob("*vocab*.spm")) or sorted(folder.glob("*.spm"))
        listed = lists
    if len(listed) == 1:
        listed = listed * 2
    missing = [path.name for path in listed if not path.is_file()]
    if len(listed) != 2 or missing:
        what = f"{', '.join(missing)} is missing" if missing else f"found are {[path.name for path in listed]}"
        faults.append(f"there must be a vocabulary, or one for source and one for target (.yml or .spm); {what}")
        return []
    return [
        (path, sentencepiece_names(path)) if path.suffix == ".spm" else (folder / f"{side}.spm", _listed(path, faults))
        for path, side in zip(listed, ("source", "target"), strict=True)
    ]


def _listed(path: Path, faults: list[str]) -> list[str]:
    """The pieces of a YAML list by id. Every key is text: ``no`` and ``1`` are pieces."""
    try:
        table = yaml.load(path.read_bytes(), Loader=yaml.BaseLoader)  # nothing but strings
        ids = {int(token): str(piece) for piece, token in table.items()}
    except (yaml.YAMLError, AttributeError, ValueError, TypeError, RecursionError) as error:
        faults.append(f"{path.name} must map pieces to ids: {str(error).splitlines()[0]}")
        return []
    if sorted(ids) != list(range(len(ids))) or len(ids) != len(table):
        faults.append(f"{path.name} must give every piece an id of its own, from 0 on")
        return []
    return [ids[token] for token in range(len(ids))]


def _types(names: Sequence[str], faults: list[str]) -> Types | None:
    missing = [piece for piece in ("</s>", "<unk>") if names and piece not in names]
    faults += [f"the list of pieces has no {piece}" for piece in missing]
    if missing or not names:
        return None
    return arranged(list(names), pad=None, unk=names.index("<unk>"), start=None, eos=names.index("</s>"))


def _options(decoder: Mapping[str, Any], faults: list[str], waived: Sequence[str]) -> SearchOptions:
    fields = Fields(decoder, "decoder.yml", faults, waived)
    beam = fields.number("beam-size", 6)
    penalty = fields.real("normalize", 1.0)
    fields.fixed(**{"word-penalty": 0})
    factor = fields.real("max-length-factor", 3.0)
    try:
        return SearchOptions(
            beam_size=beam,
            length_penalty=penalty,
            max_length=POSITIONS - 2,
            max_length_ratio=factor,
            suppressed=(PAD, BOS),
        )
    except OptionError as error:
        faults.append(f"decoder.yml: {error}")
        return SearchOptions()


def _plan(config: TransformerConfig, source: Types, target: Types) -> Plan:
    """How Marian's weights become ours: its maps are stored inputs x outputs, its vectors as tables of one row."""
    target_table = part("Wemb", "decoder_Wemb")
    output = TensorPart(("decoder_ff_logit_out_W",), turned=True)
    plan: dict[str, ParameterPlan] = {
        "source_embedding": ParameterPlan((part("encoder_Wemb", "Wemb"),), source.rows),
        "target_embedding": ParameterPlan((target_table,), target.rows),
        "output_weight": ParameterPlan((output,), target.output_rows),
        "output_bias": ParameterPlan((part("decoder_ff_logit_out_b", flat=True),), target.output_rows, NEVER),
    }
    suffix = "_pre" if config.norm == "pre" else ""
    for side, ours in (("encoder", "source"), ("decoder", "target")):
        plan |= _norm(f"{ours}_embedding_norm", f"{side}_emb", "_pre")
        plan |= _norm(f"{side}_norm", f"{side}_top", "")
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            plan |= _layer(f"{side}.{layer}", f"{side}_l{layer + 1}", suffix, decoder=side == "decoder")
    return plan


def _layer(ours: str, theirs: str, suffix: str, *, decoder: bool) -> dict[str, ParameterPlan]:
    made = {
        **dict(_map(f"{ours}.attention.query_key_value", *(f"{theirs}_self_{{}}{name}" for name in "qkv"))),
        **dict(_map(f"{ours}.attention.output", f"{theirs}_self_{{}}o")),
        **dict(_map(f"{ours}.feed_forward.inner", f"{theirs}_ffn_{{}}1")),
        **dict(_map(f"{ours}.feed_forward.outer", f"{theirs}_ffn_{{}}2")),
        **_norm(f"{ours}.norms.0", f"{theirs}_self_Wo", suffix),
        **_norm(f"{ours}.norms.{2 if decoder else 1}", f"{theirs}_ffn_ffn", suffix),
    }
    if decoder:
        for own, name in (("query", "q"), ("source_keys", "k"), ("source_values", "v"), ("output", "o")):
            made |= dict(_map(f"{ours}.{own}", f"{theirs}_context_{{}}{name}"))
        made |= _norm(f"{ours}.norms.1", f"{theirs}_context_Wo", suffix)
    return made


def _map(ours: str, *theirs: str) -> Iterator[tuple[str, ParameterPlan]]:
    yield f"{ours}.weight", ParameterPlan(tuple(part(name.format("W"), turned=True) for name in theirs))
    yield f"{ours}.bias", ParameterPlan(tuple(part(name.format("b"), flat=True) for name in theirs))


def _norm(ours: str, theirs: str, suffix: str) -> dict[str, ParameterPlan]:
    pairs = (("weight", "scale"), ("bias", "bias"))
    return {f"{ours}.{kind}": ParameterPlan((part(f"{theirs}_ln_{name}{suffix}", flat=True),)) for kind, name in pairs}
