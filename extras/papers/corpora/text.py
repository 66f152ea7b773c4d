"""What happens to the text of a corpus: normalisation, tokens, case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import sacremoses

from tandem.extras.evaluation.tokens import moses_line
from tandem.extras.papers.corpora.rows import Row
from tandem.extras.papers.corpora.specs import TextProcessing

UNKNOWN = "UNK"
_CEDILLAS = str.maketrans("ŞşŢţ", "ȘșȚț")


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
        text = moses_line(text, language, dashes=form.tokens == "moses-dashes")
    if form.headline:
        text = headline_form(text)
    return text.lower() if form.lowercase else text


def headline_form(text: str) -> str:
    """As Gigaword's headlines are distributed: lowercased, every digit ``#``, unknown words ``UNK``."""
    words = re.sub(r"\d", "#", text).split()
    return " ".join(UNKNOWN if word in ("<unk>", UNKNOWN) else word.lower() for word in words)
