"""Which ways a recipe's corpora are used, and the tags that their sources begin with.

A recipe with ``tagged`` makes one model of several directions (Johnson et al. 2017, "Google's Multilingual Neural
Machine Translation System", section 3): every source begins with the tag of the language to translate into, ``⟨en⟩``.
Back-translated sources have a second tag, so that the model can tell them from what people wrote (Caswell et al. 2019,
"Tagged Back-Translation", section 3). Both are reserved pieces, which no text can spell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import ConfigError
from tandem.models.vocabulary import SentencePieceVocabulary, language_piece
from tandem.training.data.config import CorpusConfig, DataConfig
from tandem.training.data.dataset import PreparedData, TokenArray, load_sources
from tandem.training.data.features import FeatureArray

BACK_TRANSLATED = language_piece("bt")  # "bt" is the code of no language


@dataclass(frozen=True, slots=True)
class Directed:
    """A corpus, used one way.

    Attributes:
        corpus: with its paths in this direction; of a reversed one the name says so.
        languages: of each source in order, and of the target.
        reversed: whether its source is what the recipe calls the target.
        tags: the pieces that every source begins with.
    """

    corpus: CorpusConfig
    languages: tuple[str, ...]
    reversed: bool
    tags: tuple[str, ...]


def directed_corpora(config: DataConfig, languages: Sequence[str]) -> list[Directed]:
    """The corpora in every direction that they are used in, in order.

    Args:
        config: what the recipe says about its data.
        languages: the recipe's, of each source in order, and of the target.
    """
    found = []
    for corpus in config.corpora:
        own = corpus.languages or tuple(languages)
        found.append(Directed(corpus, own, False, _tags(config, corpus, own)))
        if corpus.both_ways:
            turned = replace(corpus, name=f"{corpus.name}.reversed", source=(corpus.target,), target=corpus.source[0])
            found.append(Directed(turned, own[::-1], True, _tags(config, turned, own[::-1])))
    return found


@dataclass(frozen=True, slots=True)
class SourceTags:
    """The tags that sources of the first side may begin with; of a joined item only the first pair keeps its own.

    Attributes:
        ids: in the vocabulary of that side; none where no corpus has tags.
        codes: the languages that they name.
        size: of that vocabulary.
    """

    ids: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    size: int = 0

    def groups(self, data: PreparedData) -> NDArray[np.int16] | None:
        """For each pair the number of its tags: only pairs of the same ones may be joined. None without tags."""
        side = data.source_sides[0]
        if not self.ids or isinstance(side, FeatureArray):
            return None
        first, second = self.numbers(side, np.arange(len(side)))
        return (first * (len(self.ids) + 1) + second).astype(np.int16)

    def before(self, side: TokenArray | FeatureArray, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tags each pair's source begins with."""
        if isinstance(side, FeatureArray):
            return np.zeros_like(pairs)
        first, second = self.numbers(side, pairs)
        return (first > 0).astype(np.int64) + (second > 0)

    def numbers(self, side: TokenArray, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each pair which tag (from 1) its source begins with and which is the second, 0 = none.

        A source has two tokens at least, one of them EOS; no text is encoded as a tag.
        """
        if not self.ids:
            return np.zeros_like(pairs), np.zeros_like(pairs)
        numbers = np.zeros(self.size, np.int64)
        numbers[list(self.ids)] = np.arange(1, len(self.ids) + 1)
        begin = side.offsets[pairs]
        first = numbers[side.tokens[begin]]
        return first, np.where(first > 0, numbers[side.tokens[begin + 1]], 0)


NO_TAGS = SourceTags()


def source_tags(config: DataConfig, languages: Sequence[str], folder: Path) -> SourceTags:
    """Those of a recipe's corpora, in the vocabulary of the prepared data."""
    tags = tuple(dict.fromkeys(tag for one in directed_corpora(config, languages) for tag in one.tags))
    (first, *_), _ = load_sources(folder)
    if not tags or not isinstance(first, SentencePieceVocabulary):
        return NO_TAGS
    return SourceTags(tuple(first.id_of(tag) for tag in tags), tuple(tag[1:-1] for tag in tags), first.size)


def translated_pairs(config: DataConfig, languages: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Source and target language of every direction that a tagged recipe trains, its own first; none of another recipe.

    Raises:
        ConfigError: no corpus is in the recipe's own direction, or a corpus translates a language into itself.
    """
    if not config.tagged:
        return ()
    trained = [one.languages for one in directed_corpora(config, languages) if "train" in one.corpus.splits]
    own = tuple(languages)
    if own not in trained:
        raise ConfigError(f"data: tagged: no corpus with the split train is from {own[0]!r} to {own[-1]!r}")
    pairs = tuple((source, target) for source, target in dict.fromkeys([own, *trained]))
    for source, target in pairs:
        if source == target:
            raise ConfigError(f"data: tagged: source and target of a corpus are both {source!r}")
    return pairs


def reserved_languages(config: DataConfig, languages: Sequence[str]) -> tuple[str, ...]:
    """The languages whose tags the vocabularies are to have: the recipe's, then those of its corpora."""
    corpora = directed_corpora(config, languages)
    return tuple(dict.fromkeys([*languages, *(code for one in corpora for code in one.languages)]))


def _tags(config: DataConfig, corpus: CorpusConfig, languages: Sequence[str]) -> tuple[str, ...]:
    into = (language_piece(languages[-1]),) if config.tagged else ()
    return (*into, BACK_TRANSLATED) if corpus.back_translated else into
