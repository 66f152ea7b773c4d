"""Nouns in a text that its models may lose: those that lexicons know and that the first vocabulary spells in pieces.

A small model has read such a word seldom, and writes another one ("Löffel" was "publisher"). Of those that translations
lacked, references had the lexicon's word in six to seven of ten. Only nouns: they can stand behind a placeholder,
whereas a verb has to be written where its language wants it. German compounds count where both parts are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from extras.rewriting.lexicon import Lexicon
from models.vocabulary import Vocabulary
from service.text.masking import Hidden, HiddenPlace
from service.text.spans import Span

_LEAST = 4  # letters
_LOOK_BACK = 20  # characters, in which what stands before a noun has its place
_WORD = re.compile(r"(?<![\w@/.-])(?<!\w['’]s)[^\W\d_]+(?:-[^\W\d_]+)*(?![\w@/'’]|\.\w)")
_CAPITALS = ("de",)  # languages that begin every noun with a capital, and write compounds as one word
_APART = ("en",)  # languages that write the parts of compounds one after another
_LINKS = ("", "s", "es", "n", "en", "er", "e")  # what German puts between the parts
_LEAST_PARTS = 3, 4  # letters of a compound's first part, and of its last
# What stands before a noun, of those that do not.
_BEFORE = {
    "en": re.compile(
        r"\b(?:the|an?|this|that|these|those|my|your|his|her|our|their|its|every|each|some|any|no|many|few|two|three|of)"
        r" \Z",
        re.IGNORECASE,
    ),
    "fr": re.compile(
        r"(?:\b(?:les?|la|une?|des|du|de|mon|ma|mes|ton|ta|tes|son|sa|ses|nos|notre|vos|votre|leurs?|ces?|cette|cet"
        r"|quelques|chaque|aux?|deux|trois) |\b[ld]['’])\Z",
        re.IGNORECASE,
    ),
}


@dataclass(frozen=True, slots=True)
class Nouns:
    """Finds nouns that may get lost in sentences of one language.

    Attributes:
        hops: of each model that the text goes through, its lexicon, the language it reads, and the one it writes.
        vocabulary: that the first model reads with.
    """

    hops: Sequence[tuple[Lexicon, str, str]]
    vocabulary: Vocabulary

    def find(self, text: str) -> list[HiddenPlace]:
        """Those in a normalised sentence, in order; the reply does not speak of them."""
        return [*self._found(text)]

    def _found(self, text: str) -> Iterator[HiddenPlace]:
        lexicon, source, target = self.hops[0]
        for number, match in enumerate(_WORD.finditer(text)):
            part, before = match[0], text[max(0, match.start() - _LOOK_BACK) : match.start()]
            # The first capital of a sentence says nothing: there a word is read as it is written elsewhere.
            word = part if number else lexicon.spelling(source, target, part.casefold())
            if len(word) < _LEAST:
                continue
            first, ways = self._simple(word, before, begins=not number) or self._compound(word)
            if ways and len(self.vocabulary.encode(part)) > 1:
                beginnings = tuple(dict.fromkeys(map(_beginning, ways)))
                yield Span(*match.span()), Hidden(part, first + ways[0], part, asked=False, accepted=beginnings)

    def _simple(self, word: str, before: str, *, begins: bool) -> tuple[str, tuple[str, ...]] | None:
        """Nothing, and what the lexicons make of a word; None where they do not know it, or it is no noun.

        Args:
            word: of a sentence.
            before: what stands before it.
            begins: whether it is the sentence's first one.
        """
        ways = self._ways(word)
        return ("", ways) if ways and self._is_noun(word, before, ways, begins=begins) else None

    def _compound(self, word: str) -> tuple[str, tuple[str, ...]]:
        """What stands for the first part of a compound that the lexicon does not know, and for the last.

        The shortest first part counts. Nothing where it does not know both, or the translation has no such compounds.
        """
        lexicon, source, target = self.hops[0]
        known = lexicon.directions.get((source, target), {})
        if source not in _CAPITALS or target not in _APART or len(self.hops) > 1 or not word[0].isupper():
            return "", ()
        shortest, shortest_last = _LEAST_PARTS
        cuts = () if lexicon.translations(source, target, word) else range(shortest, len(word) - shortest_last + 1)
        for cut in cuts:
            first, last = word[:cut], word[cut].upper() + word[cut + 1 :]
            stems = [first.removesuffix(link) for link in _LINKS if first.endswith(link)] if last in known else ()
            spelled = (way for stem in stems if len(stem) >= shortest for way in (stem, stem.lower()))
            if (found := next(filter(known.__contains__, spelled), None)) is not None:
                return f"{known[found][0]} ", self._ways(last)
        return "", ()

    def _ways(self, word: str) -> tuple[str, ...]:
        """What it is in the last translation, best first; nothing where a lexicon does not know it, or repeats it."""
        ways: tuple[str, ...] = (word,)
        for lexicon, source, target in self.hops:
            found = [lexicon.translations(source, target, way) for way in ways]
            if not found[0] or found[0][0].casefold() == ways[0].casefold():
                return ()
            ways = tuple(dict.fromkeys(way for some in found for way in some))
        return ways

    def _is_noun(self, word: str, before: str, ways: Sequence[str], *, begins: bool) -> bool:
        """Whether a known word is taken for one; a capital inside a sentence is a name's where nouns have none."""
        (lexicon, source, between), target = self.hops[0], self.hops[-1][2]
        if source in _CAPITALS or word[0].isupper():
            # "Gute" may be known as "gute" alone: then it is none.
            return source in _CAPITALS and word[0].isupper() and word in lexicon.directions[source, between]
        if target in _CAPITALS:  # what begins a sentence may be a verb all the same, which asks for something
            return not begins and all(way[0].isupper() for way in ways)
        return source in _BEFORE and bool(_BEFORE[source].search(before))


def _beginning(word: str) -> str:
    """What a word has in all of its forms, nearly."""
    return word[: max(4, len(word) - 2)].casefold()
