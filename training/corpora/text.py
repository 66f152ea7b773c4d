"""What happens to the text of a corpus: normalisation, tokens, case; and which training pairs are left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Protocol, cast

import rjieba
import sacremoses

from training.corpora.columns import Row
from training.corpora.specs import Cleaning, TextForm

UNKNOWN = "UNK"
_HAN_GAP = re.compile(r"(?<=[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef])\s+(?=[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef])")
_CEDILLAS = str.maketrans("ŞşŢţ", "ȘșȚț")


class _Tokenizer(Protocol):
    def tokenize(self, text: str, *, aggressive_dash_splits: bool, return_str: bool, escape: bool) -> str: ...


class _Normalizer(Protocol):
    def normalize(self, text: str) -> str: ...


@cache  # its tables take a while to load, Chinese ones most of a second
def _tokenizer(language: str) -> _Tokenizer:
    return cast(_Tokenizer, sacremoses.MosesTokenizer(language))


@cache
def _normalizer(language: str) -> _Normalizer:
    made = sacremoses.MosesPunctNormalizer(language, perl_parity=True, post_remove_control_chars=True)
    return cast(_Normalizer, made)


class TextProcessor:
    """Brings rows into the form of a corpus.

    Args:
        form: what to do.
        languages: the language of every field, the target's last; further references are in the target's.
        evaluation: whether the rows are of a validation or test set.
    """

    def __init__(self, form: TextForm, languages: Sequence[str], *, evaluation: bool) -> None:
        self._form = form
        self._languages = tuple(languages)
        self._evaluation = evaluation

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """The rows in the corpus' form."""
        last = len(self._languages) - 1
        return [
            tuple(self.line(text, self._languages[min(column, last)]) for column, text in enumerate(row))
            for row in rows
        ]

    def line(self, text: str, language: str) -> str:
        """One line in the corpus' form."""
        form = self._form
        if form == TextForm():
            return text
        text = " ".join(text.split())
        if form.apostrophes and self._evaluation:
            text = text.replace("’", "'")
        if form.comma_below and language == "ro":
            text = text.translate(_CEDILLAS)
        if form.punctuation:
            text = _normalizer(language).normalize(text)
        if form.tokens != "as-is":
            if language == "zh":
                text = segment_chinese(text)
            # Not escaped: &apos; for ' would change no token, only be in the way of text that users type.
            text = _tokenizer(language).tokenize(
                text, aggressive_dash_splits=form.tokens == "moses-dashes", return_str=True, escape=False
            )
        if form.headline:
            text = headline_form(text)
        return text.lower() if form.lowercase else text


def segment_chinese(text: str) -> str:
    """Words separated by spaces; spaces that stood between Chinese characters before count for nothing."""
    return " ".join(word for word in rjieba.cut(_HAN_GAP.sub("", text)) if not word.isspace())


def headline_form(text: str) -> str:
    """As Gigaword's headlines are distributed: lowercased, every digit ``#``, unknown words ``UNK``."""
    words = re.sub(r"\d", "#", text).split()
    return " ".join(UNKNOWN if word in ("<unk>", UNKNOWN) else word.lower() for word in words)


def is_clean(row: Row, cleaning: Cleaning | None) -> bool:
    """Whether a training pair stays: no empty side, and within the limits where there are any."""
    words = [len(text.split()) for text in row]
    if not all(words):
        return False
    return cleaning is None or (max(words) <= cleaning.max_words and max(words) <= cleaning.max_ratio * min(words))
