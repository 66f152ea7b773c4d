"""The dictionary of word models: for each source word the target word it is aligned to most often.

Words are aligned by IBM Model 1 in both directions, and a link counts where both directions find it: Model 1 alone lets
a rare word collect half a sentence.

Shape suffixes: P pairs of words that occur in one sentence pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.dictionary import Dictionary
from training.data.alignment import MOST_CELLS, Bitext, Ids, sample_pairs

LEAST_LINKS = 2  # a single link is more often wrong than a copied word


def build_dictionary(columns: Sequence[Sequence[str]], languages: Sequence[str], *, seed: int) -> Dictionary:
    """The dictionary of a training text.

    A source in the target's own language has none: there a word that is not known is best copied.

    Args:
        columns: parallel text, the sources in order and the target last; words are separated by white space.
        languages: of each column.
        seed: of the sampling of very large text.
    """
    *sources, target = columns
    held = [
        aligned_words(source, target, seed=seed) if language != languages[-1] else {}
        for source, language in zip(sources, languages, strict=False)
    ]
    return Dictionary(tuple(held))


def aligned_words(
    source: Sequence[str], target: Sequence[str], *, seed: int, most_cells: int = MOST_CELLS
) -> dict[str, str]:
    """For each source word the target word that it is linked to most often, where that is another word.

    Of equally frequent ones the more probable (under both directions) counts, then the first in the text.
    """
    cells = np.fromiter((len(s.split()) * len(t.split()) for s, t in zip(source, target, strict=True)), np.int64)
    chosen = sample_pairs(cells, seed=seed, most_cells=most_cells)
    source_ids, source_words = _numbered([source[index] for index in chosen])
    target_ids, target_words = _numbered([target[index] for index in chosen])
    text = Bitext.of(source_ids, target_ids, len(target_words))
    if not len(text.keys):
        return {}
    forward, backward = text.train(0), text.train(1)
    links_P = text.links(forward, backward)
    found = np.flatnonzero(links_P >= LEAST_LINKS)
    word = text.words_P[0][found]
    order = np.lexsort((-forward.pair_P[found] * backward.pair_P[found], -links_P[found], word))
    best = order[np.unique(word[order], return_index=True)[1]]
    pairs = [(source_words[key // text.types], target_words[key % text.types]) for key in text.keys[found[best]]]
    return {one: other for one, other in pairs if one != other}


def _numbered(lines: Sequence[str]) -> tuple[list[Ids], list[str]]:
    """Every line as word numbers, and the words by number."""
    numbers: dict[str, int] = {}
    encoded = [np.array([numbers.setdefault(word, len(numbers)) for word in line.split()], np.int64) for line in lines]
    return encoded, list(numbers)
