"""Models of the published ones' real shapes, with random weights, in folders as they are published."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch

from tandem.extras.importing.model import Asked
from tandem.extras.proofs.forms import argos_package, ct2_folder, marian_files
from tandem.extras.shared.sentences import proof_sentences

BEAM = 4
_SPREAD = 5.0  # standard deviation of logits
_ENDING = 0.15  # how often the end is the likeliest token
_GAINS = {"out_proj": 0.7, "fc2": 0.7, "q_proj": 1.5, "k_proj": 1.5}  # by which linear maps make vectors larger
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}


@dataclass(frozen=True, slots=True)
class PublicShape:
    """A published model's shape.

    Attributes:
        kind: names the library's classes: ``Marian`` for ``MarianConfig`` and so on.
        types: of the vocabulary.
        config: of the library.
        write: the vocabulary's files: into a folder, of so many types; returns special ids by name.
        tokenizer: the library's class; empty: sentencepiece itself.
        asked: languages.
        form: makes another program's folder of the published one and its model, which it may change.
    """

    kind: str
    types: int
    config: Mapping[str, Any]
    write: Callable[[Path, int], dict[str, int]]
    tokenizer: str = ""
    asked: Asked = field(default_factory=lambda: Asked(("en",), ("de",)))
    form: Callable[[Path, Any, Asked], Path] = lambda folder, published, asked: folder

    @property
    def description(self) -> str:
        """Its size in words."""
        size = self.config
        return (
            f"{size['encoder_layers']}+{size['decoder_layers']} layers, width {size['d_model']}, {self.types:,} pieces"
        )


def sentencepiece_model(lines: Iterable[str], types: int = 600, **special: Any) -> bytes:
    """A sentencepiece model of at most so many types, whose special ones may be given ids."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=types,
        character_coverage=1.0,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **special,
    )
    return model.getvalue()


def _trained(**special: Any) -> bytes:
    """A small model of our own sentences."""
    return sentencepiece_model([*proof_sentences("en"), *proof_sentences("de")], **special)


def pieces(model: bytes) -> list[str]:
    """The normal pieces of a sentencepiece model."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(token) for token in range(3, processor.get_piece_size())]


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _write_vocabulary(folder: Path, types: int, known: Sequence[str], *last: str) -> None:
    """The list of pieces with fillers before the last ones."""
    fillers = (f"t{number}" for number in range(types - len(known) - len(last)))
    write_json(folder / "vocab.json", {piece: token for token, piece in enumerate([*known, *fillers, *last])})


def write_marian(
    folder: Path,
    types: int,
    *,
    model: bytes = b"",
    languages: tuple[str, str] = ("en", "de"),
    tags: Sequence[str] = (),
) -> dict[str, int]:
    """Both sides' sentencepiece model, the list of pieces in an order of its own, and the languages."""
    model = model or _trained()
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(model)
    known = [*pieces(model), "</s>", "<unk>", *tags]
    np.random.default_rng(1).shuffle(known)
    _write_vocabulary(folder, types, known, "<pad>")
    write_json(folder / "tokenizer_config.json", dict(zip(("source_lang", "target_lang"), languages, strict=True)))
    return {"pad_token_id": types - 1, "eos_token_id": known.index("</s>"), "decoder_start_token_id": types - 1}


def _write_m2m(folder: Path, types: int) -> dict[str, int]:
    model, tags = _trained(), ["__en__", "__de__"]
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    _write_vocabulary(folder, types - 8 - len(tags), [*_SPECIAL, *pieces(model)])
    write_json(folder / "special_tokens_map.json", {"additional_special_tokens": tags})
    return _IDS


def _write_fairseq(folder: Path, types: int, *, tags: Sequence[str], tokenizer: str) -> dict[str, int]:
    (folder / "sentencepiece.bpe.model").write_bytes(_trained())
    added = {str(types - len(tags) + place): {"content": tag} for place, tag in enumerate(tags)}
    write_json(folder / "tokenizer_config.json", {"added_tokens_decoder": added, "tokenizer_class": tokenizer})
    return _IDS


def _write_bart(folder: Path, types: int) -> dict[str, int]:
    words = dict.fromkeys(word for line in proof_sentences("en") for word in line.split() if word.isascii())
    spaced = [f"Ġ{word}" for word in words]
    merges = dict.fromkeys(f"{word[:end]} {word[end]}" for word in spaced for end in range(1, len(word)))
    single = [*map(chr, range(0x21, 0x7F)), *map(chr, range(0xA1, 0xAD)), *map(chr, range(0xAE, 0x144))]
    known = [*_SPECIAL, *single, *dict.fromkeys(merge.replace(" ", "") for merge in merges)]
    _write_vocabulary(folder, types, known, "<mask>")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges), encoding="utf-8")
    return _IDS


