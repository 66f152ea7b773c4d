"""Training text that is another one in every epoch: BPE dropout, noise, and what joining tagged sources takes.

Before a shard is planned its pairs are rewritten: prepared ids are decoded, which gives the text back exactly, made
untidy where the recipe says so, and encoded again with merges left out. Planned after that, batches hold sequences of
like length, as ever. Prepared data stays as it is, a recipe may change its mind without preparing again, and validation
never meets any of this.

The result is a function of seed, epoch and pair: the same on any number of processes, and after ``--resume``.

Provilkov et al. (2020), "BPE-Dropout: Simple and Effective Subword Regularization". Sampling is sentencepiece's, which
encodes here anyway and releases the interpreter's lock; subword-nmt is Python, some hundred times slower, and the
dropout of Hugging Face's tokenizers cannot be seeded.

P pairs of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.errors import ConfigError
from models.vocabulary import EOS, SentencePieceVocabulary
from models.vocabulary.pieces import MOST_SEED
from training.data.config import DataConfig
from training.data.dataset import PreparedData, TokenArray, load_sources
from training.data.directions import directed_corpora
from training.data.features import FeatureArray
from training.perturbations import lower_case, with_typos, without_punctuation
from training.recipe import Recipe

BLOCK = 1024
"""Neighbouring pairs that are rewritten together, from random numbers of their own."""
_STREAM = 7  # tells this use of (seed, epoch, …) from others

Ids = list[int]
Flags = NDArray[np.bool_]


def load_augmentation(recipe: Recipe, folder: Path) -> Augmentation | None:
    """What a recipe wants done to its training batches; None where that is nothing.

    Args:
        recipe: which also gives the seed.
        folder: the prepared data.

    Raises:
        ConfigError: the vocabularies cannot do it.
        CorpusError, VocabularyError: the folder is not prepared data.
    """
    config = recipe.data
    directed = directed_corpora(config, recipe.languages)
    tags = tuple(dict.fromkeys(tag for one in directed for tag in one.tags))
    if not config.rewrites and not (tags and config.join_share):
        return None
    sources, target = load_sources(folder)
    vocabularies = []
    for vocabulary, dropout in (
        *((source, config.bpe_dropout_source) for source in sources),
        (target, config.bpe_dropout_target),
    ):
        if vocabulary is not None and not isinstance(vocabulary, SentencePieceVocabulary):
            raise ConfigError(f"{folder}: BPE dropout and noise need sentencepiece vocabularies: prepare it with these")
        if vocabulary is not None and dropout and not vocabulary.has_merges:
            raise ConfigError(f"{folder}: BPE dropout needs a vocabulary of the type bpe, but it has a unigram one")
        vocabularies.append(vocabulary)
    first = vocabularies[0]
    ids = tuple(first.id_of(tag) for tag in tags) if first is not None else ()
    return Augmentation(config, tuple(vocabularies), ids, recipe.training.seed)


@dataclass(frozen=True, slots=True)
class Augmentation:
    """Rewrites training data. Can be pickled and used from several threads.

    Attributes:
        config: what to do.
        vocabularies: of each source in order (None for feature matrices), and of the target.
        tags: ids that sources of the first side may begin with.
        seed: of the run.
    """

    config: DataConfig
    vocabularies: tuple[SentencePieceVocabulary | None, ...]
    tags: tuple[int, ...]
    seed: int

    def rewrites(self, epoch: int) -> bool:
        """Whether there is anything to rewrite in an epoch; otherwise only tags are to be looked after."""
        return epoch >= self.config.rewriting_from and self.config.rewrites

    def rewritten(self, data: PreparedData, pairs: NDArray[np.int64], epoch: int) -> PreparedData:
        """Pairs as data of their own, rewritten, numbered anew in their order.

        No sequence gets longer than the recipe's limits: one that would is left as it was.

        Args:
            data: the training split.
            pairs: in rising order.
            epoch: the number of the epoch.
        """
        sources: list[list[TokenArray]] = [[] for _ in data.source_sides]
        targets: list[TokenArray] = []
        for block in np.unique(pairs // BLOCK).tolist():
            within = np.arange(block * BLOCK, min((block + 1) * BLOCK, len(data)))
            chosen = np.flatnonzero(np.isin(within, pairs))
            rng = np.random.default_rng([self.seed, epoch, block, _STREAM])
            noise = _Noise.drawn(self.config, len(within), rng)
            for index, side in enumerate(data.source_sides):
                if isinstance(side, TokenArray):
                    sources[index].append(_select(self._source(index, side, within, noise, rng), chosen))
            targets.append(_select(self._target(data.target_side, within, rng), chosen))
        sides = [
            _joined(parts) if isinstance(side, TokenArray) else FeatureArray(side.files, side.places[pairs])
            for side, parts in zip(data.source_sides, sources, strict=True)
        ]
        return PreparedData(tuple(sides), _joined(targets))

    def groups(self, data: PreparedData) -> NDArray[np.int16] | None:
        """For each pair the number of its tags: only pairs of the same ones may be joined. None without tags."""
        side = data.source_sides[0]
        if not self.tags or isinstance(side, FeatureArray):
            return None
        first, second = self._tag_numbers(side, np.arange(len(side)))
        return (first * (len(self.tags) + 1) + second).astype(np.int16)

    def tags_before(self, side: TokenArray | FeatureArray, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tags each pair's source begins with."""
        if not self.tags or isinstance(side, FeatureArray):
            return np.zeros_like(pairs)
        first, second = self._tag_numbers(side, pairs)
        return (first > 0).astype(np.int64) + (second > 0)

    def _tag_numbers(self, side: TokenArray, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each pair which tag (from 1) its source begins with and which is the second, 0 = none.

        A source has two tokens at least, one of them EOS; no text is encoded as a tag.
        """
        vocabulary = self.vocabularies[0]
        numbers = np.zeros(vocabulary.size if vocabulary else 0, np.int64)
        numbers[list(self.tags)] = np.arange(1, len(self.tags) + 1)
        begin = side.offsets[pairs]
        first = numbers[side.tokens[begin]]
        return first, np.where(first > 0, numbers[side.tokens[begin + 1]], 0)

    def _source(
        self, index: int, side: TokenArray, pairs_P: NDArray[np.int64], noise: _Noise, rng: np.random.Generator
    ) -> TokenArray:
        vocabulary = self.vocabularies[index]
        assert vocabulary is not None, "a text side has a vocabulary"
        config = self.config
        before = (self.tags_before(side, pairs_P) if index == 0 else np.zeros_like(pairs_P)).tolist()
        whole = _sequences(side, pairs_P)
        old = [ids[count:-1] for ids, count in zip(whole, before, strict=True)]
        chosen = np.flatnonzero(noise.any_P | (config.bpe_dropout_source > 0)).tolist()
        new = self._encoded(vocabulary, [old[one] for one in chosen], config.bpe_dropout_source, (noise, chosen), rng)
        for one, ids in zip(chosen, new, strict=True):
            room = config.max_source_tokens - 1 - before[one]
            if len(ids) > room and config.truncate_source and not vocabulary.marks(ids):
                del ids[room:]
            if ids and len(ids) <= room:
                whole[one] = [*whole[one][: before[one]], *ids, EOS]
        return _token_array(whole, side)

    def _target(self, side: TokenArray, pairs_P: NDArray[np.int64], rng: np.random.Generator) -> TokenArray:
        vocabulary, rate = self.vocabularies[-1], self.config.bpe_dropout_target
        assert vocabulary is not None, "a target is text"
        old = _sequences(side, pairs_P)
        if not rate:
            return _token_array(old, side)
        new = self._encoded(vocabulary, old, rate, None, rng)
        most = self.config.max_target_tokens - 1  # and EOS, which targets are stored without
        return _token_array([ids if 0 < len(ids) <= most else o for ids, o in zip(new, old, strict=True)], side)

    def _encoded(
        self,
        vocabulary: SentencePieceVocabulary,
        old: list[Ids],
        dropout: float,
        noise: tuple[_Noise, list[int]] | None,
        rng: np.random.Generator,
    ) -> list[Ids]:
        """Sequences as their text, made untidy, is encoded now; ``noise`` comes with the pairs they are of."""
        seed = int(rng.integers(MOST_SEED))
        texts = vocabulary.decode_many(old)
        if self.config.truncate_source and noise:  # a cut may have gone through a character
            texts = [text.rstrip("\ufffd") for text in texts]
        if noise is not None:
            kinds, pairs = noise
            texts = [kinds.applied(text, pair, rng) for text, pair in zip(texts, pairs, strict=True)]
        marked = {number for number, ids in enumerate(old) if vocabulary.marks(ids)}
        return vocabulary.sample(texts, dropout=dropout, seed=seed, reserved=marked)


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    """What is done to the sources of each pair of a block."""

    lower_P: Flags
    bare_P: Flags
    typos_P: Flags
    rate: float

    @classmethod
    def drawn(cls, config: DataConfig, pairs: int, rng: np.random.Generator) -> _Noise:
        noise = config.noise
        shares = (noise.lower_case, noise.no_punctuation, noise.typos)
        lower, bare, typos = (rng.random(pairs) < share for share in shares)
        return cls(lower, bare, typos, noise.typo_rate)

    @property
    def any_P(self) -> Flags:
        return self.lower_P | self.bare_P | self.typos_P

    def applied(self, text: str, pair: int, rng: np.random.Generator) -> str:
        if self.typos_P[pair]:
            text = with_typos(text, self.rate, rng)
        if self.bare_P[pair]:
            text = without_punctuation(text)
        return lower_case(text) if self.lower_P[pair] else text


def _sequences(side: TokenArray, pairs: NDArray[np.int64]) -> list[Ids]:
    """The sequences of neighbouring pairs."""
    first, last = int(pairs[0]), int(pairs[-1]) + 1
    flat = side.tokens[side.offsets[first] : side.offsets[last]].tolist()
    cuts = (side.offsets[first : last + 1] - side.offsets[first]).tolist()
    return [flat[start:end] for start, end in pairwise(cuts)]


def _token_array(sequences: Sequence[Ids], like: TokenArray) -> TokenArray:
    offsets = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum([len(ids) for ids in sequences], out=offsets[1:])
    flat = np.fromiter(chain.from_iterable(sequences), like.tokens.dtype, int(offsets[-1]))
    return TokenArray(flat, offsets)


def _select(side: TokenArray, chosen: NDArray[np.int64]) -> TokenArray:
    if len(chosen) == len(side):
        return side
    return _token_array([side[one].tolist() for one in chosen.tolist()], side)


def _joined(parts: Sequence[TokenArray]) -> TokenArray:
    """One after another."""
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TokenArray(np.concatenate([part.tokens for part in parts]), offsets)
