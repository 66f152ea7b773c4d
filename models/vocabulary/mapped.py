"""Somebody else's sentencepiece model with a list of pieces of its own: the vocabularies of public models.

In those the ids are not sentencepiece's: a list says which piece has which id, pieces of the model may be missing from
it, and it has others that no text becomes (``</s>``, ``>>fra<<``). There are no byte pieces, so a text may be unknown
in part. The special pieces are moved to this project's ids (``Vocabulary``), everything else keeps its order.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sentencepiece

from models.errors import VocabularyError
from models.vocabulary.base import BOS, EOS, PAD, UNK, StoredVocabulary

MAPPED_FORMAT = 1
START = "⟨start⟩"
"""Names the id that decoding begins with: public models begin with padding or the end of the sentence instead."""

_BOUNDARY = "\u2581"
_SURROGATES = re.compile("[\ud800-\udfff]")
_FIELDS: Mapping[str, type] = {
    "format": int,
    "pieces": list,
    "silent": list,
    "before": list,
    "languages": dict,
    "model": str,
}


class MappedVocabulary(StoredVocabulary):
    """Pieces of a sentencepiece model under ids of a list (see ``Vocabulary``).

    Text is what the model's own normalisation leaves of it; unknown pieces become ``<unk>``, of which nothing is
    written. It has no placeholders, and no text becomes a silent piece, whatever it says.

    Args:
        model: serialised sentencepiece model.
        pieces: by id; the first four are padding, unknown, begin and end, whatever they are called.
        silent: further pieces that no text becomes and of which nothing is written, such as tags.
        before: pieces that every text begins with.
        languages: the piece that is each language's tag.

    Raises:
        VocabularyError: a model that cannot be read, pieces that repeat or are too few, or names that are no piece;
            every fault is named.
    """

    placeholders: tuple[int, ...] = ()

    def __init__(
        self,
        model: bytes,
        pieces: Sequence[str],
        *,
        silent: Collection[str] = (),
        before: Sequence[str] = (),
        languages: Mapping[str, str] | None = None,
    ) -> None:
        self._model, self._pieces = model, tuple(pieces)
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        self.size = len(self._pieces)
        self.languages = dict(languages or {})
        self._before_pieces = tuple(before)
        named = {*silent, *before, *self.languages.values()}
        self._check(named)
        self._processor = _processor(model)
        silent_ids = {self._ids[piece] for piece in named} | {PAD, UNK, BOS, EOS}
        self._silent = frozenset(silent_ids)
        self._before = [self._ids[piece] for piece in before]
        self._from_text = {piece: token for piece, token in self._ids.items() if token not in self._silent}

    def _check(self, named: Collection[str]) -> None:
        faults = []
        if self.size <= EOS:
            faults.append(f"there must be padding, unknown, begin and end, but there are {self.size} pieces")
        if len(self._ids) != self.size:
            seen: set[str] = set()
            repeated = [piece for piece in self._pieces if piece in seen or seen.add(piece)]  # type: ignore[func-returns-value]
            faults.append(f"pieces must differ; repeated: {repeated[:10]}")
        unknown = sorted(piece for piece in named if piece not in self._ids)
        faults += [f"no piece is called {', '.join(map(repr, unknown[:10]))}"] if unknown else []
        if faults:
            raise VocabularyError("; ".join(faults))

    @classmethod
    def from_bytes(cls, content: bytes) -> MappedVocabulary:
        """A vocabulary from its file's content. Raises VocabularyError where it is malformed."""
        try:
            table = json.loads(content)
            if not isinstance(table, dict):
                raise ValueError("it is no table")
            if isinstance(table.get("format"), int) and table["format"] > MAPPED_FORMAT:
                raise VocabularyError(f"its format {table['format']} is newer than {MAPPED_FORMAT}; update tandem")
            if table.keys() != _FIELDS.keys() or not all(isinstance(table[k], kind) for k, kind in _FIELDS.items()):
                raise ValueError(f"it must hold {', '.join(_FIELDS)}")
            texts = [*table["pieces"], *table["silent"], *table["before"]]
            texts += [*table["languages"].values()]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("its pieces must be strings")
            model = base64.b64decode(table["model"], validate=True)
        except (ValueError, RecursionError, binascii.Error) as error:
            raise VocabularyError(f"not a list of pieces with a sentencepiece model: {error}") from error
        named = {"silent": table["silent"], "before": table["before"], "languages": table["languages"]}
        return cls(model, table["pieces"], **named)

    def to_bytes(self) -> bytes:
        table: dict[str, Any] = {
            "format": MAPPED_FORMAT,
            "silent": [self._pieces[token] for token in sorted(self._silent) if token > EOS],
            "before": list(self._before_pieces),
            "languages": dict(sorted(self.languages.items())),
            "pieces": list(self._pieces),
            "model": base64.b64encode(self._model).decode("ascii"),
        }
        return (json.dumps(table, ensure_ascii=False, separators=(",", ":")) + "\n").encode()

    def encode(self, text: str, *, reserved: bool | Collection[str] = False) -> list[int]:
        pieces = self._processor.encode(_SURROGATES.sub("\ufffd", text), out_type=str)
        ids = [self._from_text.get(piece, UNK) for piece in pieces]
        return [*self._before, *ids] if ids else ids

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._pieces[token] for token in map(self._checked, ids) if token not in self._silent]
        return str(self._processor.decode_pieces(pieces)).replace(_BOUNDARY, " ").strip()

    def id_of(self, piece: str) -> int:
        if piece not in self._ids:
            raise VocabularyError(f"the vocabulary of {self.size} pieces has no piece {piece!r}")
        return self._ids[piece]

    def piece_of(self, token: int) -> str:
        return self._pieces[self._checked(token)]

    def language_tag(self, code: str) -> int:
        if code not in self.languages:
            known = ", ".join(self.languages) or "none"
            raise VocabularyError(f"the vocabulary has no tag of the language {code!r}; it has those of: {known}")
        return self._ids[self.languages[code]]

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.size:
            raise VocabularyError(f"token ids must be 0 to {self.size - 1}, but one is {token}")
        return int(token)


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        loaded = bool(model) and processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise VocabularyError(f"not a readable sentencepiece model: {error}") from error
    if not loaded:
        raise VocabularyError("not a readable sentencepiece model: it is empty")
    return processor
