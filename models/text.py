"""What becomes of every text before a model sees it: ``normalise`` in training and in use, and then ``as_read``.

Whatever decodes text, a server, an evaluation, a proof, reads it in this one way.
"""

from __future__ import annotations

import re
import unicodedata

# Cc without newline and tab, Cs (lone surrogates), the byte-order mark, and the 66 noncharacters.
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)
# Control characters that are white space: removed they would leave two words as one.
_SPACES = dict.fromkeys((0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x1F, 0x85), " ")
_REMOVED = re.compile(f"[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\ud800-\udfff\ufeff{_NONCHARACTERS}]")
_LINE_ENDS = re.compile(r"\r\n?")
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The characters that begin and end embeddings, overrides and isolates of text that runs the other way."""
# Marks of a combining class, and the three that decompose into such: the time of unicodedata grows with the square of a
# run of them that is out of order, and it holds the interpreter meanwhile.
_MARKS = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x1F000)))) + "\u0f73\u0f75\u0f81"
_LONG_RUN = re.compile(f"[{_MARKS}]{{32,}}")
# What says only where a line may break, and which way text runs, the hyphen at which no line may, and ligatures, which
# PDFs give for letters.
_UNREAD = dict.fromkeys(map(ord, "\u00ad\u061c\u200b\u200e\u200f\u2060" + BIDI)) | {0x2011: "-"}
_UNREAD |= {ligature: unicodedata.normalize("NFKC", chr(ligature)) for ligature in range(0xFB00, 0xFB07)}


def normalise(text: str) -> str:
    r"""Text in NFC, with ``\n`` line ends and without control characters, lone surrogates and noncharacters.

    Control characters that are white space (form feeds, vertical tabs, separators, U+0085) become spaces. Tabs and
    newlines stay; ``\r\n`` and ``\r`` become ``\n`` so that lines never run together. Characters are removed before
    composing, so that the result is a fixed point: ``normalise(normalise(t)) == normalise(t)``.
    """
    kept = _REMOVED.sub("", _LINE_ENDS.sub("\n", text).translate(_SPACES))
    if unicodedata.is_normalized("NFC", kept):
        return kept
    return unicodedata.normalize("NFC", _LONG_RUN.sub(_in_order, kept))


def as_read(text: str) -> str:
    """A normalised text as models read it: single-spaced, without signs of where lines break and which way text runs.

    No word is another one for a soft hyphen in it, and no-break spaces are spaces.
    """
    return single_spaced(unbroken(text))


def unbroken(text: str) -> str:
    """A text without signs of where lines break and which way text runs; the hyphen at which none may is one like any
    other."""
    return text.translate(_UNREAD)


def is_unread(character: str) -> bool:
    """Whether a character says only where a line may break, or which way text runs."""
    return _UNREAD.get(ord(character), "") is None


def single_spaced(text: str) -> str:
    """A text in which every run of white space is one space, and none stands at its ends."""
    return " ".join(text.split())


def _in_order(run: re.Match[str]) -> str:
    """Marks in canonical order, which NFC would put them in (Unicode Standard, section 3.11), quickly."""
    return "".join(sorted("".join(map(_decomposed, run[0])), key=unicodedata.combining))


def _decomposed(mark: str) -> str:
    return unicodedata.normalize("NFD", mark)
