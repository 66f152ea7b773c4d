"""Names in a text, as the lexicons of what translates it know them: small models lose or garble them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from extras.rewriting.lexicon import WORD, Lexicon
from service.text.masking import Hidden, HiddenPlace, rewritten
from service.text.spans import Span

# How men, women and couples are addressed: as it is read, and as it is written. Much of what models learn from is older
# or more solemn than letters are, and "Herr Müller" was "Lord Müller".
_BEFORE_WIFE = ("eine", "einer", "hre", "hrer", "nsere", "nserer", "eure", "eurer", "deren", "dessen")
_NO_WIFE = "".join(f"(?<!{end} )" for end in _BEFORE_WIFE)
_READ = {
    "de": ("Herrn?", f"{_NO_WIFE}Frau", "Herrn? und Frau"),
    "en": (r"Mr\.?", r"Mrs\.?|Ms\.?", r"Mr\.? and Mrs\.?"),
    "fr": (r"M\.|Monsieur", "Mme|Madame", r"(?:M\.|Monsieur) et (?:Mme|Madame)"),
}
_WRITTEN = {
    "de": ("Herr", "Frau", "Herr und Frau"),
    "en": ("Mr.", "Ms.", "Mr. and Mrs."),
    "fr": ("M.", "Mme", "M. et Mme"),
}
# How letters to them begin; to somebody without an address, a man, a woman, or whom English does not tell apart.
_DEAR = {"de": "Sehr geehrter?|Lieber?", "en": "Dear", "fr": "Ch(?:ère?|er)s?"}
_DEAR_WRITTEN = {
    "de": ("Sehr geehrter Herr", "Sehr geehrte Frau", "Sehr geehrte Eheleute"),
    "en": ("Dear Mr.", "Dear Ms.", "Dear Mr. and Mrs."),
    "fr": ("Cher Monsieur", "Chère Madame", "Chers Monsieur et Madame"),
}
_DEAR_ALONE = {"de": ("Lieber", "Liebe", "Hallo"), "en": ("Dear", "Dear", "Dear"), "fr": ("Cher", "Chère", "Bonjour")}
_MEN, _WOMEN = ("Lieber", "Cher"), ("Liebe", "Chère")
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
    man, woman, couple = _READ.get(language, ("(?!)", "(?!)", "(?!)"))
    # "Anna's" is of Anna; but German writes it much alike, and whole it is translated better (0.3 BLEU).
    whole = language != "en" or target == "de"
    word = WORD if whole else WORD.replace("['’-]", "(?!['’]s\\b)['’-]")
    return re.compile(
        rf"(?P<inside>(?<=[\w,;)] ))?(?<![\w@/.-])"
        rf"(?:(?<![\w,;)] )(?P<dear>{_DEAR.get(language, '(?!)')}) )?"
        rf"(?:(?:(?P<couple>{couple})|(?P<man>{man})|(?P<woman>{woman})) )?"
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
                yield rewritten(text, Span(*match.span()), addressed + name)
            elif beside or self._name(match, beside=False) is not None:
                part = text[match.start("title") : match.end()]
                yield Span(match.start("title"), match.end()), Hidden(part, name, part, asked=False)

    def _address(self, match: re.Match[str]) -> str | None:
        """How the last translation addresses whom the text does; empty where a title does."""
        target, dear = self.hops[-1][2], match["dear"]
        addresses = match["man"], match["woman"], match["couple"]
        if not any(addresses):
            return _greeting(match, target) if dear else None
        number = next(number for number, address in enumerate(addresses) if address)
        if match["title"] and not match["couple"] and (target == "en" or not dear):
            return "Dear " if dear else ""
        if target not in _WRITTEN:
            return match[0][: match.start("title") - match.start()]
        return f"{(_DEAR_WRITTEN if dear else _WRITTEN)[target][number]} "

    def _name(self, match: re.Match[str], *, beside: bool) -> str | None:
        """What stands for a word in the last translation, None if it is no name in all languages on the way."""
        name, inside = match["word"], bool(match["inside"] is not None or match["dear"])
        if title := match["title"]:
            return title + name
        if match["man"] or match["woman"] or match["couple"]:
            return None if _OFFICES.match(name) else name
        for lexicon, source, target in self.hops:
            found = lexicon.name(source, target, name, inside=inside, beside=beside)
            if found is None:
                return None
            name, inside, beside = found, True, True  # what is a name in one language is one in the next
        return name


def _greeting(match: re.Match[str], target: str) -> str | None:
    """How a letter to a first name begins; None where the text is no letter's beginning."""
    dear, end = match["dear"], match.end()
    greeted = dear in (*_MEN, *_WOMEN, "Dear") and match.string[end : end + 1] in ("", ",", "!")
    if not greeted or target not in _DEAR_ALONE:
        return None
    return f"{_DEAR_ALONE[target][0 if dear in _MEN else 1 if dear in _WOMEN else 2]} "


NO_NAMES = Names(())
