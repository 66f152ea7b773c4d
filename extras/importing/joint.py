"""Hugging Face folders with one vocabulary for both sides: what M2M100, NLLB, mBART-50, Pegasus and BART share.

    config.json, generation_config.json    sizes, and how to search
    model.safetensors or pytorch_model.bin the weights
    a sentencepiece model, or byte pairs   cuts text of every language into pieces
    vocab.json                             the list of pieces, where it does not follow from the sentencepiece model
    tokenizer_config.json, special_tokens_map.json, added_tokens.json
                                           the languages' tags, with their ids or in their order

A kind with tags has them on both sides: a source begins with the tag of its language, a translation with that of its.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tandem.extras.importing.fields import Fields, read_table
from tandem.extras.importing.huggingface import common_fields, make_plan, repeated_names, search_options
from tandem.extras.importing.languages import find_tags
from tandem.extras.importing.model import FILLERS, Asked, ForeignModel, Types, arranged
from tandem.extras.importing.pieces import mapped_vocabulary, piece_name
from tandem.extras.importing.tensors import tensors_of
from tandem.models.architectures.transformer import TransformerConfig
from tandem.models.vocabulary import ListedVocabulary

TABLES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_ORDERED = ("additional_special_tokens", "extra_special_tokens")


@dataclass(frozen=True, slots=True)
class FolderKind:
    """What one kind of folder has of its own.

    Attributes:
        form: its name.
        model: the file that text is cut by: a sentencepiece model, or merges.
        names: reads the pieces by id: from the folder, for a vocabulary of that size; adds to the faults.
        transformer: fields of our configuration that it fixes.
        fixed: fields of its configuration, and of its tokenizer's, that must have these values where they are given.
        tokenizer: see there.
        tag: matches the piece that is a language's tag; the group says which language. None = it has none.
        silent: further pieces that no text becomes.
        position_offset: rows of its learned tables before the first position.
        task: that it does; empty: it summarizes where both languages are one.
        language: of its text, where it has no tags and the user names none.
        vocabulary: makes it of that file, as :func:`mapped_vocabulary` does.
        beside: further files that a bundle is owed to.
    """

    form: str
    model: str
    names: Callable[[Path, int, list[str]], list[str]]
    transformer: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Mapping[str, Any] = field(default_factory=dict)
    tag: re.Pattern[str] | None = None
    silent: tuple[str, ...] = ()
    position_offset: int = 0
    task: Literal["translate", "summarize", ""] = "translate"
    language: str = ""
    vocabulary: Callable[..., ListedVocabulary | None] = mapped_vocabulary
    beside: tuple[str, ...] = TABLES


def read_joint(kind: FolderKind, folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A folder of a kind, understood and checked but for its weights' values.

    Args:
        kind: of the folder.
        folder: holds the files.
        asked: what the user says; of a kind with tags, at least one language for each side.
        faults: every reason why it cannot be imported is added.

    Returns:
        None where there are faults.
    """
    table = read_table(folder / "config.json", faults)
    generation = read_table(folder / "generation_config.json", faults, needed=False)
    tables = [read_table(folder / name, faults, needed=False) for name in (TABLES if kind.tag else TABLES[:1])]
    fields = Fields(table, "config.json", faults, asked.ignored)
    common = common_fields(fields)
    fields.fixed(**kind.fixed)
    size = fields.number("vocab_size", least=4)
    special = {name: fields.number(f"{name}_token_id", least=0) for name in ("pad", "eos", "decoder_start")}
    fields.finish()
    Fields(tables[0], TABLES[0], faults, asked.ignored).fixed(**kind.tokenizer)

    names = kind.names(folder, size, faults)
    sources, targets, tags, languages = _languages(kind, names, tables, asked, faults)
    types = _types(names, special, piece_name(tables[0].get("unk_token"), "<unk>"), faults)
    silent = {*tags, *kind.silent}
    vocabulary = kind.vocabulary(folder / kind.model, types, faults, silent=silent, languages=languages)
    tensors = tensors_of(folder, faults)
    options = search_options((generation, table), types, common["max_positions"] - 1, faults, asked.ignored)
    if faults or vocabulary is None or types is None or tensors is None:
        return None
    config = TransformerConfig((vocabulary.size,), vocabulary.size, tied="all", **kind.transformer, **common)
    files = ("config.json", kind.model, "vocab.json", *kind.beside)
    return ForeignModel(
        form=kind.form,
        config=config,
        plan=make_plan(config, types, types, position_offset=kind.position_offset),
        tensors=tensors,
        beside=repeated_names(config),
        files=tuple(path for name in files if (path := folder / name).is_file()),
        source=vocabulary,
        target=vocabulary,
        sources=sources,
        targets=targets,
        tags="both" if kind.tag else "",
        decoding=options,
        task=kind.task or ("summarize" if sources == targets else "translate"),
    )


