"""Building a bundle's lexicon from parallel text: of each word those that it is aligned to most often, and of short
phrases what stands in their place.

Models that learn from sentences are bad at words alone, which hardly occur in their text as such; how often a word is
the translation of another within sentences says it better (IBM Model 1 in both directions: ``shared.alignment``). What
people say as a whole ("Au revoir", "Forgot your password") no alignment of words tells: such a phrase is a line, or
the part of one between two marks, and where both sides have as many parts, these are taken to follow each other. One
line is not enough; but the others may have the phrase and its translation within longer ones. What is longer and
translated word by word is left to the model, which has seen its like.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, chain, product

import numpy as np

from tandem.extras.rewriting.lexicon import MOST_WORDS, WORD, Entries
from tandem.extras.shared.alignment import MOST_CELLS, Links, link_words
from tandem.models.text import normalise

MOST_TRANSLATIONS = 3
LEAST_LINKS = 3  # of a word and its translation
LEAST_SHARE = 0.1  # of a word's links
MOST_COMPARED = 20  # translations of a phrase
LEAST_LINES = 2  # that have a phrase, so that no entry is one line of the text
LONGEST_BY_WORDS = 3  # words of a phrase whose words translate it
LEAST_ALONE = 0.03  # of a word's occurrences, for what it is by itself to count: "thanks", "hello"
LEAST_TOGETHER = 0.5  # of the lines with a phrase of one line, for its translation to be in them too

# What is elided before another word is one of its own: l'eau.
_WORD = re.compile(r"(?<!['\w])[^\W\d_]{1,2}'(?=[^\W\d_]{2})|[^\W\d_]+(?:['-][^\W\d_]+)*")
_MARK = re.compile(r"[,;:.!?…()\"“”„«»\[\]|]+|\s[-–—]+\s")
# What translates a phrase may be longer.
_PART = re.compile(rf"{WORD}(?: {WORD}){{0,{MOST_WORDS + 1}}}")

Spellings = Mapping[str, str]
Counts = Mapping[str, Counter[str]]
Pair = tuple[str, str]


def build_lexicon(source: Sequence[str], target: Sequence[str]) -> tuple[Entries, Entries]:
    """What parallel lines say of the source's words and phrases, and of the target's.

    Args:
        source, target: as many lines each. For words the shortest count first, which align best, up to ``MOST_CELLS``.
    """
    lines = [(_plain(s), _plain(t)) for s, t in zip(source, target, strict=True)]
    pairs = [(_WORD.findall(s), _WORD.findall(t)) for s, t in lines]
    cells = np.array([len(s) * len(t) for s, t in pairs], np.int64)
    order = np.argsort(cells, kind="stable")
    chosen = [pairs[index] for index in order[np.cumsum(cells[order]) <= MOST_CELLS] if cells[index]]
    sides = [s for s, _ in chosen], [t for _, t in chosen]
    spellings = _usual_spellings(sides[0]), _usual_spellings(sides[1])
    links = link_words(_truecased(sides[0], spellings[0]), _truecased(sides[1], spellings[1]))
    words, turned = _entries(links), _entries(links.turned())
    known = {(word.casefold(), text.casefold()) for word, texts in words.items() for text in texts}
    known |= {(text.casefold(), word.casefold()) for word, texts in turned.items() for text in texts}
    phrases = _Phrases.of(lines, spellings, known)
    return (
        _joined(words, phrases.entries(Counter(word.casefold() for s, _ in pairs for word in s))),
        _joined(turned, phrases.turned().entries(Counter(word.casefold() for _, t in pairs for word in t))),
    )


def _joined(words: Entries, phrases: Entries) -> Entries:
    """What a word is as a phrase goes before what it is within sentences, with whatever capitals."""
    folded = {phrase.casefold() for phrase in phrases}
    return {**{word: texts for word, texts in words.items() if word.casefold() not in folded}, **phrases}


def _plain(line: str) -> str:
    return normalise(line).replace("’", "'")


def _usual_spellings(sentences: Sequence[Sequence[str]]) -> Spellings:
    """How words are mostly written where they do not begin a sentence, by the word without capitals."""
    counts: Counts = defaultdict(Counter)
    for words in sentences:
        for word in words[1:]:
            counts[word.casefold()][word] += 1
    return {folded: spellings.most_common(1)[0][0] for folded, spellings in counts.items()}


def _truecased(sentences: Sequence[Sequence[str]], usual: Spellings) -> list[list[str]]:
    """Words at the beginning, and those in capitals, as they are mostly written elsewhere."""
    return [
        [usual.get(word.casefold(), word) if not place or word.isupper() else word for place, word in enumerate(words)]
        for words in sentences
    ]


@dataclass(frozen=True, slots=True)
class _Within:
    """How many lines have some phrases within them, whatever stands around, and how many their translations too."""

    together: Counter[Pair]
    lines: tuple[Counter[str], Counter[str]]

    @classmethod
    def of(cls, lines: Iterable[tuple[Sequence[str], Sequence[str]]], pairs: Iterable[Pair]) -> _Within:
        """Those of parallel lines, each side its parts; pairs are without capitals."""
        translations: dict[str, list[str]] = defaultdict(list)
        for phrase, translation in pairs:
            translations[phrase].append(translation)
        beginnings = _beginnings(translations), _beginnings(set(chain.from_iterable(translations.values())))
        within = cls(Counter(), (Counter(), Counter()))
        for sides in lines:
            phrases, others = (_found(parts, some) for parts, some in zip(sides, beginnings, strict=True))
            for count, some in zip(within.lines, (phrases, others), strict=True):
                count.update(some)
            within.together.update(
                (phrase, text) for phrase in phrases for text in translations[phrase] if text in others
            )
        return within

    def turned(self) -> _Within:
        """The same of the translations."""
        return _Within(Counter({(b, a): count for (a, b), count in self.together.items()}), self.lines[::-1])

    def supports(self, phrase: str, translation: str, *, mutual: bool = False) -> bool:
        """Whether several lines have both, and most of those that have the phrase, or either of them."""
        lines = max(self.lines[0][phrase], self.lines[1][translation] if mutual else 0)
        return self.together[phrase, translation] >= max(LEAST_LINES, LEAST_TOGETHER * lines)


def _beginnings(phrases: Collection[str]) -> dict[str, bool]:
    """All that phrases begin with, in whole words, and whether it is one of them."""
    beginnings = {" ".join(words[:end]): False for words in map(str.split, phrases) for end in range(1, len(words))}
    return beginnings | dict.fromkeys(phrases, True)


def _found(parts: Iterable[str], beginnings: Mapping[str, bool]) -> set[str]:
    """The phrases that parts of a line have within them."""
    found = set()
    for part in parts:
        words = part.casefold().split(" ")
        for first in range(len(words)):
            for text in accumulate(words[first:], "{} {}".format):
                whole = beginnings.get(text)
                if whole is None:
                    break
                if whole:
                    found.add(text)
    return found


@dataclass(frozen=True, slots=True)
class _Phrases:
    """Parts of lines that are phrases on both sides; capitals aside, but for how each side mostly writes them.

    Attributes:
        known: pairs of a word and a translation of it.
        lines: of each phrase how many lines have each translation of it.
        spellings: of the phrases, and of their translations.
        within: lines that have phrases of one line, and words that are not known, within them.
    """

    known: Set[Pair]
    lines: Counts
    spellings: tuple[Counts, Counts]
    within: _Within

    @classmethod
    def of(cls, lines: Iterable[tuple[str, str]], usual: tuple[Spellings, Spellings], known: Set[Pair]) -> _Phrases:
        """Those of parallel lines; one that is copied says nothing.

        What is only a part of a line may follow something else there: it counts where a word of one is known in the
        other; where one is a word of which nothing is known, if they mostly stand together elsewhere too.
        """
        parted = [(_parts(source), _parts(target)) for source, target in lines]
        words = {word for word, _ in known}, {word for _, word in known}
        counts: Counts = defaultdict(Counter)
        spellings: tuple[Counts, Counts] = defaultdict(Counter), defaultdict(Counter)
        unsure: Counter[Pair] = Counter()
        for parts, others in parted:
            if len(parts) != len(others):
                continue
            for pair in dict.fromkeys(zip(parts, others, strict=True)):
                folded = pair[0].casefold(), pair[1].casefold()
                copied = " " in pair[0] and folded[0] == folded[1]
                if copied or not all(map(_PART.fullmatch, pair)):
                    continue
                if len(parts) > 1 and known.isdisjoint(product(*map(_WORD.findall, folded))):
                    if all(" " in text or text in some for text, some in zip(folded, words, strict=True)):
                        continue
                    unsure[folded] += 1
                else:
                    counts[folded[0]][folded[1]] += 1
                for side, part in enumerate(pair):
                    spellings[side][folded[side]][_begun(part, usual[side])] += 1
        sure = {(phrase, text) for phrase, translations in counts.items() for text in translations}
        within = _Within.of(parted, (sure | unsure.keys()) - known)
        for (phrase, text), count in unsure.items():
            if within.supports(phrase, text, mutual=True):
                counts[phrase][text] += count
        return cls(known, counts, spellings, within)

    def turned(self) -> _Phrases:
        """Of the translations, for each that it translates."""
        lines: Counts = defaultdict(Counter)
        for phrase, translations in self.lines.items():
            for translation, count in translations.items():
                lines[translation][phrase] = count
        known = {(other, word) for word, other in self.known}
        return _Phrases(known, lines, self.spellings[::-1], self.within.turned())

    def entries(self, words: Counter[str]) -> Entries:
        """Entries of phrases that several lines have, and of words that are often whole phrases.

        Args:
            words: how often the text has each, without capitals.
        """
        entries, frequency = {}, Counter[str]()
        for translations in self.lines.values():
            frequency.update(translations)
        known = {word for word, _ in self.known}
        for phrase, translations in self.lines.items():
            length, lines = len(phrase.split(" ")), translations.total()
            if length > MOST_WORDS:
                continue
            ranked = _ranked(translations, frequency, length)
            supported = self.within.supports(phrase, ranked[0])
            if length == 1:
                often = lines >= LEAST_ALONE * words[phrase] and translations[ranked[0]] >= LEAST_LINKS
                kept = often or (supported and phrase not in known)
            else:
                compact = length <= LONGEST_BY_WORDS or not self._by_words(phrase, ranked[0])
                kept = compact and (lines >= LEAST_LINES or supported)
            if kept:
                further = [text for text in ranked[1:MOST_TRANSLATIONS] if translations[text] >= LEAST_LINKS]
                entries[self._spelt(0, phrase)] = tuple(self._spelt(1, text) for text in (ranked[0], *further))
        return entries

    def _by_words(self, phrase: str, translation: str) -> bool:
        """Whether most words of a phrase are known in its translation."""
        words, others = _WORD.findall(phrase), _WORD.findall(translation)
        return sum(not self.known.isdisjoint(product([word], others)) for word in words) > len(words) / 2

    def _spelt(self, side: int, phrase: str) -> str:
        """As it is mostly written, with the fewest capitals of such spellings."""
        spellings = self.spellings[side][phrase]
        return min(spellings, key=lambda text: (-spellings[text], sum(map(str.isupper, text)), text))


def _parts(line: str) -> list[str]:
    return [" ".join(part.split()) for part in _MARK.split(line) if part.strip()]


def _begun(part: str, usual: Spellings) -> str:
    """A part of a line, whose first word may owe its capital to that."""
    first, space, rest = part.partition(" ")
    return usual.get(first.casefold(), first) + space + rest


def _ranked(translations: Counter[str], frequency: Counter[str], length: int) -> list[str]:
    """Translations of a phrase, best first: what most others of them agree with (minimum Bayes risk, Kumar and Byrne
    2004), of equals what has about as many words, then what is most frequent."""
    words = {text: frozenset(text.split(" ")) for text, _ in translations.most_common(MOST_COMPARED)}

    def risk(text: str) -> float:
        agreement = (
            2 * len(words[text] & other) / (len(words[text]) + len(other)) * translations[name]
            for name, other in words.items()
        )
        return -sum(agreement)

    return sorted(
        words, key=lambda text: (round(risk(text), 6), abs(len(text.split(" ")) - length), -frequency[text], text)
    )


def _entries(links: Links) -> Entries:
    """A word's translations; a name that is the same on both sides needs no more than a link to be one.

    What looks alike is hardly linked by chance, but for words that are known with other capitals.
    """
    entries, names = {}, {}
    for word, ranked in links.ranked(1).items():
        whole = [(other, count) for other, count in ranked if not other.endswith("'")]
        often = [(other, count) for other, count in whole if count >= LEAST_LINKS]
        least = LEAST_SHARE * sum(count for _, count in often)
        kept = tuple(other for other, count in often[:MOST_TRANSLATIONS] if count >= least)
        if kept and not word.endswith("'"):
            entries[word] = kept
        elif word[0].isupper() and word in dict(whole):
            names[word] = (word,)
    known = {word.casefold() for word in entries}
    return entries | {word: name for word, name in names.items() if word.casefold() not in known}
