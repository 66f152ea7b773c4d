"""What happens to the text of a corpus: normalisation, tokens, case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import rjieba
import sacremoses

from training.corpora.rows import Row
from training.corpora.specs import TextProcessing

UNKNOWN = "UNK"
_HAN_GAP = re.compile(r"(?<=[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef])\s+(?=[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef])")
_CEDILLAS = str.maketrans("ŞşŢţ", "ȘșȚț")


@cache  # its tables take a while to load, Chinese ones most of a second
def _tokenizer(language: str) -> Any:
    return sacremoses.MosesTokenizer(language)


@cache
def _normalizer(language: str) -> Any:
    return sacremoses.MosesPunctNormalizer(language, perl_parity=True, post_remove_control_chars=True)


def process_rows(form: TextProcessing, languages: Sequence[str], evaluation: bool, rows: Sequence[Row]) -> list[Row]:
    """Rows in the form of a corpus.

    Args:
        form: what to do.
        languages: the language of every field, the target's last; further references are in the target's.
        evaluation: whether the rows are of a validation or test set.
        rows: what is distributed.
    """
    last = len(languages) - 1
    return [
        tuple(process_line(form, languages[min(column, last)], evaluation, text) for column, text in enumerate(row))
        for row in rows
    ]


def process_line(form: TextProcessing, language: str, evaluation: bool, text: str) -> str:
    """One line in the form of a corpus; the arguments are those of :func:`process_rows`."""
    if form == TextProcessing():
        return text
    text = " ".join(text.split())
    if form.apostrophes and evaluation:
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
