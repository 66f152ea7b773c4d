"""Recall: sentences that the caller's translation memory has are answered from it, before anything is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from models.text import normalise
from service.text.languages import base_code
from service.translation.requests import TranslateTask
from service.translation.units import ParsedText, Unit


def recall(request: TranslateTask, parsed: Sequence[ParsedText]) -> None:
    """Give the sentences that the memory has their translations.

    A match is exact: the whole sentence, in Unicode NFC, as it is cut out of the text. What is not looked up: sentences
    with terms of a glossary or parts that the request protects, blocks with inline markup, since nothing would say
    where that belongs, texts in several languages, and where the answer is to be drawn or begins with a prefix.
    """
    if request.memory is None or request.sampling is not None:
        return
    units: dict[str, list[Unit]] = {}
    for text in parsed:
        units.setdefault(base_code(text.plan.route.languages[0]), []).extend(_plain_units(request, text))
    for source, some in units.items():
        sentences = [normalise(unit.masked.source) for unit in some]
        found = request.memory(source, base_code(request.target), set(sentences))
        for unit, sentence in zip(some, sentences, strict=True):
            unit.recall(found.get(sentence))


def _plain_units(request: TranslateTask, text: ParsedText) -> Iterator[Unit]:
    for segment in text.segments:
        if segment.attention:
            continue
        for unit in segment.units:
            plain = len(unit.texts) == 1 and not any(one.asked for one in unit.masked.hidden)
            if plain and not (unit.first and request.prefix):
                yield unit
