"""Words (or pieces) aligned with those of the other language: IBM Model 1 (Brown et al. 1993), in both directions; and
the dictionary of word models, for each source word the target word that it is aligned to most often.

Written here because none of the packaged aligners suits a training command that installs from wheels alone: eflomal
compiles C under a copyleft licence, and simalign needs a BERT model and its download. Model 1 is two equations.

Shape suffixes: C cells (a source and a target position of one sentence pair), P pairs of words that occur in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem.models.vocabulary.dictionary import Dictionary

MOST_CELLS = 60_000_000  # beyond, sentence pairs are sampled: a gigabyte and a minute or two
CHUNK_CELLS = 2_000_000  # expanded at a time
ITERATIONS = 5
LEAST_LINKS = 2  # a single link is more often wrong than a copied word

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


def sample_pairs(cells: Ids, *, seed: int) -> list[int]:
    """All sentence pairs, or as many random ones as have so many cells; ``cells`` are those of each pair.

    The fewer cells a pair has, the more likely it is drawn (weighted sampling of Efraimidis and Spirakis 2006): six
    times as many pairs for the same memory, and in a short sentence there is less to confuse a word with.
    """
    if cells.sum() <= MOST_CELLS:
        return list(range(len(cells)))
    order = np.argsort(np.random.default_rng([seed, 3]).exponential(size=len(cells)) * cells, kind="stable")
    return sorted(order[np.cumsum(cells[order]) <= MOST_CELLS].tolist())


@dataclass(frozen=True, slots=True)
class Model1:
    """Model 1 in one direction: the probability of a word given one of the other side, and given none (NULL).

    Attributes:
        pair_P: of the one word of a pair given the other.
        null: of each word given none.
    """

    pair_P: Floats
    null: Floats


@dataclass(frozen=True, slots=True)
class _Cells:
    """Some sentence pairs, expanded: each cell's pair of words and its position on either side."""

    pair_C: Ids
    position_C: tuple[Ids, Ids]
    words: tuple[Ids, Ids]  # of each position of either side


