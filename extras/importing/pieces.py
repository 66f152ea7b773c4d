"""Lists of pieces of Hugging Face folders, and the vocabularies that are made of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from extras.importing.fields import read_table
from extras.importing.model import FILLERS, Types, unnamed
from models.errors import VocabularyError
from models.vocabulary import MappedVocabulary


def listed_names(path: Path, size: int, faults: list[str]) -> list[str]:
    """The pieces by id of a table of ids, all that it leaves open named by their number.

    Args:
        path: of the table.
        size: of the vocabulary.
        faults: that are added to where it is malformed; the list is empty then.
    """
    table = read_table(path, faults)
    ids = list(table.values())
    if not table:
        return []
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < size for one in ids):
        faults.append(f"{path.name} must map pieces to ids from 0 to {size - 1}")
        return []
    if len(set(ids)) != len(ids):
        repeated = len(ids) - len(set(ids))
        faults.append(f"{path.name} must give every piece an id of its own, but {repeated} repeat")
        return []
    names = unnamed(size)
    for piece, token in table.items():
        names[token] = piece
    return names


def piece_name(value: Any, default: str) -> str:
    """A special piece's name, which some files wrap in a table."""
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else default


def silent_names(types: Types, silent: Collection[str]) -> list[str]:
    """The pieces that no text becomes: some, and those that only fill up."""
    return [name for name in types.names if name in silent or name.startswith(FILLERS)]


def mapped_vocabulary(
    path: Path,
    types: Types | None,
    faults: list[str],
    *,
    silent: Collection[str] = (),
    languages: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> MappedVocabulary | None:
    """The vocabulary of a sentencepiece file and a list of pieces; None, with a fault, where it cannot be made.

    Args:
        path: of the sentencepiece model.
        types: the list; None where that is malformed already.
        faults: that are added to.
        silent, languages, before: as for ``MappedVocabulary``; languages whose tag is no piece here are left out.
    """
    if not path.is_file():
        faults.append(f"{path.name} is missing")
        return None
    if types is None:
        return None
    own, quiet = set(types.names), silent_names(types, silent)
    known = {code: piece for code, piece in (languages or {}).items() if piece in own}
    try:
        return MappedVocabulary(path.read_bytes(), types.names, silent=quiet, languages=known, before=before)
    except (OSError, VocabularyError) as error:
        faults.append(f"{path.name}: {error}")
        return None
