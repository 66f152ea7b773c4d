"""A list of words, for models that work on whole words; what is not in the list is unknown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Self

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.base import BOS, EOS, PAD, PLACEHOLDERS, UNK, StoredVocabulary, is_reserved

_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


class WordVocabulary(StoredVocabulary):
    """Words in file order from id 4 on, after the four special ids (see ``Vocabulary``).

    Text is split at white space and joined with single spaces, so tokenised text comes back as it was.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._pieces = (*_SPECIAL, *words)
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        self.size = len(self._pieces)
        faults = [
            f"line {line}: {word!r} is not one word" for line, word in enumerate(words, 1) if word.split() != [word]
        ]
        if len(self._ids) != self.size:
            repeated = sorted({piece for piece in self._pieces if self._pieces.count(piece) > 1})
            faults.append(f"words must differ from one another and from {_SPECIAL}; repeated: {repeated[:10]}")
        if faults:
            raise VocabularyError("; ".join(faults[:10]))
        self.placeholders = tuple(self._ids[piece] for piece in PLACEHOLDERS if piece in self._ids)
        self._characters = frozenset("".join(word for word in words if not is_reserved(word)))

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """A vocabulary from a file's content, UTF-8 with one word per line."""
        try:
            return cls(content.decode().splitlines())
        except UnicodeDecodeError as error:
            raise VocabularyError(f"a list of words must be UTF-8: {error}") from error

    def to_bytes(self) -> bytes:
        return "".join(f"{word}\n" for word in self._pieces[len(_SPECIAL) :]).encode()

    def encode(self, text: str, *, reserved: bool | Collection[str] = False) -> list[int]:
        return [self._id_in_text(word, reserved) for word in text.split()]

    def _id_in_text(self, word: str, reserved: bool | Collection[str]) -> int:
        if word in _SPECIAL:
            return UNK  # typed by a user, they are words like any other
        allowed = reserved if isinstance(reserved, bool) else word in reserved
        return UNK if is_reserved(word) and not allowed else self._ids.get(word, UNK)

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.piece_of(token) for token in ids if token not in (PAD, BOS, EOS))

    def reads(self, character: str) -> bool:
        """Whether one of the words has it."""
        return character in self._characters

    def id_of(self, piece: str) -> int:
        if piece not in self._ids:
            raise VocabularyError(f"the vocabulary of {self.size} words has no word {piece!r}")
        return self._ids[piece]
