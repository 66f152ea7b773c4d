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
        for before, match, after in zip([None, *words], words, [*words[1:], None], strict=False):
            word = match["title"] + match["word"]
            name = self._name(match, beside=False)
            if name is None and (
                match["address"] is not None or self._beside(before, match) or self._beside(match, after)
            ):
                name = self._name(match, beside=True)
            if name is not None:
                yield Span(match.start("title"), match.end()), Hidden(word, name, word, asked=False)

    def _beside(self, first: re.Match[str] | None, second: re.Match[str] | None) -> bool:
        """Whether two words may be parts of one name."""
        return (
            first is not None
            and second is not None
            and second.start() == first.end() + 1
            and all(self._name(match, beside=True) is not None for match in (first, second))
        )

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
