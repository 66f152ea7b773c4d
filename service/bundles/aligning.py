"""What words of a translation belong to which of its source, as far as the core knows: an extra finds it out.

It reads the attention of hypotheses. Where there is none, no search is asked for attention, requests for alignments are
refused, and what is marked in a text goes where it stands in the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from tandem.models.search import Array, Hypothesis
from tandem.models.vocabulary import Vocabulary
from tandem.service.bundles.served import ServedModel
from tandem.service.ports import extras, load
from tandem.service.text.masking import Masked
from tandem.service.text.spans import Span

WordPairs: TypeAlias = Sequence[tuple[Span, Span]]
"""Words that belong together: characters of the source and of the translation."""
StandsFor: TypeAlias = tuple[Mapping[str, str], Mapping[str, str]]
"""By placeholder what stands in its place in a source, and in the translation."""
NOTHING: StandsFor = ({}, {})


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """One source of a sentence and its translation, token by token and word by word.

    Attributes:
        source, target: their tokens as the vocabulary's pieces, without the end of the sentence.
        weights: target tokens x source tokens: the attention; what the end of the sentence received is left out.
        words: spans of source words and of target words that belong together, in the target's order.
        places: of the source's tokens, and of the target's, the characters that each stands for.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Array
    words: tuple[tuple[Span, Span], ...]
    places: tuple[Sequence[Span], Sequence[Span]]


AlignSources: TypeAlias = Callable[
    [ServedModel, Sequence[str], str, Hypothesis, Sequence[Sequence[int]] | None, StandsFor], Sequence[Alignment]
]
"""Aligns a sentence in each of its sources with its translation: given the model that wrote it, its text per source,
the translation, its hypothesis with attention, per source the tokens that were decoded (None = those that the model
encodes), and what placeholders stand for."""


@dataclass(frozen=True, slots=True)
class WordAligner:
    """What finds out which words belong together.

    Attributes:
        align: see ``AlignSources``.
        onward: given an alignment, and one whose source text is that one's target text, the alignment of the first
            source with the last target.
        written_words: given a vocabulary, tokens without the end of the sentence, and the text that they spell, its
            words without punctuation marks, and of each the places of the tokens that it is made of.
        project: given a source with what is hidden in it, which was read as it is, its translation, pairs of words of
            both, and whether it is translated once more: the translation with each hidden part at its place.
        pairs_of_parts: given a source with what is hidden in it and its translation, which has that in the same order,
            the pairs that are known without attention.
        parted: given pairs of words, their source and translation, the same with dates and times by their parts.
    """

    align: AlignSources
    onward: Callable[[Alignment, Alignment], Alignment]
    written_words: Callable[[Vocabulary, Sequence[int], str], Sequence[tuple[Span, list[int]]]]
    project: Callable[[Masked, str, WordPairs, bool], Masked]
    pairs_of_parts: Callable[[Masked, str], WordPairs]
    parted: Callable[[WordPairs, str, str], Iterable[tuple[Span, Span]]]


@cache
def word_aligner() -> WordAligner | None:
    """The one that an extra brings."""
    aligner: WordAligner | None = next((load(extra.aligner) for extra in extras() if extra.aligner), None)
    return aligner
