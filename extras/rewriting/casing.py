"""Sentences in capitals, and without any, and words in capitals among others: models have read few.

Read as others are, with the capitals that a lexicon gives to words, sentences in capitals are translated nearly as
well; so is German that was typed without capitals (docs/results.md). Words in capitals within a sentence are mostly
names, and stay: but what stands before a colon ("WARNING:"), and those below, without which a sentence says the
opposite ("Bitte NICHT löschen" was "Please delete").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tandem.extras.rewriting.lexicon import WORD
from tandem.service.text.protect import literals

# Not beside digits, nor in an abbreviation: "2nd", "p.a.".
_WORD = re.compile(rf"(?<!\w)(?<!\w\.){WORD}(?!\w|\.\w)")
_TWO_WORDS = re.compile(rf"{WORD}\W+{WORD}")
_ACRONYM = 4  # letters that one may have
_CAPITALS = "[A-ZÀ-ÖØ-ÞŒŸ]"
_LOUD = rf"{_CAPITALS}{{2,}}(?:['’-]{_CAPITALS}+)*"
_LOUD_WORDS = re.compile(rf"(?<![\w@/.<-]){_LOUD}(?: {_LOUD})*(?![\w@/-]|\.\w)")
_LABEL_END = re.compile(r" ?:(?!\S)")
_MOST_SPACES = 3  # in a label
_LABEL = re.compile(rf"\W*{_LOUD}(?: {_LOUD})*{_LABEL_END.pattern}")

_EMPHASISED = {
    "de": "nicht nichts kein keine keinem keinen keiner keines nie niemals nur sehr immer muss müssen darf dürfen",
    "en": "not no never cannot can't don't won't only very always must should",
    "fr": "ne pas jamais rien aucun aucune très seulement uniquement toujours doit doivent devez",
}
EMPHASISED = {language: frozenset(words.split()) for language, words in _EMPHASISED.items()}
"""Words of a language that are no names when they are in capitals, in small letters."""


def is_shouted(text: str) -> bool:
    """Whether a sentence is all in capitals, and more than a word, which may be an acronym."""
    return text.isupper() and _TWO_WORDS.search(text) is not None


def has_loud_label(text: str) -> bool:
    """Whether a sentence begins with words in capitals and a colon."""
    return _LABEL.match(text) is not None


def calm(text: str, spelling: Callable[[str], str], emphasised: frozenset[str] = frozenset()) -> str:
    """A sentence in capitals, or without any, as others are written; another one without loud words in it.

    Args:
        text: the sentence.
        spelling: of a word the one that it mostly has.
        emphasised: words in small letters that are no names in capitals.
    """
    shouted = is_shouted(text)
    if shouted and _are_acronyms(text, spelling):
        return text
    if not (shouted or text.islower()):
        return _LOUD_WORDS.sub(lambda match: _calm_words(match, spelling, emphasised), text)
    # "a && !c" has variables; the one letter that English writes large is "I".
    calmed = _WORD.sub(
        lambda match: spelling(match[0]) if shouted or len(match[0]) > 1 or match[0] == "i" else match[0], text.lower()
    )
    first = re.search(r"[^\W\d_]", calmed)
    if shouted and first:
        calmed = calmed[: first.start()] + first[0].upper() + calmed[first.end() :]
    return calmed


def _are_acronyms(text: str, spelling: Callable[[str], str]) -> bool:
    """Whether two short words stand alone of which a lexicon does not know both in small letters: "DIN A4"."""
    words = [word for word in _WORD.findall(text) if len(word) > 1]
    return (
        len(words) < 3 and all(len(word) <= _ACRONYM for word in words) and any(spelling(one) == one for one in words)
    )


def _calm_words(match: re.Match[str], spelling: Callable[[str], str], emphasised: frozenset[str]) -> str:
    """Words in capitals as they are mostly written; as they are where they may be names."""
    words = match[0].replace("’", "'").split(" ")
    small = [word.lower() for word in words]
    begins = not any(map(str.isalnum, match.string[: match.start()]))
    if not (emphasised.intersection(small) or (begins and _LABEL_END.match(match.string, match.end()))):
        return match[0]
    if any(spelling(word) == word for word, own in zip(words, small, strict=True) if own not in emphasised):
        return match[0]
    calmed = map(spelling, small)
    text = " ".join(calmed)
    return text[0].upper() + text[1:] if begins else text


def shout_label(text: str, kept: Sequence[str]) -> str:
    """A text in capitals up to its first colon, where only a few words stand before it, but for some parts of it."""
    colon = _LABEL_END.search(text)
    if colon is None or text.count(" ", 0, colon.start()) > _MOST_SPACES:
        return text
    return shout(text[: colon.start()], kept) + text[colon.start() :]


def shout(text: str, kept: Sequence[str]) -> str:
    """A text in capitals, but for some parts of it."""
    if not kept:
        return text.upper()
    written, done = "", 0
    for match in literals(kept).finditer(text):
        written += text[done : match.start()].upper() + match[0]
        done = match.end()
    return written + text[done:].upper()
