"""A vocabulary that sets a language's tag before every text: the source side of one direction of a bundle of several.

Johnson et al. (2017), "Google's Multilingual Neural Machine Translation System", section 3: an artificial token at the
beginning of the source says which language to translate into.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tandem.models.vocabulary.base import Vocabulary


class TaggedVocabulary(Vocabulary):
    """Another vocabulary with ``⟨en⟩`` before what it encodes. A text without tokens stays without.

    Args:
        plain: the vocabulary itself.
        language: code of the language to translate into.

    Raises:
        VocabularyError: the vocabulary has no tag of that language.
    """

    def __init__(self, plain: Vocabulary, language: str) -> None:
        self.plain, self.language = plain, language
        self._tag = plain.language_tag(language)
        self.size = plain.size
        self.placeholders = plain.placeholders

    def encode(self, text: str, *, reserved: bool | Collection[str] = False) -> list[int]:
        ids = self.plain.encode(text, reserved=reserved)
        return [self._tag, *ids] if ids else ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, without the tag that they begin with."""
        return self.plain.decode(ids[1:] if len(ids) and ids[0] == self._tag else ids)

    def reads(self, character: str) -> bool:
        return self.plain.reads(character)

    def id_of(self, piece: str) -> int:
        return self.plain.id_of(piece)

    def piece_of(self, token: int) -> str:
        return self.plain.piece_of(token)

    def to_bytes(self) -> bytes:
        return self.plain.to_bytes()


def untagged(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary itself, without a tag that it may set."""
    return vocabulary.plain if isinstance(vocabulary, TaggedVocabulary) else vocabulary