def filled(names: list[str], size: int, file: str, faults: list[str]) -> list[str]:
    """Names up to a size, those that are missing by their number; none, with a fault, where there are too many."""
    if len(names) > size:
        faults.append(f"vocab_size must be at least {len(names)}, the pieces of {file}, but is {size}")
        return []
    return [*names, *(f"{FILLERS[1]}{number}⟩" for number in range(len(names), size))]


def _types(names: list[str], special: Mapping[str, int], unk: str, faults: list[str]) -> Types | None:
    """The types of a list in our order; None, with a fault, where a special one is missing. ``special``: their ids."""
    own = [f"{name}_token_id must be below {len(names)}, but is {i}" for name, i in special.items() if i >= len(names)]
    own += [f"the list of pieces has no {unk}"] if unk not in names else []
    own += ["pad_token_id and eos_token_id must differ"] if special["pad"] == special["eos"] else []
    if not names:  # a fault of its own
        return None
    faults += own
    ids = {"pad": special["pad"], "start": special["decoder_start"], "eos": special["eos"]}
    return None if own else arranged(names, unk=names.index(unk), **ids)


def _languages(
    kind: FolderKind, names: list[str], tables: list[dict[str, Any]], asked: Asked, faults: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...], list[str], dict[str, str]]:
    """Languages of both sides, all tags, and the tag of each language."""
    if kind.tag is None:
        sources = asked.sources or (kind.language,)
        return sources, asked.targets or sources[:1], [], {}
    _name_tags(names, kind.tag, tables, faults)
    tags = {match[1]: name for name in names if (match := kind.tag.fullmatch(name))}
    for side, given in (("source", asked.sources), ("target", asked.targets)):
        if not given:
            faults.append(f"it knows {len(tags)} languages: say with --{side} CODE which of them you want")
    if asked.sources == asked.targets and len(asked.sources) == 1:
        faults.append(f"--source and --target must differ, but both are {asked.sources[0]!r}")
    codes = tuple(dict.fromkeys((*asked.sources, *asked.targets)))
    return asked.sources, asked.targets, [*tags.values()], find_tags(codes, tags, asked.tags, faults) if tags else {}


def _name_tags(names: list[str], pattern: re.Pattern[str], tables: list[dict[str, Any]], faults: list[str]) -> None:
    """Write the tags' names into a list of pieces, where the files say their ids or their order."""
    if not names:
        return
    config, special, added = tables
    entries = config.get("added_tokens_decoder")
    with_ids = {
        int(token): piece_name(entry, "")
        for token, entry in (entries.items() if isinstance(entries, dict) else ())
        if str(token).isdecimal()
    }
    with_ids |= {token: piece for piece, token in added.items() if isinstance(token, int)}
    found = {token: piece for token, piece in with_ids.items() if pattern.fullmatch(piece)}
    if not found:
        ordered = next((one for table in (special, config) for key in _ORDERED if (one := table.get(key))), ())
        listed = [piece_name(one, "") for one in ordered if pattern.fullmatch(piece_name(one, ""))]
        first = next((token for token, name in enumerate(names) if name.startswith(FILLERS)), len(names))
        found = {first + place: piece for place, piece in enumerate(listed)}
    if not found:
        faults.append(f"none of {', '.join(TABLES)} names the languages' tags")
    beyond = {token: piece for token, piece in found.items() if token >= len(names)}
    if beyond:
        faults.append(f"vocab_size must be above {max(beyond)}, the id of {beyond[max(beyond)]}, but is {len(names)}")
    for token, piece in found.items():
        if token < len(names):
            names[token] = piece
