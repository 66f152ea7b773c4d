"""Building a bundle's lexicon from parallel text: of each word those that it is aligned to most often.

Models that learn from sentences are bad at words alone, which hardly occur in their text as such; how often a word is
the translation of another within sentences says it better (IBM Model 1 in both directions, ``data.alignment``).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from models.lexicon import Entries
from models.text import normalise
from training.data.alignment import MOST_CELLS, Links, link_words

MOST_TRANSLATIONS = 3
LEAST_LINKS = 3  # of a word and its translation
LEAST_SHARE = 0.1  # of a word's links

# What is elided before another word is one of its own: l'eau.
_WORD = re.compile(r"(?<!['\w])[^\W\d_]{1,2}'(?=[^\W\d_]{2})|[^\W\d_]+(?:['-][^\W\d_]+)*")


def build_lexicon(source: Sequence[str], target: Sequence[str]) -> tuple[Entries, Entries]:
    """What parallel lines say of the source's words, and of the target's.

    Args:
        source, target: as many lines each. The shortest count first, which align best, up to ``MOST_CELLS``.
    """
    pairs = [(_words(s), _words(t)) for s, t in zip(source, target, strict=True)]
    cells = np.array([len(s) * len(t) for s, t in pairs], np.int64)
    order = np.argsort(cells, kind="stable")
    chosen = [pairs[index] for index in order[np.cumsum(cells[order]) <= MOST_CELLS] if cells[index]]
    links = link_words(_truecased([s for s, _ in chosen]), _truecased([t for _, t in chosen]))
    return _entries(links), _entries(links.turned())


def _words(line: str) -> list[str]:
    return _WORD.findall(normalise(line).replace("’", "'"))


def _truecased(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """Words at the beginning, and those in capitals, as they are mostly written elsewhere."""
    spellings: Mapping[str, Counter[str]] = defaultdict(Counter)
    for words in sentences:
        for word in words[1:]:
            spellings[word.casefold()][word] += 1
    usual = {folded: counts.most_common(1)[0][0] for folded, counts in spellings.items()}
    return [
        [usual.get(word.casefold(), word) if not place or word.isupper() else word for place, word in enumerate(words)]
        for words in sentences
    ]


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
