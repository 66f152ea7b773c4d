"""Names in a text, as the lexicons of what translates it know them: small models lose or garble them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.lexicon import WORD, Lexicon
from service.text.masking import Hidden, HiddenPlace
from service.text.spans import Span

_TITLES = r"(?:(?:Mrs?|Ms|Dr|Prof|M)\. )*"
# What stands before a word inside a sentence: another one, and nothing that ends or opens one. A word that a full stop
# follows there is an abbreviation.
_WORD_INSIDE = re.compile(
    rf"(?P<inside>(?<=[\w,;)] ))?(?<![\w@/.-])(?P<title>{_TITLES})(?P<word>{WORD})(?![\w@/]|\.\w|\.\s+\S)"
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
        for match in _WORD_INSIDE.finditer(text):
            word = name = match["word"]
            if not word[0].isupper():
                continue
            if title := match["title"]:
                yield (
                    Span(match.start("title"), match.end()),
                    Hidden(title + word, title + word, title + word, asked=False),
                )
                continue
            inside = match["inside"] is not None
            for lexicon, source, target in self.hops:
                found = lexicon.name(source, target, name, inside=inside)
                if found is None:
                    break
                name, inside = found, True  # what is a name in one language is one in the next
            else:
                yield Span(*match.span("word")), Hidden(word, name, word, asked=False)


NO_NAMES = Names(())
