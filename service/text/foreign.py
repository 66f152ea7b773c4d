"""Signs and words that no model can read: of characters that its vocabulary only spells in bytes.

Emoji came back broken, a word in another script as something else, and 18,000 Chinese characters, sent as German, took
a worker 41 s. They come back as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain

from models.vocabulary import Vocabulary
from service.text.masking import Hidden, HiddenPlace
from service.text.spans import Span

_JOINED = "\u200d\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # what makes one emoji of several signs


class Alphabet:
    """The characters that a vocabulary has pieces for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known = frozenset(chain.from_iterable(map(vocabulary.piece_of, range(vocabulary.size))))

    def __contains__(self, character: str) -> bool:
        """Whether it is in a piece, or is read as something that is."""
        if character.isascii() or character in self._known:
            return True
        tokens = self._vocabulary.encode(character)
        return self._vocabulary.unk not in tokens and not any(map(self._is_byte, tokens))

    def _is_byte(self, token: int) -> bool:
        return "\ufffd" in self._vocabulary.decode([token])


def find_foreign(text: str, alphabets: Sequence[Alphabet]) -> list[HiddenPlace]:
    """Signs, and words without a known letter, in order; the reply does not speak of them.

    Args:
        text: normalised.
        alphabets: of all models that it goes through, each of which must know a character.
    """
    return [*_found(text, alphabets)] if not text.isascii() else []


def _found(text: str, alphabets: Sequence[Alphabet]) -> Iterator[HiddenPlace]:
    signs, letters = "", ""
    for character in sorted(set(text)):
        kind = unicodedata.category(character)[0]
        if kind in "LMNS" and not all(character in alphabet for alphabet in alphabets):
            signs, letters = (signs + character, letters) if kind == "S" else (signs, letters + character)
    ways = [rf"[{re.escape(signs)}][{re.escape(signs)}{_JOINED}]*"] if signs else []
    ways += [rf"(?<!\w)[{re.escape(letters)}]++(?!\w)"] if letters else []
    for match in re.finditer("|".join(ways), text) if ways else ():
        yield Span(*match.span()), Hidden.kept(match[0], asked=False)
