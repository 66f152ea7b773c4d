"""Marian's own files (Junczys-Dowmunt et al. 2018), in which OPUS-MT's models and Firefox's are published.

    *.npz or *.bin               the weights, and the configuration as YAML in one of its arrays
    decoder.yml, config*.yml     names the files where there are several, and says how to search; not needed
    vocab.spm, or one a side     sentencepiece models with their own ids; or
    *.vocab.yml, source.spm, target.spm  a list of pieces, and models that cut text into them
    *.s2t.bin                    a lexical shortlist; not needed

Positions are counted as in tensor2tensor, which Hugging Face's form of the same models only approximates; decoding
begins with a vector of zeros. Source of the names: marian-nmt's public code. Needs no PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tandem.extras.importing.fields import Fields
from tandem.extras.importing.languages import languages_of, tags_of
from tandem.extras.importing.lexical import read_lexical
from tandem.extras.importing.model import BIASES, Asked, Types, arranged
from tandem.extras.importing.pieces import mapped_vocabulary, sentencepiece_names
from tandem.extras.importing.plan import NEVER, ParameterPlan, Plan, TensorPart, part
from tandem.models.errors import OptionError
from tandem.models.search import SearchOptions
from tandem.models.search.shortlist import Shortlist
from tandem.models.vocabulary import BOS, PAD, UNK, MappedVocabulary

FORM = "Marian"
POSITIONS = 512  # sines and cosines have no last one; public models were trained on sentences of at most so many pieces
CONFIG = "special:model.yml"
BESIDE = (CONFIG, "Wpos")
"""Names of tensors that are not needed."""

_ACTIVATIONS: Mapping[str, str] = {"relu": "relu", "swish": "swish"}  # its gelu is another function
_HISTORIES: Mapping[str, str] = {"self-attention": "attention", "rnn": "ssru"}
_SPECIAL = re.compile(r"__[a-z0-9]+__")  # user-defined pieces of training
_WITHOUT_MEANING = (
    *("version", "dim-rnn", "enc-cell", "enc-cell-depth", "enc-type", "dec-cell-base-depth", "max-length"),
    *("dec-cell-high-depth", "dim-pooling", "original-type", "input-types"),
    *("transformer-dim-aan", "transformer-aan-activation", "transformer-aan-depth", "transformer-aan-nogate"),
    *("transformer-depth-scaling", "transformer-postprocess-emb", "skip"),
    *("bert-mask-symbol", "bert-sep-symbol", "bert-class-symbol", "bert-masking-fraction", "bert-type-vocab-size"),
    *("bert-train-type-embeddings", "embedding-fix-src", "embedding-fix-trg", "char-conv-filters-num", "char-highway"),
    *("char-conv-filters-widths", "char-stride", "ulr-query-vectors", "ulr-keys-vectors", "ulr-dim-emb", "ulr-dropout"),
    *("ulr-softmax-temperature", "ulr-trainable-transformation", "transformer-no-affine", "factors-dim-emb"),
    *("transformer-flat-out", "lsh-num", "dim-vocabs", "tied-embeddings-src"),
)
_LEXICAL = ".s2t.bin"
_MOST_LAYERS = 256


@dataclass(frozen=True, slots=True, eq=False)
class MarianFolder:
    """What a folder says beside its weights' values.

    Attributes:
        common: fields of our configuration, vocabularies among them.
        plan: how its weights become ours.
        files: that were read beside those of the weights.
        source, target: the vocabularies.
        sources, targets: language codes.
        tagged: whether a source begins with the tag of its language.
        decoding: defaults of the search.
        shortlist: the lexical one, where there is one.
    """

    common: dict[str, Any]
    plan: Plan
    files: tuple[Path, ...]
    source: MappedVocabulary
    target: MappedVocabulary
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    tagged: bool
    decoding: SearchOptions
    shortlist: Shortlist | None


def weights_files(folder: Path) -> list[Path]:
    """What may be the weights of a folder of Marian's."""
    found = [*folder.glob("*.npz"), *folder.glob("*.bin")]
    return sorted(path for path in found if not path.name.endswith(_LEXICAL))


def read_decoder(folder: Path, faults: list[str]) -> dict[str, Any]:
    """What says how to search, and which files to take; empty where nothing does."""
    found = [path for path in (folder / "decoder.yml", *sorted(folder.glob("config*.yml"))) if path.is_file()]
    return read_yaml(found[0].read_bytes(), found[0].name, faults) if found else {}


def read_folder(
    folder: Path, config: Mapping[str, Any], where: str, asked: Asked, faults: list[str]
) -> MarianFolder | None:
    """A folder of Marian's files, understood but for its weights.

    Args:
        folder: holds the files.
        config: what the weights' file says of the model.
        where: it says so, for messages.
        asked: what the user says.
        faults: every reason why it cannot be imported is added.

    Returns:
        None where there are faults.
    """
    decoder = read_decoder(folder, faults)
    fields = Fields(config, where, faults, asked.ignored)
    common = _transformer(fields)
    fields.finish()
    files = _vocabulary_files(folder, decoder, faults)
    types = [_types(names, faults) for _, names in files]
    sources, targets = languages_of(folder, {}, asked, faults)
    tags, languages = tags_of(types[0].names if types and types[0] else (), targets, asked, faults)
    made = [
        mapped_vocabulary(model, one, faults, silent=tags, languages=languages, unused=_special(one))
        for (model, _), one in zip(files, types, strict=True)
    ]
    student = common.get("history") == "ssru"
    options = _options(decoder, faults, asked.ignored, _OF_STUDENTS if student else _OF_MARIAN)
    if faults or len(made) != 2 or types[0] is None or types[1] is None:
        return None
    source, target = made
    assert source is not None and target is not None  # else there was a fault
    if common["tied"] == "all" and types[0] != types[1]:
        faults.append("tied-embeddings-all needs one vocabulary, but there are two")
        return None
    lexical = sorted(folder.glob(f"*{_LEXICAL}"))
    shortlist = _shortlist(lexical, types[0], types[1], faults)
    if faults:
        return None
    common |= {"source_vocabularies": (source.size,), "target_vocabulary": target.size}
    return MarianFolder(
        common=common,
        plan=_plan(common, types[0], types[1]),
        files=tuple(dict.fromkeys([*(model for model, _ in files), *lexical])),
        source=source,
        target=target,
        sources=sources,
        targets=targets,
        tagged=bool(languages),
        decoding=options,
        shortlist=shortlist,
    )


def _shortlist(found: Sequence[Path], source: Types, target: Types, faults: list[str]) -> Shortlist | None:
    if len(found) > 1:
        faults.append(f"there must be one shortlist at most, but there are {[path.name for path in found]}")
    if len(found) != 1:
        return None
    return read_lexical(found[0], source.rows, target.rows, faults)


def read_yaml(content: bytes, where: str, faults: list[str]) -> dict[str, Any]:
    try:
        table = yaml.safe_load(content.decode())
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        faults.append(f"{where} is not YAML: {str(error).splitlines()[0]}")
        return {}
    if not isinstance(table, dict):
        faults.append(f"{where} must be a table")
        return {}
    return {str(key): value for key, value in table.items()}


def chosen_weights(folder: Path, faults: list[str]) -> Path | None:
    """The file of the weights: the only one, or that which is named."""
    named = read_decoder(folder, []).get("models")
    found = [path.name for path in weights_files(folder)]
    names = [str(name) for name in named] if isinstance(named, list) else found
    if len(names) != 1 or Path(names[0]).name not in found:
        faults.append(
            f"there must be one .npz or .bin file, or decoder.yml must name it, but there are {found or 'none'}"
        )
        return None
    return folder / Path(names[0]).name


def _transformer(fields: Fields) -> dict[str, Any]:
    """The configuration by our names; the vocabularies are left open."""
    fields.fixed(**{"type": "transformer", "transformer-ffn-depth": 2})
    fields.fixed(**{"transformer-no-projection": False, "transformer-train-position-embeddings": False, "ulr": False})
    fields.fixed(**{"transformer-train-positions": False, "transformer-pool": False, "output-omit-bias": False})
    fields.fixed(**{"transformer-no-bias": False, "lemma-dim-emb": 0, "factors-combine": "sum", "skip": False})
    fields.fixed(**{"transformer-tied-layers": [], "transformer-rnn-projection": False, "right-left": False})
    fields.fixed(**{"transformer-decoder-dim-ffn": 0, "transformer-decoder-ffn-depth": 0})
    history = fields.choice("transformer-decoder-autoreg", _HISTORIES, "self-attention")
    if history == "ssru":  # else of recurrent models, and of training
        fields.choice("dec-cell", {"ssru": "ssru"}, "gru")
        fields.fixed(**{"layer-normalization": False, "transformer-guided-alignment-layer": "last"})
    fields.without_meaning("dec-cell", "layer-normalization", "transformer-guided-alignment-layer")
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
        "history": history,
        # Students are trained to align, others may be; which of them are, no file says.
        "guided_alignment": history == "ssru",
        "norm": norms.get((before, *after), "post"),
        "positions": "tensor2tensor",
        "max_positions": POSITIONS,
        "embedding_norm": "n" in str(embedded),
        "tied": tied,
        "width": fields.number("dim-emb", least=2),
        "hidden": fields.number("transformer-dim-ffn"),
        "heads": fields.number("transformer-heads"),
        "encoder_layers": fields.number("enc-depth", most=_MOST_LAYERS),
        "decoder_layers": fields.number("dec-depth", most=_MOST_LAYERS),
        "activation": fields.choice("transformer-ffn-activation", _ACTIVATIONS),
        "scale_embedding": True,
        **BIASES,
    }


