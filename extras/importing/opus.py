"""Hugging Face's MarianMT: the form in which OPUS-MT's models are published (Tiedemann and Thottingal 2020).

    config.json, generation_config.json    sizes, and how to search
    model.safetensors or pytorch_model.bin the weights
    source.spm, target.spm                 sentencepiece models, which cut text into pieces
    vocab.json                             the pieces' ids, one list for both sides; or target_vocab.json for the target
    tokenizer_config.json                  names of the special pieces, and the languages

Multilingual models have tags among their pieces (``>>fra<<``), one of which begins every source.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tandem.extras.importing.fields import Fields, read_table
from tandem.extras.importing.huggingface import common_fields, make_plan, repeated_names, search_options
from tandem.extras.importing.languages import languages_of, tags_of
from tandem.extras.importing.model import Asked, ForeignModel, Types, arranged
from tandem.extras.importing.pieces import listed_names, mapped_vocabulary, piece_name
from tandem.extras.importing.tensors import tensors_of
from tandem.models.architectures.transformer import TransformerConfig

FORM = "Hugging Face MarianMT"
_FILES = ("config.json", "source.spm", "target.spm", "vocab.json", "target_vocab.json")


def read_opus(folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A MarianMT folder, understood and checked but for its weights' values.

    Args:
        folder: holds the files.
        asked: what the user says.
        faults: every reason why it cannot be imported is added.

    Returns:
        None where there are faults.
    """
    table = read_table(folder / "config.json", faults)
    generation = read_table(folder / "generation_config.json", faults, needed=False)
    tokenizer = read_table(folder / "tokenizer_config.json", faults, needed=False)
    if not table:
        return None
    fields = Fields(table, "config.json", faults, asked.ignored)
    common = common_fields(fields)
    # Fields that older files have and that say what the form always does.
    fields.fixed(model_type="marian", normalize_before=False, add_final_layer_norm=False, normalize_embedding=False)
    fields.fixed(do_blenderbot_90_layernorm=False, relative_positions=False)
    source_size = fields.number("vocab_size", least=4)
    target_size = fields.number("decoder_vocab_size", source_size, least=4)
    shared = fields.flag("share_encoder_decoder_embeddings", True)
    special = {name: fields.number(f"{name}_token_id", least=0) for name in ("pad", "eos", "decoder_start")}
    fields.finish()

    files = _VocabularyFiles(tokenizer, faults)
    source_names = listed_names(folder / "vocab.json", source_size, faults)
    target_names = (
        source_names if not files.separate else listed_names(folder / "target_vocab.json", target_size, faults)
    )
    if shared and (files.separate or source_size != target_size):
        faults.append(
            f"share_encoder_decoder_embeddings needs one vocabulary, but there are two, of {source_size} and"
            f" {target_size} types"
        )
    tensors = tensors_of(folder, faults)
    types = files.types(source_names, target_names, special)
    sources, targets = languages_of(folder, tokenizer, asked, faults)
    tags, languages = tags_of(source_names, targets, asked, faults)
    options = search_options((generation, table), types[1], common["max_positions"] - 1, faults, asked.ignored)
    made = [
        mapped_vocabulary(folder / f"{side}.spm", one, faults, silent=tags, languages=languages)
        for side, one in zip(("source", "target"), types, strict=True)
    ]
    source, target = made
    if faults or tensors is None or source is None or target is None or types[0] is None or types[1] is None:
        return None
    config = TransformerConfig(
        (source.size,), target.size, norm="post", positions="halves", tied="all" if shared else "decoder", **common
    )
    plan = make_plan(config, types[0], types[1])
    return ForeignModel(
        form=FORM,
        config=config,
        plan=plan,
        tensors=tensors,
        beside=repeated_names(config),
        files=tuple(path for name in _FILES if (path := folder / name).is_file()),
        source=source,
        target=target,
        sources=sources,
        targets=targets,
        tags="target" if languages else "",
        decoding=options,
    )


class _VocabularyFiles:
    """The lists of pieces, and what the special ones are called."""

    def __init__(self, tokenizer: Mapping[str, Any], faults: list[str]) -> None:
        self._faults = faults
        self.separate = tokenizer.get("separate_vocabs") is True
        self._special = {
            name: piece_name(tokenizer.get(f"{name}_token"), default)
            for name, default in (("pad", "<pad>"), ("unk", "<unk>"), ("eos", "</s>"))
        }

    def types(
        self, source: list[str], target: list[str], special: Mapping[str, int]
    ) -> tuple[Types | None, Types | None]:
        """Both sides' types. The configuration's ids are the target's; those of a source of its own go by name."""
        names = dict(self._special)
        faults = [f"the list of pieces has no {name}" for name in (names["unk"],) if target and name not in target]
        for name, token in special.items():
            if target and token >= len(target):
                faults.append(f"{name}_token_id must be below {len(target)}, but is {token}")
        if special["pad"] == special["eos"]:
            faults.append(f"pad_token_id and eos_token_id must differ, but both are {special['pad']}")
        if self.separate and source:
            faults += [f"vocab.json has no {name}" for name in names.values() if name not in source]
        self._faults += faults
        if faults or not source or not target:
            return None, None
        unk = target.index(names["unk"])
        ours = arranged(target, pad=special["pad"], unk=unk, start=special["decoder_start"], eos=special["eos"])
        if not self.separate:
            return ours, ours
        ids = {name: source.index(piece) for name, piece in names.items()}
        return arranged(source, pad=ids["pad"], unk=ids["unk"], start=ids["pad"], eos=ids["eos"]), ours
