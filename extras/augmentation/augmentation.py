"""Training text that is another one in every epoch: BPE dropout, noise, and things to copy.

Before a shard is planned its pairs are rewritten: prepared ids are decoded where the recipe asks for other text, which
gives it back exactly, changed or made untidy, and encoded again; then merges are left out. Planned after that, batches
hold sequences of like length, as ever. Prepared data stays as it is, a recipe may change its mind without preparing
again, and validation never meets any of this.

The result is a function of seed, epoch and pair: the same on any number of processes, and after ``--resume``.

P pairs of a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tandem.extras.augmentation import names
from tandem.extras.augmentation.bpe_dropout import MergeDropout
from tandem.extras.augmentation.pairs import PairRewriter
from tandem.extras.augmentation.perturbations import lower_case, with_typos, without_punctuation
from tandem.models.errors import ConfigError
from tandem.models.vocabulary import EOS, SentencePieceVocabulary
from tandem.training.data.config import DataConfig
from tandem.training.data.dataset import PreparedData, TokenArray, load_sources
from tandem.training.data.directions import SourceTags, source_tags
from tandem.training.data.features import FeatureArray

if TYPE_CHECKING:  # a process that rewrites needs no torch
    from tandem.training.recipe import Recipe

BLOCK = 1024
"""Neighbouring pairs that are rewritten together, from random numbers of their own."""
_STREAM = 7  # tells this use of (seed, epoch, …) from others

Ids = list[int]
Encoded = tuple[Ids, Ids]
"""A source without tags and EOS, and its target."""
Flags = NDArray[np.bool_]


def load_augmentation(recipe: Recipe, folder: Path) -> Augmentation:
    """What a recipe wants done to its training pairs.

    Args:
        recipe: which also gives the seed.
        folder: the prepared data.

    Raises:
        ConfigError: the vocabularies cannot do it.
        CorpusError, VocabularyError: the folder is not prepared data.
    """
    config = recipe.data
    sources, target = load_sources(folder)
    vocabularies: list[SentencePieceVocabulary | None] = []
    dropouts: list[MergeDropout | None] = []
    for vocabulary, dropout in (
        *((source, config.bpe_dropout_source) for source in sources),
        (target, config.bpe_dropout_target),
    ):
        if vocabulary is not None and not isinstance(vocabulary, SentencePieceVocabulary):
            raise ConfigError(f"{folder}: BPE dropout and noise need sentencepiece vocabularies: prepare it with these")
        if vocabulary is not None and dropout and not vocabulary.has_merges:
            raise ConfigError(f"{folder}: BPE dropout needs a vocabulary of the type bpe, but it has a unigram one")
        vocabularies.append(vocabulary)
        dropouts.append(MergeDropout(vocabulary) if vocabulary is not None and dropout else None)
    if config.augmentation.substitutes and config.augmentation.names:
        names.name(Random(0))  # says now, not in the middle of a run, that Faker is missing
    tags = source_tags(config, recipe.languages, folder)
    return Augmentation(config, tuple(vocabularies), tuple(dropouts), tags, recipe.languages, recipe.training.seed)


@dataclass(frozen=True, slots=True)
class Augmentation:
    """Rewrites training data. Can be pickled and used from several threads.

    Attributes:
        config: what to do.
        vocabularies: of each source in order (None for feature matrices), and of the target.
        dropouts: what leaves merges out of the sequences of each; None where nothing does.
        tags: that sources of the first side may begin with.
        languages: the recipe's, of each source and of the target: those of a source without a tag.
        seed: of the run.
    """

    config: DataConfig
    vocabularies: tuple[SentencePieceVocabulary | None, ...]
    dropouts: tuple[MergeDropout | None, ...]
    tags: SourceTags
    languages: tuple[str, ...]
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
        return with_texts(data, pairs, [self.rewritten_texts(data, pairs, epoch)])

    def rewritten_texts(self, data: PreparedData, pairs: NDArray[np.int64], epoch: int) -> tuple[TokenArray, ...]:
        """What :meth:`rewritten` makes of those sides that are text: sources in order, and the target."""
        blocks = np.unique(pairs // BLOCK).tolist()
        return _joined([self._rewritten_block(data, pairs, epoch, block) for block in blocks])

    def _rewritten_block(
        self, data: PreparedData, pairs: NDArray[np.int64], epoch: int, block: int
    ) -> tuple[TokenArray, ...]:
        """The texts of those pairs that are of a block, all of which is rewritten."""
        within = np.arange(block * BLOCK, min((block + 1) * BLOCK, len(data)))
        begin, end = np.searchsorted(pairs, [within[0], within[-1] + 1])
        rng = np.random.default_rng([self.seed, epoch, block, _STREAM])
        changed = self._changed(data, within, rng)
        noise = _Noise.drawn(self.config, len(within), rng)
        texts = [
            self._source(index, side, within, noise, rng, changed)
            for index, side in enumerate(data.source_sides)
            if isinstance(side, TokenArray)
        ]
        texts.append(self._target(data.target_side, within, rng, changed))
        return tuple(_select(text, pairs[begin:end] - within[0]) for text in texts)

    def _changed(self, data: PreparedData, pairs_P: NDArray[np.int64], rng: np.random.Generator) -> dict[int, Encoded]:
        """The pairs of a block whose text is changed on both sides, by their place in it."""
        config, (side, *_) = self.config, data.source_sides
        vocabulary, target_vocabulary = self.vocabularies[0], self.vocabularies[-1]
        if not config.augmentation.on_pairs or not isinstance(side, TokenArray):
            return {}
        assert vocabulary is not None and target_vocabulary is not None, "both sides are text"
        first, second = self.tags.numbers(side, pairs_P)
        tags_P = (first > 0).astype(np.int64) + (second > 0)
        sources = [ids[tags:-1] for ids, tags in zip(_sequences(side, pairs_P), tags_P.tolist(), strict=True)]
        columns = (
            self._source_texts(vocabulary, sources),
            target_vocabulary.decode_many(_sequences(data.target_side, pairs_P)),
        )
        marked = [vocabulary.marks(ids) for ids in sources]
        languages = [self.languages_of(tag) for tag in first.tolist()]
        random = Random(int(rng.integers(2**63)))
        texts = PairRewriter(config.augmentation, columns, languages, marked, random).rewritten()
        if not texts:
            return {}
        reserved = {number for number, place in enumerate(texts) if marked[place]}
        sides = zip((vocabulary, target_vocabulary), zip(*texts.values(), strict=True), strict=True)
        encoded = [own.encode_many(column, reserved) for own, column in sides]
        room_P = config.max_source_tokens - 1 - tags_P
        return {
            place: (source, target)
            for place, source, target in zip(texts, *encoded, strict=True)
            if 0 < len(source) <= room_P[place] and 0 < len(target) < config.max_target_tokens
        }

    def languages_of(self, tag: int) -> tuple[tuple[str, ...], str]:
        """Those that a source may be in, and its target's, by the number of its first tag (0 = none)."""
        if not tag:
            return self.languages[:-1], self.languages[-1]
        target = self.tags.codes[tag - 1]
        return tuple(code for code in self.tags.codes if code != target), target

    def _source(
        self,
        index: int,
        side: TokenArray,
        pairs_P: NDArray[np.int64],
        noise: _Noise,
        rng: np.random.Generator,
        changed: Mapping[int, Encoded],
    ) -> TokenArray:
        vocabulary = self.vocabularies[index]
        assert vocabulary is not None, "a text side has a vocabulary"
        config = self.config
        before = (self.tags.before(side, pairs_P) if index == 0 else np.zeros_like(pairs_P)).tolist()
        whole = _sequences(side, pairs_P)
        old = [ids[count:-1] for ids, count in zip(whole, before, strict=True)]
        # Typing errors in what is to be copied would teach to mend it.
        untidy = self._untidy(vocabulary, old, [pair for pair in noise.pairs if pair not in changed], noise, rng)
        own = {**dict(enumerate(old)), **untidy, **{place: source for place, (source, _) in changed.items()}}
        cut = self._with_dropout(index, list(own.values()), config.bpe_dropout_source, rng)
        for place in np.flatnonzero(noise.spelt_P).tolist():
            cut[place] = vocabulary.spelled(cut[place], float(rng.random()))
        for place, ids in enumerate(cut):
            room = config.max_source_tokens - 1 - before[place]
            if len(ids) > room and config.truncate_source and not vocabulary.marks(ids):
                ids = ids[:room]
            fitting = next(tried for tried in (ids, own[place], old[place]) if 0 < len(tried) <= room)
            whole[place] = [*whole[place][: before[place]], *fitting, EOS]
        return _token_array(whole, side)

    def _target(
        self, side: TokenArray, pairs_P: NDArray[np.int64], rng: np.random.Generator, changed: Mapping[int, Encoded]
    ) -> TokenArray:
        rate = self.config.bpe_dropout_target
        old = _sequences(side, pairs_P)
        own = [changed[place][1] if place in changed else ids for place, ids in enumerate(old)]
        cut = self._with_dropout(-1, own, rate, rng)
        most = self.config.max_target_tokens - 1  # and EOS, which targets are stored without
        return _token_array([ids if len(ids) <= most else plain for ids, plain in zip(cut, own, strict=True)], side)

    def _with_dropout(self, side: int, sequences: list[Ids], rate: float, rng: np.random.Generator) -> list[Ids]:
        dropout = self.dropouts[side] if rate else None
        return sequences if dropout is None else dropout.applied(sequences, rate, rng)

    def _source_texts(self, vocabulary: SentencePieceVocabulary, sequences: list[Ids]) -> list[str]:
        texts = vocabulary.decode_many(sequences)
        if self.config.truncate_source:  # a cut may have gone through a character
            texts = [text.rstrip("\ufffd") for text in texts]
        return texts

    def _untidy(
        self,
        vocabulary: SentencePieceVocabulary,
        old: list[Ids],
        pairs: list[int],
        noise: _Noise,
        rng: np.random.Generator,
    ) -> dict[int, Ids]:
        """Some sequences as their text, made untidy, is encoded."""
        texts = self._source_texts(vocabulary, [old[pair] for pair in pairs])
        texts = [noise.applied(text, pair, rng) for text, pair in zip(texts, pairs, strict=True)]
        marked = {number for number, pair in enumerate(pairs) if vocabulary.marks(old[pair])}
        encoded = vocabulary.encode_many(texts, marked)
        return {pair: ids for pair, ids in zip(pairs, encoded, strict=True) if ids}


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    """What is done to the sources of each pair of a block."""

    lower_P: Flags
    bare_P: Flags
    typos_P: Flags
    spelt_P: Flags
    rate: float

    @classmethod
    def drawn(cls, config: DataConfig, pairs: int, rng: np.random.Generator) -> _Noise:
        noise = config.noise
        shares = (noise.lower_case, noise.no_punctuation, noise.typos, config.augmentation.spelt)
        lower, bare, typos, spelt = (rng.random(pairs) < share for share in shares)
        return cls(lower, bare, typos, spelt, noise.typo_rate)

    @property
    def pairs(self) -> list[int]:
        """Those that something is done to the text of."""
        found: list[int] = np.flatnonzero(self.lower_P | self.bare_P | self.typos_P).tolist()
        return found

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


def with_texts(data: PreparedData, pairs: NDArray[np.int64], parts: Sequence[tuple[TokenArray, ...]]) -> PreparedData:
    """Pairs as data of their own, numbered anew, with other texts.

    Args:
        data: what they are from, which feature matrices stay from.
        pairs: in rising order.
        parts: what :meth:`Augmentation.rewritten_texts` gives for one part of the pairs after another.
    """
    *texts, target = _joined(parts)
    text = iter(texts)
    sides = [
        next(text) if isinstance(side, TokenArray) else FeatureArray(side.files, side.places[pairs])
        for side in data.source_sides
    ]
    return PreparedData(tuple(sides), target)


def _joined(parts: Sequence[tuple[TokenArray, ...]]) -> tuple[TokenArray, ...]:
    """Of every side one part after another."""
    return tuple(_concatenated(side) for side in zip(*parts, strict=True))


def _concatenated(parts: Sequence[TokenArray]) -> TokenArray:
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TokenArray(np.concatenate([part.tokens for part in parts]), offsets)
