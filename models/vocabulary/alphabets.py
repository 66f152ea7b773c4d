"""Characters that a vocabulary is to have as pieces, however rare they are in its training text.

What is no piece is spelt in bytes: three or four tokens that a small model has hardly ever read, where one would do.
Real corpora have few of the signs that people type into forms, tables and code, so a trainer that goes by frequency
leaves ``#``, ``|`` or ``→`` out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from types import MappingProxyType

from tandem.models.errors import VocabularyError


def _assigned(first: int, last: int) -> str:
    """The characters of a range that are letters, numbers, marks or signs, and that NFC leaves as they are."""
    found = map(chr, range(first, last + 1))
    return "".join(c for c in found if unicodedata.category(c)[0] in "LMNPS" and unicodedata.is_normalized("NFC", c))


_TYPOGRAPHY = "‐–—‘’‚“”„†‡•…‰′″‹›‼⁄⁇⁈⁉‾⁂"
_CURRENCY = "₤₦₩₪₫€₴₹₺₽₿"
_LETTERLIKE = "№℗℠™℮ΩμπΔΣαβγλσφ"
_ARROWS = "←↑→↓↔↕↩↪⇐⇒⇔⇧⌘⌥"
_BULLETS = "■□▪▫▲►▶▼◀◄◆◇○●◦★☆☐☑☒✓✔✕✖✗✘❌❤➔➜"
_MATHEMATICS = "∀∂∃∅∆∇∈∉∏∑−∗∘√∝∞∠∧∨∩∪∫∴∼≅≈≠≡≤≥≪≫⊂⊃⊆⊕⋅"
_SCRIPTS = "⁰⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉⅓⅔⅛"
_BOXES = "│─┌┐└┘├┤"
_NOTES = "♀♂♠♣♥♦♪♫"

ALPHABETS = MappingProxyType(
    {
        "ascii": _assigned(0x21, 0x7E),
        "latin": _assigned(0xA1, 0x17F),  # Latin-1 Supplement and Latin Extended-A
        "greek": _assigned(0x386, 0x3CE),
        "cyrillic": _assigned(0x400, 0x45F),
        "signs": "".join(
            dict.fromkeys(
                _TYPOGRAPHY + _CURRENCY + _LETTERLIKE + _ARROWS + _BULLETS + _MATHEMATICS + _SCRIPTS + _BOXES + _NOTES
            )
        ),
    }
)
"""Sets of characters by name: printable ASCII, Latin, Greek and Cyrillic letters, and signs of typography, currencies,
mathematics, lists, arrows and tables."""


def characters(alphabets: Collection[str]) -> str:
    """The characters of all named sets in one string, each once.

    Raises:
        VocabularyError: a name is none of :data:`ALPHABETS`.
    """
    if unknown := [name for name in alphabets if name not in ALPHABETS]:
        raise VocabularyError(f"alphabets must be some of {', '.join(ALPHABETS)}, but one is {unknown[0]!r}")
    return "".join(dict.fromkeys("".join(ALPHABETS[name] for name in alphabets)))
