"""What a request hides of its texts, so that nothing below divides or changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.text.glossary import Glossary
from service.text.masking import Hidden, Masked, merge
from service.text.protect import Protector, endless_words
from service.text.spans import Span
from service.translation.requests import DecodeRequest, TranslateTask


@dataclass(frozen=True, slots=True)
class Masker:
    """Hides parts of a request's texts: what it protects, and the terms of its glossary."""

    protector: Protector
    glossary: Glossary

    @classmethod
    def of(cls, request: DecodeRequest) -> Masker:
        """The masker of a request. Raises InvalidOption for a bad entry of ``protect``."""
        protect, terms = (request.protect, request.glossary) if isinstance(request, TranslateTask) else ((), {})
        return cls(Protector.of(protect), terms if isinstance(terms, Glossary) else Glossary.of(terms))

    def mask(self, text: str, kept: Sequence[Span] = ()) -> Masked:
        """A text, normalised but for what is protected in it and words without end, which come back byte for byte.

        Args:
            text: any.
            kept: places in it that are protected whatever the request says, in order.

        Raises:
            InvalidOption: looking for what is protected takes too long.
        """
        endless = endless_words(text)
        if not (kept or endless or self.protector.finders or self.glossary):
            return Masked(text).normalised()
        always = [(span, Hidden.kept(text[span.start : span.end], asked=False)) for span in kept]
        found = merge(merge(always, self.protector.find(text)), endless)
        masked = (Masked.of(text).hide(found) if found else Masked(text)).normalised()
        terms = self.glossary.find(masked.text)
        return (masked if masked.mark else Masked.of(masked.text)).hide(terms) if terms else masked
