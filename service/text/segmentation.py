"""Where sentences end.

The rules are sentencex's (Wikimedia, MIT, Rust): maintained, offline, no model, abbreviation lists for some 240
languages with fallbacks, linear in time on hostile input, and it prefers two sentences in one piece to one in two.
Looked at and not taken: pysbd (unmaintained), blingfire (dormant, one rule set for all languages), sentence-splitter
(few languages, dormant), wtpsplit (better on unpunctuated text, but needs a model and a runtime of its own).
"""

from __future__ import annotations

import re

import sentencex  # type: ignore[import-untyped]

# A lone initial or title ("M. Dupont", "J. Doe") is never a sentence of its own.
_INITIAL = re.compile(r"\W*[^\W\d_]\.\s*")


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of one line, with the white space around them; their concatenation is ``text``.

    Args:
        text: one line of normalised text.
        language: code such as ``de`` or ``pt-BR``; an unknown one gets the rules of its fallback.
    """
    if not text:
        return []
    pieces: list[str] = list(sentencex.segment(language.split("-")[0], text))
    if "".join(pieces) != text:  # the library's promise, on which the layout rests
        return [text]
    merged: list[str] = []
    for piece in pieces:
        if merged and (_INITIAL.fullmatch(merged[-1]) or not piece.strip()):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged
