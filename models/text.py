"""The one normalisation that training text and served text share.

A model must see at serving time what it saw in training, so both sides call ``normalise`` and nothing else.
"""

from __future__ import annotations

import re
import unicodedata

# Cc without newline and tab, Cs (lone surrogates), the byte-order mark, and the 66 noncharacters.
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)
_REMOVED = re.compile(f"[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\ud800-\udfff\ufeff{_NONCHARACTERS}]")
_LINE_ENDS = re.compile(r"\r\n?")
# Marks of a combining class, and the three that decompose into such: the time of unicodedata grows with the square of a
# run of them that is out of order, and it holds the interpreter meanwhile.
_MARKS = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x1F000)))) + "\u0f73\u0f75\u0f81"
_LONG_RUN = re.compile(f"[{_MARKS}]{{32,}}")


def normalise(text: str) -> str:
    r"""Text in NFC, with ``\n`` line ends and without control characters, lone surrogates and noncharacters.

    Tabs and newlines stay; ``\r\n`` and ``\r`` become ``\n`` so that lines never run together. Characters are removed
    before composing, so that the result is a fixed point: ``normalise(normalise(t)) == normalise(t)``.
    """
    kept = _REMOVED.sub("", _LINE_ENDS.sub("\n", text))
    if unicodedata.is_normalized("NFC", kept):
        return kept
    return unicodedata.normalize("NFC", _LONG_RUN.sub(_in_order, kept))


def _in_order(run: re.Match[str]) -> str:
    """Marks in canonical order, which NFC would put them in (Unicode Standard, section 3.11), quickly."""
    return "".join(sorted("".join(map(_decomposed, run[0])), key=unicodedata.combining))


def _decomposed(mark: str) -> str:
    return unicodedata.normalize("NFD", mark)
