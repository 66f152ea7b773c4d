"""Lists of pieces of Hugging Face folders, and the vocabularies that are made of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from tandem.extras.importing.fields import read_table
from tandem.extras.importing.model import FILLERS, Types, unnamed
from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import MappedVocabulary

_PIECE, _USER_DEFINED, _UNUSED = 0x0A, b"\x18\x04", 0x05  # of sentencepiece's messages


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
    unused: Collection[str] = (),
) -> MappedVocabulary | None:
    """The vocabulary of a sentencepiece file and a list of pieces; None, with a fault, where it cannot be made.

    Args:
        path: of the sentencepiece model.
        types: the list; None where that is malformed already.
        faults: that are added to.
        silent, languages, before: as for ``MappedVocabulary``; languages whose tag is no piece here are left out.
        unused: user-defined pieces that a text is not cut into any more: it stays the text that it is.
    """
    if not path.is_file():
        faults.append(f"{path.name} is missing")
        return None
    if types is None:
        return None
    own, quiet = set(types.names), silent_names(types, {*silent, *unused})
    known = {code: piece for code, piece in (languages or {}).items() if piece in own}
    try:
        return MappedVocabulary(
            without_pieces(path.read_bytes(), unused), types.names, silent=quiet, languages=known, before=before
        )
    except (OSError, VocabularyError) as error:
        faults.append(f"{path.name}: {error}")
        return None


def sentencepiece_names(path: Path) -> list[str]:
    """The pieces of a sentencepiece model by its own ids; none where it cannot be read, which is a fault elsewhere."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(path.read_bytes())
        return [processor.id_to_piece(token) for token in range(processor.get_piece_size())]
    except (OSError, RuntimeError):
        return []


def without_pieces(model: bytes, names: Collection[str]) -> bytes:
    """A serialised sentencepiece model some of whose user-defined pieces are of the kind "unused".

    They keep their ids. The message begins with the pieces, each a message of a name, a score and, last, its kind; what
    is written otherwise is left as it is.
    """
    made, at = bytearray(model), 0
    wanted = {name.encode() for name in names}
    while at < len(made) and made[at] == _PIECE:
        size, start = _varint(made, at + 1)
        at = start + size
        own = made[start:at]
        name, kind = bytes(own[2 : 2 + own[1]]) if len(own) > 2 else b"", own[-2:]
        if name in wanted and kind == _USER_DEFINED and at <= len(made):
            made[at - 1] = _UNUSED
    return bytes(made)


def _varint(content: bytearray, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends; 0 at the content's end."""
    value = shift = 0
    while at < len(content):
        byte = content[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            break
    return value, at
