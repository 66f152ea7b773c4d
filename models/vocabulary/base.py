"""What every vocabulary offers, and the ids and strings that all of them reserve."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Self

from tandem.models.errors import VocabularyError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
PLACEHOLDERS = tuple(f"⟨ph{number}⟩" for number in range(16))
KEEP, DELETE = EDITS = ("⟨keep⟩", "⟨delete⟩")  # operations of post-editing, in vocabularies trained for it only
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def language_piece(code: str) -> str:
    """The reserved piece of a language, ``"de" -> "⟨de⟩"``.

    Raises:
        VocabularyError: ``code`` is not a language code such as ``de``, ``pt-BR`` or ``zh-Hans``.
    """
    if not _LANGUAGE_CODE.fullmatch(code):
        raise VocabularyError(f"language code must look like 'de' or 'pt-BR', but is {code!r}")
    return f"⟨{code}⟩"


def is_reserved(piece: str) -> bool:
    """Whether a piece is a placeholder, an edit operation or a language tag."""
    return piece in PLACEHOLDERS or piece in EDITS or bool(re.fullmatch(rf"⟨{_LANGUAGE_CODE.pattern}⟩", piece))


class Vocabulary(ABC):
    """Token ids ``0 .. size-1``; 0 = padding, 1 = unknown, 2 = begin, 3 = end of sentence.

    Attributes:
        size: number of tokens.
        placeholders: ids of ``⟨ph0⟩`` .. ``⟨ph15⟩``, in order; empty where the vocabulary has none.
    """

    pad, unk, bos, eos = PAD, UNK, BOS, EOS
    size: int
    placeholders: tuple[int, ...]

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The content of the vocabulary's file."""

    @abstractmethod
    def encode(self, text: str, *, reserved: bool | Collection[str] = False) -> list[int]:
        """Ids of a text, without begin and end.

        Args:
            text: any text; lone surrogates count as U+FFFD.
            reserved: whether reserved strings in the text (``⟨ph3⟩``, ``⟨de⟩``) become their reserved token. By
                default they are spelled out like any other text, so that nothing a user types acts as one; a
                collection lets exactly those strings through.
        """

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; padding, begin and end are dropped. Raises VocabularyError for an id out of range."""

    @abstractmethod
    def id_of(self, piece: str) -> int:
        """Id of a piece. Raises VocabularyError where there is no such piece."""

    @abstractmethod
    def piece_of(self, token: int) -> str:
        """Piece of an id. Raises VocabularyError for an id out of range."""

    def reads(self, character: str) -> bool:
        """Whether a character, or what it is read as, has pieces: it is not unknown, nor spelt in bytes alone.

        A letter or digit of ASCII is one token also where that is its byte, and no training text is without them.
        """
        ids = self.encode(character)
        if self.unk in ids or not self.decode(ids).strip():
            return False
        return (character.isascii() and character.isalnum()) or not any(map(self._is_byte, ids))

    def _is_byte(self, token: int) -> bool:
        return bool(_BYTE.fullmatch(self.piece_of(token))) or "\ufffd" in self.decode([token])

    def language_tag(self, code: str) -> int:
        """Id of a language's tag. Raises VocabularyError where the vocabulary has no such tag."""
        return self.id_of(language_piece(code))


class StoredVocabulary(Vocabulary):
    """A vocabulary that has a file of its own, and its pieces in order of their ids."""

    _pieces: Sequence[str]
    _ids: Mapping[str, int]

    def id_of(self, piece: str) -> int:
        if piece not in self._ids:
            raise VocabularyError(f"the vocabulary of {self.size} pieces has no piece {piece!r}")
        return self._ids[piece]

    def piece_of(self, token: int) -> str:
        return self._pieces[self._checked(token)]

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.size:
            raise VocabularyError(f"token ids must be 0 to {self.size - 1}, but one is {token}")
        return int(token)

    @classmethod
    @abstractmethod
    def from_bytes(cls, content: bytes) -> Self:
        """A vocabulary from its file's content. Raises VocabularyError where it is not one of this kind."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A vocabulary from its file. Raises VocabularyError where it cannot be read."""
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except OSError as error:
            raise VocabularyError(f"cannot read the vocabulary {path}: {error.strerror}") from error
        except VocabularyError as error:
            raise VocabularyError(f"{path}: {error}") from error
