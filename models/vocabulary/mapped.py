"""Somebody else's sentencepiece model with a list of pieces of its own: the vocabularies of most public models.

The ids are not sentencepiece's, and there are no byte pieces, so that a text may be unknown in part.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Self

import sentencepiece

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.listed import ListedVocabulary

_BOUNDARY = "\u2581"


class MappedVocabulary(ListedVocabulary):
    """Pieces of a sentencepiece model under ids of a list. Text is what the model's own normalisation leaves of it.

    Args:
        model: serialised sentencepiece model.
        pieces, named: as for ``ListedVocabulary``.

    Attributes:
        model: see above.

    Raises:
        VocabularyError: a model that cannot be read, or as for ``ListedVocabulary``.
    """

    cutter = ("model", str)

    def __init__(self, model: bytes, pieces: Sequence[str], **named: Any) -> None:
        super().__init__(pieces, **named)
        self.model = model
        self._processor = _processor(model)

    @classmethod
    def _made(cls, cutter: Any, pieces: Sequence[str], **named: Any) -> Self:
        return cls(base64.b64decode(cutter, validate=True), pieces, **named)

    def _cutter(self) -> str:
        return base64.b64encode(self.model).decode("ascii")

    def _cut(self, text: str) -> Sequence[str]:
        pieces: list[str] = self._processor.encode(text, out_type=str)
        return pieces

    def _join(self, pieces: Sequence[str]) -> str:
        return str(self._processor.decode_pieces(list(pieces))).replace(_BOUNDARY, " ").strip()


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        loaded = bool(model) and processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise VocabularyError("not a readable sentencepiece model: it is damaged, or another kind of file") from error
    if not loaded:
        raise VocabularyError("not a readable sentencepiece model: it is empty")
    return processor
