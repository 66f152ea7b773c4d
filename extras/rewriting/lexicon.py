"""What a bundle says of words and short phrases: their translations, learnt from aligned text (`tandem lexicon`).

They answer for what stands alone, and say how words in capitals are written elsewhere.

A file of them is UTF-8 with one entry a line, its fields parted by tabs: source language, target language, the word or
phrase, and its translations, the most frequent first; packed by gzip, for half a million entries are 5 MB.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.dictionary import numbered_entries

STAGE, FILE = "rewriting", "lexicon.tsv.gz"
"""The text stage that speaks for a lexicon, and the file that `tandem lexicon` gives a bundle."""

Direction = tuple[str, str]
"""Source and target language."""
Entries = Mapping[str, tuple[str, ...]]
"""Translations by word or phrase."""

WORD: Final = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
"""A word as lexicons have them."""
MOST_WORDS: Final = 5
PHRASE: Final = rf"{WORD}(?: {WORD}){{0,{MOST_WORDS - 1}}}"
"""A word, or a phrase of up to ``MOST_WORDS``, with a space between them."""


_PACKED = b"\x1f\x8b"  # how gzip's files begin
_MOST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Translations of words and phrases, best first.

    Attributes:
        directions: by source and target language.
    """

    directions: Mapping[Direction, Entries] = field(default_factory=dict)
    # By direction, of each entry without regard to capitals the spelling that comes first.
    _spellings: Mapping[Direction, Mapping[str, str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        spellings = {
            direction: {word.casefold(): word for word in sorted(entries, reverse=True)}
            for direction, entries in self.directions.items()
        }
        object.__setattr__(self, "_spellings", spellings)

    def __len__(self) -> int:
        return sum(map(len, self.directions.values()))

    def translations(self, source: str, target: str, word: str) -> tuple[str, ...]:
        """Those of a word or phrase, none where it is not known.

        Its own spelling counts first, then any with other capitals; but a name that is also a word is taken for the
        word. What is in capitals has its translations in capitals; what begins with a capital, where the lexicon
        has it without or it is a phrase, has them so too.
        """
        entries, folded = self.directions.get((source, target), {}), word.casefold()
        if word in entries and (folded not in entries or entries[word][0] != word):
            known = word
        elif folded in entries:
            known = folded
        elif folded in self._spellings.get((source, target), {}):
            known = self._spellings[source, target][folded]
        else:
            return ()
        found = entries[known]
        if known != word and word.isupper() and len(word) > 1:
            return tuple(text.upper() for text in found)
        if word[0].isupper() and (known != word or " " in word):
            return tuple(text[0].upper() + text[1:] for text in found)
        return found

    def spelling(self, source: str, target: str, word: str) -> str:
        """A word with the capitals that it has where it is known; as it is where it is not, or without them too."""
        if word in self.directions.get((source, target), {}):
            return word
        return self._spellings.get((source, target), {}).get(word.casefold(), word)

    def to_bytes(self) -> bytes:
        """The content of the lexicon's file, its lines in order, packed; the same lexicon gives the same bytes."""
        lines = "".join(
            "\t".join((*direction, word, *translations)) + "\n"
            for direction, entries in sorted(self.directions.items())
            for word, translations in sorted(entries.items())
        )
        return gzip.compress(lines.encode(), mtime=0)

    @classmethod
    def from_bytes(cls, content: bytes) -> Lexicon:
        """A lexicon from its file's content, packed or, as earlier versions wrote it, not.

        Raises:
            VocabularyError: not UTF-8, or a line that is no entry; the message names the first one.
        """
        if content.startswith(_PACKED):
            content = _unpacked(content)
        directions: dict[Direction, dict[str, tuple[str, ...]]] = {}
        for number, fields in numbered_entries(content, "lexicon"):
            if len(fields) < 4 or any(field != field.strip() or not field for field in fields):
                wanted = "two languages, a word or phrase and its translations, with tabs between"
                raise VocabularyError(f"line {number} must be {wanted}, but is {fields!r:.100}")
            source, target, word, *translations = fields
            directions.setdefault((source, target), {})[word] = tuple(translations)
        return cls(directions)


def _unpacked(content: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        lines = unpacking.decompress(content, _MOST_BYTES)
    except zlib.error as error:
        raise VocabularyError(f"a lexicon that does not unpack: {error}") from error
    if not unpacking.eof:
        raise VocabularyError(f"a lexicon must be whole, and have at most {_MOST_BYTES:,} bytes unpacked")
    return lines
