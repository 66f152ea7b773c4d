"""Moses' tokens, as the papers count them; Chinese text is cut into words before."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import rjieba
import sacremoses

_HAN_GAP = re.compile(r"(?<=[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef])\s+(?=[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef])")


def moses_line(text: str, language: str, *, dashes: bool = False) -> str:
    """A line's tokens, separated by spaces; special characters are not escaped.

    Args:
        text: whose white space is single spaces.
        language: of the text, for its abbreviations.
        dashes: whether dashes inside words are split (``@-@``).
    """
    if language == "zh":
        text = segment_chinese(text)
    # Not escaped: &apos; for ' would change no token, only be in the way of text that users type.
    tokens: str = _tokenizer(language).tokenize(text, aggressive_dash_splits=dashes, return_str=True, escape=False)
    return tokens


def segment_chinese(text: str) -> str:
    """Words separated by spaces; spaces that stood between Chinese characters before count for nothing."""
    return " ".join(word for word in rjieba.cut(_HAN_GAP.sub("", text)) if not word.isspace())


@cache  # its tables take a while to load, Chinese ones most of a second
def _tokenizer(language: str) -> Any:
    return sacremoses.MosesTokenizer(language)
