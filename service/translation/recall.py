"""Recall: what is known of sentences before anything is decoded, by the caller's translation memory or a lexicon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from models.text import normalise
from models.vocabulary.lexicon import PHRASE
from service.bundles.catalog import Route
from service.text.languages import base_code
from service.translation.requests import TranslateTask
from service.translation.units import ParsedText, Unit

LONGEST_PHRASE = 200
"""In characters; what is longer is not looked up."""
_PHRASE_ALONE = re.compile(rf"(?P<phrase>{PHRASE}) ?(?P<end>[.!?…]*)")


def recall(request: TranslateTask, parsed: Sequence[ParsedText]) -> None:
    """Give sentences the translations that the memory has, or the lexicon, of words and phrases that stand alone.

    Neither is looked up: sentences with terms of a glossary or parts that the request protects, blocks with inline
    markup, since nothing would say where that belongs, texts in several languages, and where the answer is to be drawn
    or begins with a prefix.
    """
    if request.sampling is not None:
        return
    if request.lexicon:
        for text in parsed:
            for unit in _plain_units(request, text):
                if not any(one.at_once for one in unit.masked.hidden):  # what is no model's is no lexicon's
                    unit.take(look_up(text.plan.route, unit.sent.source), "lexicon")
    if request.memory is not None:
        _remember(request, parsed)


def _remember(request: TranslateTask, parsed: Sequence[ParsedText]) -> None:
    """A match is exact: the whole sentence, in Unicode NFC, as it is cut out of the text. It goes before a lexicon."""
    assert request.memory is not None
    units: dict[str, list[Unit]] = {}
    for text in parsed:
        units.setdefault(base_code(text.plan.route.languages[0]), []).extend(_plain_units(request, text))
    for source, some in units.items():
        sentences = [normalise(unit.sent.source) for unit in some]
        found = request.memory(source, base_code(request.target), set(sentences))
        for unit, sentence in zip(some, sentences, strict=True):
            unit.take([found[sentence]] if sentence in found else (), "memory")


def phrase_alone(sentence: str) -> re.Match[str] | None:
    """The word or phrase and what ends it, where a sentence is no more than an entry of a lexicon may be."""
    if len(sentence) > LONGEST_PHRASE:
        return None
    return _PHRASE_ALONE.fullmatch(" ".join(normalise(sentence).replace("’", "'").split()))


def look_up(route: Route, sentence: str) -> list[str]:
    """Translations of a sentence that an entry may be, best first; through a language between by both lexicons."""
    match = phrase_alone(sentence)
    if match is None:
        return []
    space = " " if base_code(route.models[-1].target) == "fr" and match["end"][:1] in ("!", "?") else ""
    found = [match["phrase"]]
    for lexicon, source, target in route.lexicons:
        ranked = (lexicon.translations(source, target, phrase) for phrase in found)
        found = [*dict.fromkeys(chain.from_iterable(ranked))]
    return [f"{phrase}{space}{match['end']}" for phrase in found]


def is_borrowed(route: Route, phrase: str) -> bool:
    """Whether the first lexicon knows nothing of a phrase but itself: it is another language's, as "Save" in French."""
    lexicon, source, target = route.lexicons[0]
    return all(text.casefold() == phrase.casefold() for text in lexicon.translations(source, target, phrase))


def _plain_units(request: TranslateTask, text: ParsedText) -> Iterator[Unit]:
    for segment in text.segments:
        if segment.attention:
            continue
        for unit in segment.units:
            plain = len(unit.texts) == 1 and not any(one.asked for one in unit.masked.hidden)
            if plain and not (unit.first and request.prefix):
                yield unit
