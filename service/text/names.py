"""Names in a text, as the lexicons of what translates it know them: small models lose or garble them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from models.lexicon import WORD, Lexicon
from service.text.masking import Hidden, HiddenPlace
from service.text.spans import Span

# How men and women are addressed: as it is read, and as it is written. Much of what models learn from is older or more
# solemn than letters are, and "Herr Müller" was "Lord Müller".
_BEFORE_WIFE = ("eine", "einer", "hre", "hrer", "nsere", "nserer", "eure", "eurer", "deren", "dessen")
_NO_WIFE = "".join(f"(?<!{end} )" for end in _BEFORE_WIFE)
_READ = {"de": ("Herrn?", f"{_NO_WIFE}Frau"), "en": (r"Mr\.?", r"Mrs\.?|Ms\.?"), "fr": (r"M\.|Monsieur", "Mme|Madame")}
_WRITTEN = {"de": ("Herr", "Frau"), "en": ("Mr.", "Ms."), "fr": ("M.", "Mme")}
# What is addressed so and has no name.
_OFFICES = re.compile(
    "Abgeordnete|Bürgermeister|Christus|Direktor|Doktor|Gott|Jesus|Kanzler|Kolleg|Minister|Nachbar|Pfarrer|Präsident"
    "|Professor|Vorsitzende|Chairman|Chairwoman|Justice|Mayor|Minister|President|Secretary|Speaker|Président|Ministre"
)


@cache
def _words(language: str, target: str) -> re.Pattern[str]:
    """A word, with the address and titles before it.

    What stands before one inside a sentence is another one, and nothing that ends or opens one. A word that a full stop
    follows there is an abbreviation.
    """
    man, woman = _READ.get(language, ("(?!)", "(?!)"))
    # "Anna's" is of Anna; but German writes it much alike, and whole it is translated better (0.3 BLEU).
    whole = language != "en" or target == "de"
    word = WORD if whole else WORD.replace("['’-]", "(?!['’]s\\b)['’-]")
    return re.compile(
        rf"(?P<inside>(?<=[\w,;)] ))?(?<![\w@/.-])(?:(?:(?P<man>{man})|(?P<woman>{woman})) )?"
        rf"(?P<title>(?:(?:Dr|Prof)\. )*)(?P<word>{word})(?![\w@/]|\.\w|\.\s+\S)"
    )


@dataclass(frozen=True, slots=True)
class Names:
    """Finds names in sentences of one language. Behind a title or an address every word with a capital is one.

    Attributes:
        hops: of each model that the text goes through, its lexicon, the language it reads, and the one it writes.
    """

    hops: Sequence[tuple[Lexicon, str, str]]

    def __bool__(self) -> bool:
        known = [bool(lexicon.directions.get((source, target))) for lexicon, source, target in self.hops]
        return bool(known) and all(known)

    def find(self, text: str) -> list[HiddenPlace]:
        """The names in a normalised sentence, in order; the reply does not speak of them."""
        return [*self._found(text)] if self else []

    def _found(self, text: str) -> Iterator[HiddenPlace]:
        words = [
            match for match in _words(self.hops[0][1], self.hops[-1][2]).finditer(text) if match["word"][0].isupper()
        ]
        may_be = [(match, name) for match in words if (name := self._name(match, beside=True)) is not None]
        begins, ends = {match.start() for match, _ in may_be}, {match.end() for match, _ in may_be}
        for match, name in may_be:
            addressed = self._address(match)
            beside = match.end() + 1 in begins or match.start() - 1 in ends
            if addressed is not None:
                yield self._place(match, addressed + name, at_once=True)
            elif beside or self._name(match, beside=False) is not None:
                yield self._place(match, name, at_once=False)

    def _place(self, match: re.Match[str], name: str, *, at_once: bool) -> HiddenPlace:
        part = match[0]
        return Span(*match.span()), Hidden(part, name, part, asked=False, at_once=at_once)

    def _address(self, match: re.Match[str]) -> str | None:
        """How the last translation addresses whom the text does; empty where a title does."""
        written = _WRITTEN.get(self.hops[-1][2])
        if not (match["man"] or match["woman"]):
            return None
        if match["title"]:
            return ""
        address = (match["man"] or match["woman"]) if written is None else written[match["man"] is None]
        return f"{address} "

    def _name(self, match: re.Match[str], *, beside: bool) -> str | None:
        """What stands for a word in the last translation, None if it is no name in all languages on the way."""
        name, inside = match["word"], match["inside"] is not None
        if title := match["title"]:
            return title + name
        if match["man"] or match["woman"]:
            return None if _OFFICES.match(name) else name
        for lexicon, source, target in self.hops:
            found = lexicon.name(source, target, name, inside=inside, beside=beside)
            if found is None:
                return None
            name, inside, beside = found, True, True  # what is a name in one language is one in the next
        return name


NO_NAMES = Names(())
