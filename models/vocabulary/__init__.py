"""Text to token ids and back: sentencepiece with byte fallback, or a list of words. Needs no torch."""

from __future__ import annotations

from models.vocabulary.base import BOS, DELETE, EDITS, EOS, KEEP, PAD, PLACEHOLDERS, UNK, Vocabulary, language_piece
from models.vocabulary.pieces import SentencePieceVocabulary, train_sentencepiece
from models.vocabulary.tagged import TaggedVocabulary, untagged
from models.vocabulary.words import WordVocabulary

__all__ = [
    "BOS",
    "DELETE",
    "EDITS",
    "EOS",
    "KEEP",
    "PAD",
    "PLACEHOLDERS",
    "UNK",
    "SentencePieceVocabulary",
    "TaggedVocabulary",
    "Vocabulary",
    "WordVocabulary",
    "language_piece",
    "train_sentencepiece",
    "untagged",
]