@dataclass(frozen=True, slots=True)
class Bitext:
    """Aligned sentences as word numbers, of either side.

    Attributes:
        sentences: groups of sentence pairs, each of about ``CHUNK_CELLS`` cells.
        pairs: per group the pair of words of each of its cells, as an index into ``keys``.
        keys: source word x target types + target word, of every pair that occurs, rising.
        types: target words.
    """

    sentences: list[list[tuple[Ids, Ids]]]
    pairs: list[NDArray[np.int32]]
    keys: Ids
    types: int

    @classmethod
    def of(cls, source: Sequence[Ids], target: Sequence[Ids], types: int) -> Bitext:
        """The text of parallel sentences; ``types`` are the target's words. Pairs with an empty side are left out."""
        groups: list[list[tuple[Ids, Ids]]] = []
        cells = CHUNK_CELLS
        for s, t in zip(source, target, strict=True):
            if not len(s) or not len(t):
                continue
            if cells + len(s) * len(t) > CHUNK_CELLS:
                groups.append([])
                cells = 0
            groups[-1].append((s, t))
            cells += len(s) * len(t)

        def keys_of(group: list[tuple[Ids, Ids]]) -> Ids:
            return np.concatenate([(t[:, None] + s * types).reshape(-1) for s, t in group])

        keys = np.empty(0, np.int64)
        for group in groups:
            keys = _distinct(np.concatenate([keys, keys_of(group)]))
        pairs = [np.searchsorted(keys, keys_of(group)).astype(np.int32) for group in groups]
        return cls(groups, pairs, keys, types)

    @property
    def words_P(self) -> tuple[Ids, Ids]:
        """The source and the target word of each pair."""
        return self.keys // self.types, self.keys % self.types

    def chunk(self, index: int) -> _Cells:
        """One group with the positions of its cells, which are not kept: target-major, as ``pairs`` is."""
        source, target = zip(*self.sentences[index], strict=True)
        s, t = (np.array([len(one) for one in side]) for side in (source, target))
        first_s, first_t = np.cumsum(s) - s, np.cumsum(t) - t
        cells = s * t
        local_C = np.arange(cells.sum()) - np.repeat(np.cumsum(cells) - cells, cells)
        long_C = np.repeat(s, cells)
        positions = (np.repeat(first_s, cells) + local_C % long_C, np.repeat(first_t, cells) + local_C // long_C)
        return _Cells(self.pairs[index].astype(np.int64), positions, (np.concatenate(source), np.concatenate(target)))

    def train(self, given: int) -> Model1:
        """Expectation maximisation of the other side's words given those of side ``given`` (0 source, 1 target)."""
        word_P = self.words_P
        model = Model1(np.ones(len(self.keys)), np.ones(int(word_P[1 - given].max()) + 1))
        for _ in range(ITERATIONS):
            counts, null = np.zeros_like(model.pair_P), np.zeros_like(model.null)
            for index in range(len(self.pairs)):
                chunk = self.chunk(index)
                at_C, words = chunk.position_C[1 - given], chunk.words[1 - given]
                weight_C = model.pair_P[chunk.pair_C]
                total = model.null[words] + np.bincount(at_C, weight_C, len(words))
                counts += np.bincount(chunk.pair_C, weight_C / total[at_C], len(counts))
                null += np.bincount(words, model.null[words] / total, len(null))
            mass = np.bincount(word_P[given], counts)
            model = Model1(counts / mass[word_P[given]], null / null.sum())
        return model

    def links(self, forward: Model1, backward: Model1) -> Ids:
        """How often each pair of words is linked in both directions."""
        links_P = np.zeros(len(self.keys), np.int64)
        for index in range(len(self.pairs)):
            chunk = self.chunk(index)
            linked_C = _best(chunk, forward, 1) & _best(chunk, backward, 0)
            links_P += np.bincount(chunk.pair_C[linked_C], minlength=len(links_P))
        return links_P


def _best(chunk: _Cells, model: Model1, side: int) -> NDArray[np.bool_]:
    """The cells that are the most probable ones of their position on ``side``, and more probable than no word."""
    at_C, weight_C = chunk.position_C[side], model.pair_P[chunk.pair_C]
    best = model.null[chunk.words[side]]
    np.maximum.at(best, at_C, weight_C)
    chosen: NDArray[np.bool_] = (weight_C == best[at_C]) & (weight_C > model.null[chunk.words[side]][at_C])
    return chosen


def _distinct(keys: Ids) -> Ids:
    """As np.unique, which goes through a hash table that is several times slower here."""
    keys.sort()
    return keys[np.append(True, np.diff(keys) != 0)] if len(keys) else keys


def build_dictionary(columns: Sequence[Sequence[str]], languages: Sequence[str], seed: int) -> Dictionary:
    """The dictionary of a training text.

    A link counts where both directions find it: Model 1 alone lets a rare word collect half a sentence. A source in the
    target's own language has none: there a word that is not known is best copied.

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


def aligned_words(source: Sequence[str], target: Sequence[str], *, seed: int) -> dict[str, str]:
    """For each source word the target word that it is linked to most often, where that is another word."""
    cells = np.fromiter((len(s.split()) * len(t.split()) for s, t in zip(source, target, strict=True)), np.int64)
    chosen = sample_pairs(cells, seed=seed)
    found = link_words([source[index].split() for index in chosen], [target[index].split() for index in chosen])
    best = {word: ranked[0][0] for word, ranked in found.ranked(LEAST_LINKS).items()}
    return {word: other for word, other in best.items() if word != other}


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of words that occur in one sentence pair, and how often both directions link them.

    Attributes:
        source, target: the words of each pair.
        count_P: links of each.
        probability_P: of the one given the other, times the other way round.
    """

    source: Sequence[str]
    target: Sequence[str]
    count_P: Ids
    probability_P: Floats

    def turned(self) -> Links:
        """The same from the other side."""
        return Links(self.target, self.source, self.count_P, self.probability_P)

    def ranked(self, least: int) -> dict[str, list[tuple[str, int]]]:
        """For each source word the target words with at least so many links, and how many, the most frequent first.

        Of equally frequent ones the more probable counts, then the first in the text.
        """
        found: dict[str, list[tuple[str, int]]] = {}
        for index in np.lexsort((-self.probability_P, -self.count_P)):
            if self.count_P[index] < least:
                break
            found.setdefault(self.source[index], []).append((self.target[index], int(self.count_P[index])))
        return found


def link_words(source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> Links:
    """Align the words of parallel sentences, in both directions."""
    source_ids, source_words = _numbered(source)
    target_ids, target_words = _numbered(target)
    text = Bitext.of(source_ids, target_ids, len(target_words))
    if not len(text.keys):
        return Links((), (), np.zeros(0, np.int64), np.zeros(0))
    forward, backward = text.train(0), text.train(1)
    count_P = text.links(forward, backward)
    linked = np.flatnonzero(count_P)
    first, second = (words_P[linked].tolist() for words_P in text.words_P)
    return Links(
        [source_words[number] for number in first],
        [target_words[number] for number in second],
        count_P[linked],
        forward.pair_P[linked] * backward.pair_P[linked],
    )


def _numbered(sentences: Sequence[Sequence[str]]) -> tuple[list[Ids], list[str]]:
    """Every sentence as word numbers, and the words by number."""
    numbers: dict[str, int] = {}
    encoded = [np.array([numbers.setdefault(word, len(numbers)) for word in one], np.int64) for one in sentences]
    return encoded, list(numbers)
