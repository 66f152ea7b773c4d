"""What a request hides of its texts, so that nothing below divides or changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tandem.models.text import is_unread
from tandem.service.text.glossary import Glossary
from tandem.service.text.masking import Hidden, HiddenPlace, Masked, merge
from tandem.service.text.protect import Protector, always_kept
from tandem.service.text.spans import Span
from tandem.service.translation.requests import Context, DecodeRequest, TranslateTask
from tandem.service.translation.stages import program_strings


@dataclass(frozen=True, slots=True)
class Masker:
    """Hides parts of a request's texts: what it protects, the terms of its glossary, and what no model translates.

    Attributes:
        names: whether addresses, placeholders and identifiers are of the latter. Not in a text that is summarized: its
            summary may leave them out.
    """

    protector: Protector
    glossary: Glossary
    names: bool

    @classmethod
    def of(cls, request: DecodeRequest, context: Context) -> Masker:
        """The masker of a request. Raises InvalidOption for a bad entry of ``protect``."""
        if not isinstance(request, TranslateTask):
            return cls(Protector(), Glossary.of({}), names=False)
        glossary = Glossary.of(request.glossary) if context.glossary is None else context.glossary
        return cls(Protector.of(request.protect), glossary, names=True)

    def mask(self, text: str, kept: Sequence[Span] = ()) -> Masked:
        """A text, normalised but for what is hidden in it, which comes back byte for byte.

        Args:
            text: any.
            kept: places in it that are protected whatever the request says, in order.

        Raises:
            InvalidOption: looking for what is protected takes too long.
        """
        unasked = always_kept(text, names=self.names, code=program_strings().code(text) if self.names else ())
        if unasked and self.glossary:  # whose terms may have digits and capitals in them
            unasked = [one for one in merge(_terms_beside(self._terms(text), unasked), unasked) if not one[1].asked]
        always = [
            (span, Hidden.kept(text[span.start : span.end], asked=False))
            for span in kept
            if not any(
                other.start <= span.start and span.end <= other.end and part.read_first for other, part in unasked
            )
        ]
        found = merge(merge(always, self.protector.find(text)), unasked)
        masked = Masked(text).hide(found).normalised()
        return masked.hide(self._terms(masked.text))

    def _terms(self, text: str) -> list[HiddenPlace]:
        """The terms in a text, also those with soft hyphens or zero-width characters in them."""
        places = [place for place, character in enumerate(text) if not is_unread(character)] if self.glossary else []
        if len(places) in (0, len(text)):
            return self.glossary.find(text)
        found = self.glossary.find("".join(text[place] for place in places))
        spans = ((Span(places[span.start], places[span.end - 1] + 1), term) for span, term in found)
        return [(span, replace(term, source=text[span.start : span.end])) for span, term in spans]


def _terms_beside(terms: Sequence[HiddenPlace], kept: Sequence[HiddenPlace]) -> list[HiddenPlace]:
    """The terms but those that stand within a longer part which is kept, such as an address or a placeholder.

    Both are in order, and none of one kind overlap.
    """
    beside, place = list[HiddenPlace](), 0
    for term, part in terms:
        while place < len(kept) and kept[place][0].end < term.end:
            place += 1
        around = kept[place][0] if place < len(kept) else None
        if around is None or around.start > term.start or around == term:
            beside.append((term, part))
    return beside
