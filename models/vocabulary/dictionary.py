"""What a word model that met a word it does not know falls back on: translations of single words.

Their file is UTF-8 with one entry a line, three fields with tabs between: the source's number, its word, the
translation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tandem.models.errors import VocabularyError


def numbered_entries(content: bytes, kind: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file with an entry on each, from 1 on, in their fields. Raises VocabularyError: not UTF-8."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise VocabularyError(f"a {kind} must be UTF-8: {error}") from error
    for number, line in enumerate(lines[:-1] if not lines[-1] else lines, 1):
        yield number, line.split("\t")


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Translations of single words, for each source of a model its own.

    Attributes:
        sources: per source, from its words to the target's; shorter than the model's sources where the last have none.
    """

    sources: tuple[Mapping[str, str], ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def translate(self, source: int, word: str) -> str:
        """The translation of a word of that source, or the word itself: mostly names and numbers are not held."""
        return self.sources[source].get(word, word) if source < len(self.sources) else word

    def to_bytes(self) -> bytes:
        """The content of the dictionary's file, its entries in order."""
        return "".join(
            f"{source}\t{word}\t{entries[word]}\n"
            for source, entries in enumerate(self.sources)
            for word in sorted(entries)
        ).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Dictionary:
        """A dictionary from its file's content.

        Raises:
            VocabularyError: not UTF-8, or a line that is no entry; the message names the first one.
        """
        sources: dict[int, dict[str, str]] = {}
        for number, fields in numbered_entries(content, "dictionary"):
            words = fields[1:]
            if len(fields) != 3 or not (fields[0].isascii() and fields[0].isdecimal()) or len(fields[0]) > 2:
                raise VocabularyError(f"line {number} must be a source's number, its word and the target's, with tabs")
            if any(word.split() != [word] for word in words):
                raise VocabularyError(f"line {number}: {words} must be two words, without white space")
            sources.setdefault(int(fields[0]), {})[words[0]] = words[1]
        return cls(tuple(sources.get(source, {}) for source in range(max(sources, default=-1) + 1)))
