"""``preserve_formatting``: a sentence begins and ends as it does in the text, whatever the model made of it.

By rules of our own: it is three of them, and libraries that restore case or punctuation guess both from words, whereas
here the source says what they were.
"""

from __future__ import annotations

import re

_END = re.compile(r"[.!?…。！？．:：;；,，、\s]*\Z")
_SAME = str.maketrans("。．！？：；，、", "..!?:;,,")


def preserve(source: str, translation: str) -> str:
    """A translation that begins in the case in which its source begins, and ends in the same punctuation.

    Punctuation that is the same in another script stays as the translation has it.
    """
    if not translation.strip():
        return translation
    return _same_case(source, _same_end(source, translation))


def _same_end(source: str, translation: str) -> str:
    wanted, written = _end(source), _end(translation)
    if wanted.translate(_SAME) == written.translate(_SAME):
        return translation
    bare = translation.rstrip()
    return bare[: len(bare) - len(written)] + wanted


def _end(text: str) -> str:
    """The punctuation at the end, nothing where there is nothing else."""
    found = _END.search(text.rstrip())
    end = found[0].strip() if found else ""
    return end if end != text.strip() else ""


def _same_case(source: str, translation: str) -> str:
    first = source[_start(source) :][:1]
    place = _start(translation)
    char = translation[place : place + 1]
    if first.islower() and char.isupper() and not _is_abbreviation(translation[place:]):
        char = char.lower()
    elif first.isupper() and char.islower():
        char = char.upper()
    return translation[:place] + char + translation[place + 1 :]


def _start(text: str) -> int:
    """Where the first letter or digit is; behind the end where there is none."""
    return next((number for number, char in enumerate(text) if char.isalnum()), len(text))


def _is_abbreviation(text: str) -> bool:
    """Whether the first word is written in capitals wherever it stands: `NATO`, and English `I`."""
    word = re.match(r"\w+", text)
    return word is not None and (word[0] == "I" or any(char.isupper() for char in word[0][1:]))