def _vocabulary_files(folder: Path, decoder: Mapping[str, Any], faults: list[str]) -> list[tuple[Path, list[str]]]:
    """For source and target the sentencepiece model and the list of pieces."""
    named = decoder.get("vocabs")
    listed = [folder / Path(str(name)).name for name in named] if isinstance(named, list) else []
    if not listed:
        listed = next(
            (found for one in ("*vocab*.yml", "*vocab*.spm", "*.spm") if (found := sorted(folder.glob(one)))), []
        )
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


def _special(types: Types | None) -> list[str]:
    """Pieces such as ``__source__`` that training has for itself."""
    return [name for name in types.names if _SPECIAL.fullmatch(name)] if types is not None else []


_OF_MARIAN, _OF_STUDENTS = (6, 3.0), (1, 2.5)
"""Where the folder's YAML says nothing: beam and longest output for a token of the source. Students are trained for
greedy search, and published with these values or with none."""


def _options(
    decoder: Mapping[str, Any], faults: list[str], waived: Sequence[str], unsaid: tuple[int, float]
) -> SearchOptions:
    fields = Fields(decoder, "decoder.yml", faults, waived)
    beam = fields.number("beam-size", unsaid[0])
    penalty = fields.real("normalize", 1.0)
    fields.fixed(**{"word-penalty": 0})
    factor = fields.real("max-length-factor", unsaid[1])
    try:
        return SearchOptions(
            beam_size=beam,
            length_penalty=penalty,
            max_length=POSITIONS - 2,
            max_length_ratio=factor,
            suppressed=(PAD, UNK, BOS),
        )
    except OptionError as error:
        faults.append(f"decoder.yml: {error}")
        return SearchOptions()


def _plan(config: Mapping[str, Any], source: Types, target: Types) -> Plan:
    """How Marian's weights become ours: its maps are stored inputs x outputs, its vectors as tables of one row."""
    target_table = part("Wemb", "decoder_Wemb")
    output = TensorPart(("decoder_ff_logit_out_W",), turned=True)
    plan: dict[str, ParameterPlan] = {
        "source_embedding": ParameterPlan((part("encoder_Wemb", "Wemb"),), source.rows),
        "target_embedding": ParameterPlan((target_table,), target.rows),
        "output_weight": ParameterPlan((output,), target.output_rows),
        "output_bias": ParameterPlan((part("decoder_ff_logit_out_b", flat=True),), target.output_rows, NEVER),
    }
    suffix = "_pre" if config["norm"] == "pre" else ""
    for side, ours in (("encoder", "source"), ("decoder", "target")):
        plan |= _norm(f"{ours}_embedding_norm", f"{side}_emb", "_pre")
        plan |= _norm(f"{side}_norm", f"{side}_top", "")
    for side, layers in (("encoder", config["encoder_layers"]), ("decoder", config["decoder_layers"])):
        for layer in range(layers):
            plan |= _layer(f"{side}.{layer}", f"{side}_l{layer + 1}", suffix, decoder=side == "decoder")
    if config["history"] == "ssru":
        for layer in range(config["decoder_layers"]):
            plan = _with_unit(plan, f"decoder.{layer}", f"decoder_l{layer + 1}_rnn", suffix)
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


def _with_unit(plan: Plan, ours: str, theirs: str, suffix: str) -> dict[str, ParameterPlan]:
    """A layer whose self-attention is a recurrent unit."""
    unit = dict(_map(f"{ours}.unit.forget", f"{theirs}_{{}}f")) | dict(_map(f"{ours}.unit.candidate", f"{theirs}_{{}}"))
    del unit[f"{ours}.unit.candidate.bias"]
    kept = {name: made for name, made in plan.items() if not name.startswith(f"{ours}.attention.")}
    return kept | unit | _norm(f"{ours}.norms.0", f"{theirs}_ffn", suffix)


def _map(ours: str, *theirs: str) -> Iterator[tuple[str, ParameterPlan]]:
    yield f"{ours}.weight", ParameterPlan(tuple(part(name.format("W"), turned=True) for name in theirs))
    yield f"{ours}.bias", ParameterPlan(tuple(part(name.format("b"), flat=True) for name in theirs))


def _norm(ours: str, theirs: str, suffix: str) -> dict[str, ParameterPlan]:
    pairs = (("weight", "scale"), ("bias", "bias"))
    return {f"{ours}.{kind}": ParameterPlan((part(f"{theirs}_ln_{name}{suffix}", flat=True),)) for kind, name in pairs}
