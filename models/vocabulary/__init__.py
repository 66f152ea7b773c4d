"""Text to token ids and back: sentencepiece with byte fallback, a list of words, or a public model's own pieces.

Needs no torch.
"""

from __future__ import annotations

from typing import Literal

from tandem.models.vocabulary.base import (
    BOS,
    DELETE,
    EDITS,
    EOS,
    KEEP,
    PAD,
    PLACEHOLDERS,
    UNK,
    Vocabulary,
    language_piece,
)
from tandem.models.vocabulary.bytepairs import BytePairVocabulary
from tandem.models.vocabulary.listed import ListedVocabulary
from tandem.models.vocabulary.mapped import MappedVocabulary
from tandem.models.vocabulary.pieces import SentencePieceVocabulary, train_sentencepiece
from tandem.models.vocabulary.tagged import TaggedVocabulary, untagged
from tandem.models.vocabulary.words import WordVocabulary

VocabularyKind = Literal["sentencepiece", "words", "mapped", "byte-pairs"]
KINDS: dict[VocabularyKind, tuple[type[ListedVocabulary | SentencePieceVocabulary | WordVocabulary], str]] = {
    "sentencepiece": (SentencePieceVocabulary, "model"),
    "words": (WordVocabulary, "words"),
    "mapped": (MappedVocabulary, "json"),
    "byte-pairs": (BytePairVocabulary, "json"),
}
"""Every kind of vocabulary by its name in manifests: its class, and how its files end."""

__all__ = [
    "BOS",
    "DELETE",
    "EDITS",
    "EOS",
    "KEEP",
    "KINDS",
    "PAD",
    "PLACEHOLDERS",
    "UNK",
    "BytePairVocabulary",
    "ListedVocabulary",
    "MappedVocabulary",
    "SentencePieceVocabulary",
    "TaggedVocabulary",
    "Vocabulary",
    "VocabularyKind",
    "WordVocabulary",
    "language_piece",
    "train_sentencepiece",
    "untagged",
]
