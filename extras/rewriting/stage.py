"""Rewriting: what is done for models that are weak at it, as a text stage.

Sentences in capitals are read as others are, and words for all genders as words. Dates, amounts and how letters begin
and end are never read. A lexicon answers for words and phrases that stand alone. Where a lexicon is needed, a bundle
without one is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise

from tandem.extras.rewriting.casing import EMPHASISED, calm, has_loud_label, is_shouted, shout, shout_label
from tandem.extras.rewriting.conventions import find_conventional
from tandem.extras.rewriting.genders import as_words
from tandem.extras.rewriting.lexicon import PHRASE, STAGE, Lexicon
from tandem.extras.rewriting.quotes import as_read_often
from tandem.models.bundle import Bundle
from tandem.models.text import as_read, normalise
from tandem.service.text.glossary import capitalised
from tandem.service.text.masking import HiddenPlace, Masked
from tandem.service.translation.stages import LONGEST_KNOWN, Recalled, StagedSentence, Way

_REFUSED = "lexicon"  # the request's field for it
_PHRASE_ALONE = re.compile(rf"(?P<phrase>{PHRASE})(?P<space> ?)(?P<end>[.!?…]*)")


@dataclass(frozen=True, slots=True, eq=False)
class Rewriting:
    """The rules for one way.

    Attributes:
        lexicons: of each model on the way its lexicon, the language that it reads, and the one it writes.
    """

    way: Way
    lexicons: tuple[tuple[Lexicon, str, str], ...]

    @classmethod
    def of(cls, way: Way) -> Rewriting:
        languages = pairwise(way.languages)
        return cls(way, tuple((_lexicon(one), *pair) for one, pair in zip(way.bundles, languages, strict=True)))

    def prepare(self, sentence: Masked) -> Masked:
        """With capitals, quotation marks and words for all genders as others write them, and everything hidden that is
        rewritten.

        Only once it is cut out of its text: as marks, abbreviations would end it, and emoji around it be no layout.
        """
        calmed = self._calmed(
            replace(sentence, text=as_words(as_read_often(sentence.text, self.way.source), self.way.source))
        )
        return calmed.hide(self._conventional(calmed))

    def known(self, sentence: StagedSentence) -> Recalled | None:
        """What the lexicons have for a word or phrase that stands alone."""
        if _REFUSED in self.way.refused or any(one.at_once for one in sentence.read.hidden):
            return None  # what is no model's is no lexicon's
        return look_up(self.lexicons, sentence.sent.source)

    def finish(self, text: str, sentence: StagedSentence) -> str:
        """In capitals, where the sentence or its label was, and was read without."""
        sent = sentence.sent
        whole = is_shouted(sent.text)
        if sent.source == sentence.read.source or not (whole or has_loud_label(sent.text)):
            return text
        kept = [one.target for one in sent.hidden]
        return shout(text, kept) if whole else shout_label(text, kept)

    def _calmed(self, sentence: Masked) -> Masked:
        """A sentence as models have read others: not in capitals, nor without any. As it is where no lexicon can say
        how words are written: "DIE NATO" would be "Die nato"."""
        lexicon, source, target = self.lexicons[0]
        if _REFUSED in self.way.refused or not lexicon.directions.get((source, target)):
            return sentence
        spelling = partial(lexicon.spelling, source, target)
        return replace(sentence, text=calm(sentence.text, spelling, EMPHASISED.get(source, frozenset())))

    def _conventional(self, sentence: Masked) -> list[HiddenPlace]:
        """Dates, amounts and the like, as many as placeholders are left; none where models know none."""
        free = self.way.free(sentence)
        return find_conventional(sentence.text, self.way.source, self.way.target)[:free] if free > 0 else []


def _lexicon(bundle: Bundle) -> Lexicon:
    """What was read of a translator when it was loaded; empty where it has no lexicon, and of other models."""
    read = bundle.stage_data.get(STAGE)
    return read if isinstance(read, Lexicon) and bundle.manifest.task == "translate" else Lexicon()


def phrase_alone(sentence: str) -> re.Match[str] | None:
    """The word or phrase and what ends it, where a sentence is no more than an entry of a lexicon may be."""
    if len(sentence) > LONGEST_KNOWN:
        return None
    return _PHRASE_ALONE.fullmatch(as_read(normalise(sentence)).replace("’", "'"))


def look_up(lexicons: Sequence[tuple[Lexicon, str, str]], sentence: str) -> Recalled | None:
    """Translations of a sentence that an entry may be; through a language between by both lexicons."""
    match = phrase_alone(sentence)
    if match is None:
        return None
    phrase, found = match["phrase"], [match["phrase"]]
    for lexicon, source, target in lexicons:
        ranked = (lexicon.translations(source, target, one) for one in found)
        found = [*dict.fromkeys(chain.from_iterable(ranked))]
    if not found:
        return None
    lexicon, source, target = lexicons[0]
    space = "" if source == "fr" else match["space"]  # where French has one, others have none
    if lexicons[-1][2] == "fr" and match["end"][:1] in ("!", "?"):
        space = " "
    if phrase[0].isupper():  # what stands alone is a label
        found = [capitalised(one) for one in found]
    itself = all(one.casefold() == phrase.casefold() for one in lexicon.translations(source, target, phrase))
    return Recalled(tuple(f"{one}{space}{match['end']}" for one in found), borrowed=itself)
