"""Names in a text, as the lexicons of what translates it know them: small models lose or garble them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.lexicon import WORD, Lexicon
from service.text.masking import Hidden, HiddenPlace
from service.text.spans import Span

_TITLES = r"(?:(?:Mrs?|Ms|Dr|Prof|M)\. )*"
_ADDRESS = r"(?<=\bHerr )|(?<=\bHerrn )|(?<=\bFrau )"
# What stands before a word inside a sentence: another one, and nothing that ends or opens one. A word that a full stop
# follows there is an abbreviation.
_WORD_INSIDE = re.compile(
    rf"(?P<address>{_ADDRESS})?(?P<inside>(?<=[\w,;)] ))?(?<![\w@/.-])"
    rf"(?P<title>{_TITLES})(?P<word>{WORD})(?![\w@/]|\.\w|\.\s+\S)"
)


@dataclass(frozen=True, slots=True)
class Names:
    """Finds names in sentences of one language. Behind a title every word with a capital is one, and keeps the title.

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
        words = [match for match in _WORD_INSIDE.finditer(text) if match["word"][0].isupper()]
        may_be = [(match, name) for match in words if (name := self._name(match, beside=True)) is not None]
        begins, ends = {match.start() for match, _ in may_be}, {match.end() for match, _ in may_be}
        for match, name in may_be:
            beside = match["address"] is not None or match.end() + 1 in begins or match.start() - 1 in ends
            if beside or self._name(match, beside=False) is not None:
                word = match["title"] + match["word"]
                yield Span(match.start(), match.end()), Hidden(word, name, word, asked=False)

    def _name(self, match: re.Match[str], *, beside: bool) -> str | None:
        """What stands for a word in the last translation, None if it is no name in all languages on the way."""
        name, inside = match["word"], match["inside"] is not None
        if title := match["title"]:
            return title + name
        for lexicon, source, target in self.hops:
            found = lexicon.name(source, target, name, inside=inside, beside=beside)
            if found is None:
                return None
            name, inside, beside = found, True, True  # what is a name in one language is one in the next
        return name


NO_NAMES = Names(())