def _write_pegasus(folder: Path, types: int) -> dict[str, int]:
    (folder / "spiece.model").write_bytes(_trained(pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
    return {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}


def sizes(
    layers: int, width: int, heads: int, positions: int = 512, activation: str = "swish", **further: Any
) -> dict[str, Any]:
    """A configuration's sizes, the same on both sides."""
    of_a_side = {"layers": layers, "ffn_dim": 4 * width, "attention_heads": heads}
    both = {f"{side}_{name}": size for name, size in of_a_side.items() for side in ("encoder", "decoder")}
    own = {"d_model": width, "max_position_embeddings": positions, "activation_function": activation}
    return both | own | {"scale_embedding": True} | further


_opus = partial(PublicShape, "Marian", write=write_marian, tokenizer="MarianTokenizer")
_BASE = (58_101, sizes(6, 512, 8))
_LARGE = (1024, 16, 1024)  # width, heads, positions
_PEGASUS = {"normalize_before": True, "normalize_embedding": False}
_NLLB = partial(_write_fairseq, tags=("eng_Latn", "deu_Latn"), tokenizer="NllbTokenizer")
_MBART = partial(_write_fairseq, tags=("en_XX", "de_DE"), tokenizer="MBart50Tokenizer")
SHAPES: dict[str, PublicShape] = {
    "opus-mt": _opus(*_BASE),
    "opus-mt-tc-big": _opus(57_829, sizes(6, *_LARGE, "relu")),
    "opus-mt-en-mul": _opus(64_172, sizes(6, 512, 8), write=partial(write_marian, tags=(">>deu<<", ">>fra<<"))),
    "m2m100-2-layers": PublicShape("M2M100", 128_112, sizes(2, *_LARGE, "relu"), _write_m2m, "M2M100Tokenizer"),
    "nllb-600m-2-layers": PublicShape("M2M100", 256_206, sizes(2, *_LARGE, "relu"), _NLLB),
    "bart-base": PublicShape(
        "Bart",
        50_265,
        sizes(6, 768, 12, 1024, "gelu", normalize_before=False, scale_embedding=False),
        _write_bart,
        "BartTokenizer",
        Asked(),
    ),
    "mbart-50-2-layers": PublicShape("MBart", 250_054, sizes(2, *_LARGE, "gelu", normalize_before=True), _MBART),
    "pegasus-4-layers": PublicShape(
        "Pegasus", 96_103, sizes(4, *_LARGE, "relu", **_PEGASUS), _write_pegasus, asked=Asked()
    ),
    "marian-npz": _opus(*_BASE, form=marian_files),
    "ctranslate2": _opus(*_BASE, form=ct2_folder),
    "argos": PublicShape(
        "Pegasus", 32_000, sizes(6, 512, 8, 512, "relu", **_PEGASUS), _write_pegasus, form=argos_package
    ),
}


def publish(shape: PublicShape, folder: Path) -> Any:
    """A folder of the shape with random weights, and the library's model of it."""
    transformers = import_module("transformers")
    folder.mkdir(parents=True)
    ids = shape.write(folder, shape.types)
    config = getattr(transformers, f"{shape.kind}Config")(vocab_size=shape.types, **shape.config, **ids)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.AutoModelForSeq2SeqLM.from_config(config).eval()
        with torch.no_grad():
            _liven(model, ids["eos_token_id"])
    model.generation_config.update(num_beams=BEAM, max_length=200, bad_words_ids=[[ids["pad_token_id"]]])
    model.save_pretrained(folder)
    return model


def _liven(model: Any, end: int) -> None:
    """Weights with which hypotheses differ and end by themselves.

    With those that the library begins with all tokens have about the same chance, and sources hardly matter. The last
    norm's weights have random signs: else the last token, whose embedding is also a row of the output, is repeated.
    """
    types, width = model.model.shared.weight.shape
    for name, parameter in model.named_parameters():
        if name.endswith("shared.weight"):
            parameter.mul_(1 / (math.sqrt(width) * parameter.std()))
        elif "embed_positions" in name:  # sines and cosines stay what they are
            parameter.mul_(1.0 if parameter.std() > 0.5 else 0.5 / parameter.std())
        elif parameter.dim() > 1:
            gain = _GAINS.get(name.split(".")[-2], 1.0)
            parameter.mul_(gain / (math.sqrt(parameter.shape[1]) * parameter.std()))
    decoder = model.model.decoder
    last = getattr(decoder, "layer_norm", None) or decoder.layers[-1].final_layer_norm
    last.weight.copy_(_SPREAD * torch.randn(width).sign())
    last.bias.normal_(0.0, 0.3 * _SPREAD)
    end_row = last.bias / last.bias.norm() ** 2
    model.model.shared.weight[end] = end_row
    given = {name: torch.randint(4, types, (16, 16)) for name in ("input_ids", "decoder_input_ids")}
    logits = model(**given).logits
    ratios = (logits.amax(-1) / logits[..., end])[logits[..., end] > 0]
    model.model.shared.weight[end] = end_row * ratios.quantile(_ENDING)
