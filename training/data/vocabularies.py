"""Training the vocabularies of a recipe on its training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, compress

import numpy as np

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary import PLACEHOLDERS, Vocabulary, WordVocabulary, language_piece, train_sentencepiece
from tandem.models.vocabulary.alphabets import characters
from tandem.training.data.config import VocabularyConfig

MOST_LINES = 1_000_000  # more text changes the pieces little and the training time much
_SPECIAL = frozenset(("<pad>", "<unk>", "<s>", "</s>"))


def train_vocabularies(
    columns: Sequence[Sequence[str]],
    config: VocabularyConfig,
    *,
    languages: Sequence[str],
    seed: int,
    further: Sequence[str] = (),
) -> tuple[Vocabulary, ...]:
    """One vocabulary for each side, sources first; a joint one is the same object for all.

    Args:
        columns: the training text of each side.
        config: kind and size.
        languages: the language of each side, whose tags the vocabularies reserve.
        seed: of the sampling of very large text.
        further: other reserved pieces that every vocabulary is to have.

    Raises:
        VocabularyError: the text is too small for the size, or the size too small for the text; names the key of the
            size.
    """
    reserved = (tuple(dict.fromkeys(languages)), tuple(further))
    rng = np.random.default_rng([seed, 1])
    with _naming("size"):
        if config.joint:
            return (_train(_sample(columns, rng), config, reserved, seed),) * len(columns)
        *sources, target = (_sample([column], rng) for column in columns)
        read = [_train(lines, config, reserved, seed) for lines in sources]
    with _naming("target_size" if config.target_size else "size"):
        own = replace(config, size=config.target_size or config.size)
        return (*read, _train(target, own, reserved, seed))


def most_frequent_words(
    lines: Iterable[str], *, size: int, languages: Sequence[str], further: Sequence[str] = ()
) -> WordVocabulary:
    """The ``size`` entries of a word vocabulary: special ids, reserved pieces, then words by frequency.

    Reserved are the placeholders, the language tags and what ``further`` names.

    Raises:
        VocabularyError: ``size`` leaves no room for words.
    """
    reserved = [*PLACEHOLDERS, *dict.fromkeys(language_piece(code) for code in languages), *further]
    room = size - len(_SPECIAL) - len(reserved)
    if room < 1:
        raise VocabularyError(f"a word vocabulary needs more than {size - room} entries, but its size is {size}")
    counts = Counter(word for line in lines for word in line.split())
    for word in (*_SPECIAL, *reserved):
        counts.pop(word, None)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return WordVocabulary([*reserved, *ranked[:room]])


@contextmanager
def _naming(key: str) -> Iterator[None]:
    """What cannot be trained says which key of a recipe is to be changed."""
    try:
        yield
    except VocabularyError as error:
        raise VocabularyError(f"[data.vocabulary] {key}: {error}") from error


def _train(
    lines: Sequence[str], config: VocabularyConfig, reserved: tuple[Sequence[str], Sequence[str]], seed: int
) -> Vocabulary:
    languages, further = reserved
    if config.kind == "word":
        return most_frequent_words(lines, size=config.size, languages=languages, further=further)
    return train_sentencepiece(
        lines,
        size=config.size,
        model_type=config.model_type,
        languages=languages,
        seed=seed,
        further=further,
        required=characters(config.alphabets),
    )


def _sample(columns: Sequence[Sequence[str]], rng: np.random.Generator) -> list[str]:
    """The lines of all columns one after the other, or so many random ones of them."""
    total = sum(map(len, columns))
    if total <= MOST_LINES:
        return list(chain.from_iterable(columns))
    chosen = np.zeros(total, bool)
    chosen[rng.choice(total, MOST_LINES, replace=False)] = True
    return list(compress(chain.from_iterable(columns), chosen))
