"""BART (Lewis et al. 2020) as Hugging Face publishes it: summaries above all, English, byte pairs.

    vocab.json and merges.txt, or tokenizer.json    the list of pieces, and the pairs in the order in which they merge

Every source begins with ``<s>``; where the files force a hypothesis' first token, it is its prefix.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tandem.extras.importing.fields import read_table
from tandem.extras.importing.joint import FolderKind
from tandem.extras.importing.model import Types, unnamed
from tandem.extras.importing.pieces import silent_names
from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import BytePairVocabulary


def _names(folder: Path, size: int, faults: list[str]) -> list[str]:
    """The pieces by id; none, with a fault, where they cannot be read."""
    if _are_apart(folder):
        table = read_table(folder / "vocab.json", faults)
    else:
        whole = read_table(folder / "tokenizer.json", faults)
        found = _model(whole).get("vocab")
        added = [one for one in whole.get("added_tokens", ()) if isinstance(one, dict)]
        table = {
            **(found if isinstance(found, dict) else {}),
            **{str(one.get("content")): one.get("id") for one in added},
        }
    table = {piece: token for piece, token in table.items() if piece != "<mask>" or token != size}  # one too many
    ids = list(table.values())
    if not table or len(set(ids)) != len(ids) or not all(type(one) is int and 0 <= one < size for one in ids):
        faults.append(f"vocab.json and merges.txt, or tokenizer.json, must give pieces ids of their own below {size}")
        return []
    names = unnamed(size)
    for piece, token in table.items():
        names[token] = str(piece)
    return names


def _merges(folder: Path) -> list[str]:
    """The merges, of files whose pieces could be read."""
    if _are_apart(folder):
        lines = (folder / "merges.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line and not line.startswith("#version")]
    merges = _model(read_table(folder / "tokenizer.json", [])).get("merges", ())
    return [" ".join(one) if isinstance(one, list) else str(one) for one in merges]


def _are_apart(folder: Path) -> bool:
    return (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file()


def _model(whole: Mapping[str, Any]) -> dict[str, Any]:
    inner = whole.get("model")
    return inner if isinstance(inner, dict) else {}


def _vocabulary(
    path: Path, types: Types | None, faults: list[str], *, silent: Collection[str], languages: Mapping[str, str]
) -> BytePairVocabulary | None:
    if types is None:
        return None
    try:
        return BytePairVocabulary(
            _merges(path.parent), types.names, silent=silent_names(types, silent), before=("<s>",)
        )
    except VocabularyError as error:
        faults.append(f"its byte pairs: {error}")
        return None


BART = FolderKind(
    form="Hugging Face BART",
    model="merges.txt",
    names=_names,
    vocabulary=_vocabulary,
    transformer={"norm": "post", "positions": "learned", "embedding_norm": True},
    fixed={
        "model_type": "bart",
        "normalize_before": False,
        "normalize_embedding": True,
        "add_final_layer_norm": False,
        "static_position_embeddings": False,
    },
    tokenizer={"add_prefix_space": False},
    silent=("<s>", "<mask>"),
    position_offset=2,
    task="",
    language="en",
    beside=("tokenizer.json",),
)
