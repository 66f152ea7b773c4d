"""Finds a glossary's terms in a text: the longest match first, at word boundaries, however many terms there are.

Text and terms are cut into atoms: a word, a run of white space, any other character; in scripts without spaces between
words every character is an atom. A term matches where its atoms stand, so never inside a word, and a line break or two
spaces are as good as one. Own code: a trie over atoms is a page, while Aho-Corasick libraries (pyahocorasick,
ahocorasick-rs) match characters, and know neither word boundaries nor which terms ignore case.

Case counts only for terms with capitals inside a word (``iPhone``, ``NATO``). Where such a term and one that ignores
case both match, the one that is written as the text is wins.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from models.text import normalise
from service.text.masking import Hidden
from service.text.protect import is_unspaced
from service.text.spans import Span

MAX_GLOSSARY, MAX_TERM = 5_000, 500
"""Terms of a glossary, and characters of a term: with a request or stored."""
_JOINERS = "\u200c\u200d"


@dataclass(slots=True)
class _Node:
    """Terms that begin alike: by their next atom, and the one that ends here."""

    following: dict[str, _Node] = field(default_factory=dict)
    hidden: Hidden | None = None

    def add(self, atoms: Sequence[str], hidden: Hidden) -> None:
        """A further term; of the same atoms, the first is kept."""
        node = self
        for atom in atoms:
            node = node.following.setdefault(atom, _Node())
        node.hidden = node.hidden or hidden

    def longest(self, atoms: Sequence[str], place: int) -> tuple[int, Hidden | None]:
        """The longest term that stands at a place, and its atoms; none where there is no term."""
        best: tuple[int, Hidden | None] = (0, None)
        node = self
        for end in range(place, len(atoms)):
            following = node.following.get(atoms[end])
            if following is None:
                break
            node = following
            if node.hidden is not None:
                best = end + 1 - place, node.hidden
        return best


@dataclass(frozen=True, slots=True)
class Glossary:
    """The terms of a request, ready to be found.

    Attributes:
        loose: those that ignore case, by their case-folded atoms.
        strict: those for which case counts.
    """

    loose: _Node
    strict: _Node

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> Glossary:
        """Of source terms and their target terms. Of terms that differ in nothing that counts, the first is taken."""
        found = cls(_Node(), _Node())
        for source, target in terms.items():
            atoms = [atom for _, _, atom in _atoms(normalise(source).strip())]
            written = " ".join(normalise(target).split())
            if not atoms or not written:
                continue
            hidden = Hidden("", written, source)
            if has_inner_capitals(source):
                found.strict.add(atoms, hidden)
            else:
                found.loose.add([atom.casefold() for atom in atoms], hidden)
        return found

    def __bool__(self) -> bool:
        return bool(self.loose.following or self.strict.following)

    def find(self, text: str) -> list[tuple[Span, Hidden]]:
        """The terms in a normalised text, in order, none overlapping another."""
        if not self:
            return []
        atoms = list(_atoms(text))
        written = [atom for _, _, atom in atoms]
        folded = [atom.casefold() for atom in written]
        found: list[tuple[Span, Hidden]] = []
        place = 0
        while place < len(atoms):
            strict, loose = self.strict.longest(written, place), self.loose.longest(folded, place)
            length, match = strict if strict[0] >= loose[0] else loose
            if match is None:
                place += 1
                continue
            span = Span(atoms[place][0], atoms[place + length - 1][1])
            found.append((span, Hidden(text[span.start : span.end], match.target, match.term)))
            place += length
        return found


def has_inner_capitals(text: str) -> bool:
    """Whether some word of it has a capital other than its first letter."""
    return any(any(character.isupper() for character in word[1:]) for word in _words().findall(text))


def capitalised(text: str) -> str:
    """The text with a capital first letter, unless its first word has capitals of its own."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return text if any(character.isupper() for character in first) else text[:1].title() + text[1:]


def _atoms(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and text of each atom; runs of white space are one space."""
    for match in _words().finditer(text):
        atom, (start, end) = match[0], match.span()
        if atom.isspace():
            yield start, end, " "
        elif any(map(is_unspaced, atom)):
            yield from _characters(text, start, end)
        else:
            yield start, end, atom


def _characters(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Characters with the marks that follow them; words of other scripts in between stay whole."""
    first = start
    for place in range(start + 1, end + 1):
        inside = place < end and (
            unicodedata.category(text[place])[0] == "M"
            or text[place] in _JOINERS
            or not (is_unspaced(text[place]) or is_unspaced(text[first]))
        )
        if not inside:
            yield first, place, text[first:place]
            first = place


@cache
def _words() -> re.Pattern[str]:
    r"""Words with their combining marks, which ``\w`` leaves out; white space; any other character alone."""
    marks = [code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    inside = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(rf"\w[\w{inside}{_JOINERS}]*|\s+|.", re.DOTALL)
