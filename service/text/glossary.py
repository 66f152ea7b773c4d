"""Finds a glossary's terms in a text: the longest match first, at word boundaries, however many terms there are.

Text and terms are cut into atoms: a word, a run of white space, any other character; in scripts without spaces between
words every character is an atom. A term matches where its atoms stand, so never inside a word, and a line break or two
spaces are as good as one.

Case counts only for terms with capitals inside a word (``iPhone``, ``NATO``). Where such a term and one that ignores
case both match, the longer one wins, and of equally long ones the one that is written as the text is.

The search is Aho and Corasick's ("Efficient string matching", 1975) by ahocorasick-rs (Apache 2.0), which finds the
leftmost longest matches in time linear in the text. It matches characters, so each atom that a term has stands as one.
Its peer pyahocorasick loses matches in that mode: where a longer term breaks off behind the end of a shorter one. With
100,000 terms of one to four words it is ready in 3 s, in 53 MB, and searches 20,000 characters in 16 ms. (Measured.)
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ahocorasick_rs import AhoCorasick, MatchKind

from tandem.models.text import normalise
from tandem.service.errors import InvalidOption
from tandem.service.text.masking import Hidden
from tandem.service.text.protect import has_unspaced, is_unspaced
from tandem.service.text.spans import JOINERS, Span, atoms

MAX_GLOSSARY, MAX_TERM = 5_000, 500
"""Terms of a glossary that comes with a request, and characters of a term."""
MAX_STORED_GLOSSARY = 100_000
"""Terms of one language pair of a glossary that is stored."""
_SURROGATES = 0xD800, 0xE000
_MAX_ATOMS = sys.maxunicode - (_SURROGATES[1] - _SURROGATES[0])

Match = tuple[int, int, Hidden]
"""First atom, the one behind the last, and what they are."""


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """Terms that are all written in one way: as they are, or case-folded.

    Attributes:
        hidden: by number of the term.
        characters: by atom, what stands for it; nothing stands for others than those that terms have.
        longest: atoms of a term.
        search: finds terms in what stands for a text.
    """

    hidden: Sequence[Hidden]
    characters: Mapping[str, str]
    longest: int
    search: AhoCorasick

    @classmethod
    def of(cls, terms: Mapping[tuple[str, ...], Hidden]) -> _Terms:
        """By their atoms. Raises InvalidOption where those are more than there are characters."""
        atoms = dict.fromkeys(atom for term in terms for atom in term)
        if len(atoms) > _MAX_ATOMS:
            raise InvalidOption("glossary", f"may hold at most {_MAX_ATOMS} different words", len(atoms))
        characters = {atom: _character(number) for number, atom in enumerate(atoms, 1)}
        written = ["".join(map(characters.__getitem__, term)) for term in terms]
        search = AhoCorasick(written, matchkind=MatchKind.LeftmostLongest, store_patterns=False)
        return cls(list(terms.values()), characters, max(map(len, terms), default=0), search)

    def matches(self, text: str, start: int, end: int | None = None) -> Iterator[Match]:
        """The leftmost longest in a stretch of what stands for a text."""
        for number, first, behind in self.search.find_matches_as_indexes(text[start:end]):
            yield start + first, start + behind, self.hidden[number]


class _Search:
    """The matches of some terms in a text, from any place on: the places that are asked for only grow."""

    def __init__(self, terms: _Terms, atoms: Sequence[str]) -> None:
        self._terms = terms
        self._text = "".join([terms.characters.get(atom, "\0") for atom in atoms])
        self._ahead = list(terms.matches(self._text, 0))[::-1]

    def next(self, place: int) -> Match | None:
        """The leftmost longest match from a place on.

        What was found ahead holds for every place between two matches. Behind a place inside a match there may be
        others that overlapped it, so there, and only there, it is looked again.
        """
        while self._ahead and self._ahead[-1][1] <= place:
            self._ahead.pop()
        if self._ahead and self._ahead[-1][0] < place:
            end = self._ahead.pop()[1]
            found = self._terms.matches(self._text, place, end + self._terms.longest)
            self._ahead += list(takewhile(lambda match: match[0] < end, found))[::-1]
        return self._ahead[-1] if self._ahead else None


@dataclass(frozen=True, slots=True, eq=False)
class Glossary:
    """Terms, ready to be found.

    Attributes:
        loose: those that ignore case, by their case-folded atoms.
        strict: those for which case counts.
    """

    loose: _Terms
    strict: _Terms

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> Glossary:
        """Of source terms and their target terms. Of terms that differ in nothing that counts, the first is taken.

        Raises:
            InvalidOption: they have more different words than can be told apart, about a million.
        """
        loose: dict[tuple[str, ...], Hidden] = {}
        strict: dict[tuple[str, ...], Hidden] = {}
        for source, target in terms.items():
            atoms = _atoms_alone(normalise(source).strip())
            written = " ".join(normalise(target).split())
            if not atoms or not written:
                continue
            hidden = Hidden("", written, source)
            if has_inner_capitals(source):
                strict.setdefault(atoms, hidden)
            else:
                loose.setdefault(tuple(map(str.casefold, atoms)), hidden)
        return cls(_Terms.of(loose), _Terms.of(strict))

    def __bool__(self) -> bool:
        return bool(self.loose.hidden or self.strict.hidden)

    def find(self, text: str) -> list[tuple[Span, Hidden]]:
        """The terms in a normalised text, in order, none overlapping another."""
        if not self:
            return []
        atoms = list(_atoms(text))
        strict = _Search(self.strict, [atom for _, _, atom in atoms])
        loose = _Search(self.loose, [atom.casefold() for _, _, atom in atoms])
        found: list[tuple[Span, Hidden]] = []
        place = 0
        while matches := [match for match in (strict.next(place), loose.next(place)) if match is not None]:
            first, place, match = min(matches, key=lambda match: (match[0], -match[1]))  # of equal ones the strict
            span = Span(atoms[first][0], atoms[place - 1][1])
            found.append((span, Hidden(text[span.start : span.end], match.target, match.term)))
        return found


def _character(number: int) -> str:
    """The character of that number; no text that can be searched holds half a one."""
    return chr(number if number < _SURROGATES[0] else number + _SURROGATES[1] - _SURROGATES[0])


def has_inner_capitals(text: str) -> bool:
    """Whether some word of it has a capital other than its first letter."""
    return not text.islower() and any(any(map(str.isupper, word[1:])) for word in atoms().findall(text))


def capitalised(text: str) -> str:
    """The text with a capital first letter, unless its first word has capitals of its own."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return text if any(character.isupper() for character in first) else text[:1].title() + text[1:]


def _atoms(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and text of each atom; runs of white space are one space."""
    for match in atoms().finditer(text):
        atom, (start, end) = match[0], match.span()
        if atom.isspace():
            yield start, end, " "
        elif has_unspaced(atom):
            yield from _characters(text, start, end)
        else:
            yield start, end, atom


def _atoms_alone(text: str) -> tuple[str, ...]:
    """The atoms of a text; quicker than to ask where they stand, too."""
    if has_unspaced(text):
        return tuple(atom for _, _, atom in _atoms(text))
    return tuple([" " if atom.isspace() else atom for atom in atoms().findall(text)])


def _characters(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Characters with the marks that follow them; words of other scripts in between stay whole."""
    first = start
    for place in range(start + 1, end + 1):
        inside = place < end and (
            unicodedata.category(text[place])[0] == "M"
            or text[place] in JOINERS
            or not (is_unspaced(text[place]) or is_unspaced(text[first]))
        )
        if not inside:
            yield first, place, text[first:place]
            first = place
