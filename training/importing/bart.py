"""BART (Lewis et al. 2020) as Hugging Face publishes it: summaries above all, English, byte pairs.

    vocab.json and merges.txt, or tokenizer.json    the list of pieces, and the pairs in the order in which they merge

Every source begins with ``<s>``; where the files force a hypothesis' first token, it is its prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.errors import VocabularyError
from models.transformer import TransformerConfig
from models.vocabulary import BytePairVocabulary
from training.importing.fields import Fields, read_table
from training.importing.huggingface import common_fields, make_plan, repeated_names, search_options
from training.importing.joint import special_types
from training.importing.model import FILLERS, Asked, ForeignModel, Types, unnamed
from training.importing.tensors import tensors_of

FORM = "Hugging Face BART"
_FILES = ("config.json", "vocab.json", "merges.txt", "tokenizer.json")
_SILENT = ("<s>", "<mask>")
_OFFSET = 2  # rows of the tables of positions before the first


def read_bart(folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A BART folder, understood and checked but for its weights' values.

    Args:
        folder: holds the files.
        asked: what the user says; English summaries where that is nothing, translations where languages differ.
        faults: every reason why it cannot be imported is added.

    Returns:
        None where there are faults.
    """
    table = read_table(folder / "config.json", faults)
    generation = read_table(folder / "generation_config.json", faults, needed=False)
    fields = Fields(table, "config.json", faults, asked.ignored)
    common = common_fields(fields)
    fields.fixed(model_type="bart", normalize_before=False, normalize_embedding=True, add_final_layer_norm=False)
    fields.fixed(static_position_embeddings=False)
    size = fields.number("vocab_size", least=4)
    special = {name: fields.number(f"{name}_token_id", least=0) for name in ("pad", "eos", "decoder_start")}
    fields.finish()
    tokenizer = read_table(folder / "tokenizer_config.json", faults, needed=False)
    Fields(tokenizer, "tokenizer_config.json", faults, asked.ignored).fixed(add_prefix_space=False)
    names, merges = _pieces(folder, size, faults)
    types = special_types(names, special, "<unk>", faults)
    vocabulary = _vocabulary(types, merges, faults)
    tensors = tensors_of(folder, faults)
    options = search_options((generation, table), types, common["max_positions"] - 1, faults, asked.ignored)
    if faults or vocabulary is None or types is None or tensors is None:
        return None
    config = TransformerConfig(
        (vocabulary.size,),
        vocabulary.size,
        norm="post",
        positions="learned",
        embedding_norm=True,
        tied="all",
        **common,
    )
    sources = asked.sources or ("en",)
    targets = asked.targets or sources[:1]
    return ForeignModel(
        form=FORM,
        config=config,
        plan=make_plan(config, types, types, position_offset=_OFFSET),
        tensors=tensors,
        beside=repeated_names(config),
        files=tuple(path for name in _FILES if (path := folder / name).is_file()),
        source=vocabulary,
        target=vocabulary,
        sources=sources,
        targets=targets,
        tags="",
        decoding=options,
        task="summarize" if sources == targets else "translate",
    )


def _pieces(folder: Path, size: int, faults: list[str]) -> tuple[list[str], list[str]]:
    """The pieces by id and the merges; empty, with a fault, where they cannot be read."""
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        table = read_table(folder / "vocab.json", faults)
        lines = (folder / "merges.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        merges = [line for line in lines if line and not line.startswith("#version")]
    else:
        whole = read_table(folder / "tokenizer.json", faults)
        inner = whole.get("model") if whole else {}
        inner = inner if isinstance(inner, dict) else {}
        found = inner.get("vocab")
        added = [one for one in whole.get("added_tokens", ()) if isinstance(one, dict)]
        table = {
            **(found if isinstance(found, dict) else {}),
            **{str(one.get("content")): one.get("id") for one in added},
        }
        merges = [" ".join(one) if isinstance(one, list) else str(one) for one in inner.get("merges", ())]
    table = {piece: token for piece, token in table.items() if piece != "<mask>" or token != size}  # one too many
    ids = list(table.values())
    if not table or len(set(ids)) != len(ids) or not all(type(one) is int and 0 <= one < size for one in ids):
        faults.append(f"vocab.json and merges.txt, or tokenizer.json, must give pieces ids of their own below {size}")
        return [], []
    names = unnamed(size)
    for piece, token in table.items():
        names[token] = str(piece)
    return names, merges


def _vocabulary(types: Types | None, merges: list[str], faults: list[str]) -> BytePairVocabulary | None:
    if types is None:
        return None
    silent = [name for name in types.names if name in _SILENT or name.startswith(FILLERS)]
    named: Mapping[str, Any] = {"silent": silent, "before": ("<s>",)}
    try:
        return BytePairVocabulary(merges, types.names, **named)
    except VocabularyError as error:
        faults.append(f"its byte pairs: {error}")
        return None
