"""Which source words a translation's words come from, read off the attention of its hypothesis.

Tokens are found again in their texts (``extras.alignment.locating``), and the attention between them is summed up for
words: the mean over a word's written tokens, the sum over a word's read tokens. A pair of words is then judged from
both of its sides: by its share of what the written word looks at most, times its share of what the read word is looked
at most.
So a word that much of the sentence looks at does not take the place of one that a single word looks at. Punctuation
marks pair with one another only: models rest on them without meaning them.

Own code, because aligners from the package index (awesome-align, simalign, fast_align's bindings) each bring a model or
statistics of their own, while this says what the serving model looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.extras.alignment.locating import locate, locate_words
from tandem.models.search import Array, Hypothesis
from tandem.models.vocabulary import EOS, Vocabulary, WordVocabulary
from tandem.models.vocabulary.edits import Operations, origins
from tandem.service.bundles.aligning import NOTHING, Alignment, StandsFor
from tandem.service.bundles.served import ServedModel
from tandem.service.text.protect import is_unspaced
from tandem.service.text.spans import WORD, Span

THRESHOLD = 0.6
"""Least product of both sides' shares with which words are a pair; half of it is enough for a written word's best."""

_LEAST = 1e-9  # attention below this is none
_MARK = re.compile(r"[.,;:!?…。、，；：！？¿¡؟،()\[\]{}'\"«»‹›„“”‚‘’–—-]+")


Floats: TypeAlias = NDArray[np.float64]


def onward(first: Alignment, last: Alignment) -> Alignment:
    """The first one's source with the target of the last one, whose source text is the first one's target text.

    A token of the target looks at one of the source as much as it looks at that one's translations; words belong
    together that belong to the same word between.
    """
    (sources, read), (written, targets) = first.places, last.places
    weights = np.zeros((len(targets), len(sources)), np.float32)
    if read and written:
        weights[:] = last.weights @ _membership(read, written).T @ first.weights
    words = dict.fromkeys(
        (source, target)
        for between, target in last.words
        for source, other in first.words
        if other.start < between.end and between.start < other.end
    )
    return Alignment(first.source, last.target, weights, tuple(words), (sources, targets))


def align_sources(
    model: ServedModel,
    sentence: Sequence[str],
    target: str,
    hypothesis: Hypothesis,
    ids: Sequence[Sequence[int]] | None = None,
    stands_for: StandsFor = NOTHING,
) -> tuple[Alignment, ...]:
    """Align a sentence in each of its sources with its translation.

    Args:
        model: translated it.
        sentence: its text per source, as it was given to ``ServedModel.encode``, or before parts became placeholders.
        target: what ``ServedModel.decode`` returned, or the same with its placeholders replaced.
        hypothesis: with its attention (``SearchOptions.attention``).
        ids: per source the tokens that were decoded (``Job.sources``); None = those of ``ServedModel.encode``.
        stands_for: by placeholder what stands in its place in the sentence, and in the translation.

    Raises:
        ValueError: the hypothesis has no attention.
    """
    if hypothesis.attention is None:
        raise ValueError("a hypothesis without attention aligns with nothing; decode it with SearchOptions.attention")
    given = [_without_end(one) for one in (model.encode(sentence) if ids is None else ids)]
    written, steps = _written(model, hypothesis, given)
    targets, target_spans = _located(model.bundle.target_vocabulary, written, target, stands_for[1])
    found = []
    for number, (text, read) in enumerate(zip(sentence, given, strict=True)):
        weights = _weights(hypothesis.attention[number], steps, len(read), edited=number == len(given) - 1)
        sources, source_spans = _located(model.bundle.source_vocabularies[number], read, text, stands_for[0])
        words = word_pairs(weights, text, source_spans, target, target_spans)
        found.append(Alignment(sources, targets, weights, words, (source_spans, target_spans)))
    return tuple(found)


def written_words(vocabulary: Vocabulary, tokens: Sequence[int], text: str) -> list[tuple[Span, list[int]]]:
    """The words of a text without its punctuation marks, and of each the places of the tokens that it is made of.

    Words of which no token says anything, such as those that stand for a hidden part, are left out.

    Args:
        vocabulary: of the tokens.
        tokens: without the end of the sentence.
        text: what they spell, give or take what ``extras.alignment.locating`` names.
    """
    _, spans = _located(vocabulary, tokens, text)
    found = []
    for word in words_of(text, spans):
        own = [place for place, span in enumerate(spans) if span.start < word.end and word.start < span.end]
        if own and _MARK.fullmatch(text, *word) is None:
            found.append((word, own))
    return found


def word_pairs(
    weights: Array, source: str, sources: Sequence[Span], target: str, targets: Sequence[Span]
) -> tuple[tuple[Span, Span], ...]:
    """Words that belong together, in the target's order: of each written word those that it looked at most.

    Args:
        weights: target tokens x source tokens.
        source, target: the texts.
        sources, targets: of each of their tokens the characters that it stands for.
    """
    read, written = words_of(source, sources), words_of(target, targets)
    if not read or not written or not weights.size:
        return ()
    from_read, from_written = _membership(read, sources), _membership(written, targets)
    summed = from_written @ weights.astype(np.float64) @ from_read.T
    summed /= np.maximum(from_written.sum(axis=1, keepdims=True), 1.0)
    summed[_marks(target, written)[:, None] != _marks(source, read)[None, :]] = 0.0
    shares = _shares(summed, 1) * _shares(summed, 0)
    best = shares.max(axis=1, keepdims=True)
    paired = (shares >= THRESHOLD) | ((shares == best) & (shares >= THRESHOLD / 2))
    return tuple((read[place], written[row]) for row, place in np.argwhere(paired).tolist())


def words_of(text: str, tokens: Sequence[Span]) -> list[Span]:
    """The words of a text and its punctuation marks; in scripts without spaces between words, the tokens.

    What one token stands for is one word, even where that is an address with punctuation marks in it.
    """
    words: list[Span] = []
    for match in WORD.finditer(text):
        start, end = match.span()
        borders = {start, end}
        if any(map(is_unspaced, match[0])):
            borders.update(token.start for token in tokens if start < token.start < end)
        words += [Span(*border) for border in pairwise(sorted(borders))]
    return _merged(words, tokens)


def _merged(words: Sequence[Span], tokens: Sequence[Span]) -> list[Span]:
    """Words in order, one where several share a token."""
    merged: list[Span] = []
    spans = iter(sorted(tokens))
    reach = 0  # how far the tokens go that begin before the word
    token = next(spans, None)
    for word in words:
        if merged and word.start < reach:
            merged[-1] = Span(merged[-1].start, word.end)
        else:
            merged.append(word)
        while token is not None and token.start < word.end:
            reach = max(reach, token.end)
            token = next(spans, None)
    return merged


def _marks(text: str, words: Sequence[Span]) -> NDArray[np.bool_]:
    return np.array([_MARK.fullmatch(text, *word) is not None for word in words])


def _membership(words: Sequence[Span], tokens: Sequence[Span]) -> Floats:
    """Words x tokens: the share of a token's characters that stand in the word."""
    word_WE, token_TE = np.array(words), np.array(tokens)
    ends_WT = np.minimum(word_WE[:, None, 1], token_TE[None, :, 1])
    common_WT: Floats = np.maximum(ends_WT - np.maximum(word_WE[:, None, 0], token_TE[None, :, 0]), 0).astype(float)
    common_WT /= np.maximum(common_WT.sum(axis=0, keepdims=True), 1.0)
    return common_WT


def _shares(weights: Floats, axis: int) -> Floats:
    """Weights as shares of the largest along an axis; zero where all are."""
    shares: Floats = weights / np.maximum(weights.max(axis=axis, keepdims=True), _LEAST)
    return shares


@dataclass(frozen=True, slots=True)
class _Step:
    """Where a written token's attention is found.

    Attributes:
        row: of the attention; -1 for what was kept after the end of a script.
        kept: of a script of edits, the token of the last source that was kept.
    """

    row: int
    kept: int | None = None


def _written(
    model: ServedModel, hypothesis: Hypothesis, given: Sequence[Sequence[int]]
) -> tuple[list[int], list[_Step]]:
    """The tokens of the text that a hypothesis stands for: its own, or what its script of edits makes of a text."""
    if model.bundle.manifest.target_form == "text":
        return list(hypothesis.tokens), [_Step(row) for row in range(len(hypothesis.tokens))]
    operations = Operations.of(model.bundle.target_vocabulary)
    moving = [row for row, token in enumerate(hypothesis.tokens) if token in (operations.keep, operations.delete)]
    edited = given[-1]
    tokens, steps = [], []
    for origin in origins(hypothesis.tokens, len(edited), operations):
        tokens.append(edited[origin.index] if origin.kept else hypothesis.tokens[origin.index])
        row = origin.index if not origin.kept else moving[origin.index] if origin.index < len(moving) else -1
        steps.append(_Step(row, origin.index if origin.kept else None))
    return tokens, steps


def _weights(attention: Array, steps: Sequence[_Step], length: int, *, edited: bool) -> Array:
    """Written tokens x tokens of a source. A token that was kept looked at itself in the text that was edited."""
    weights = np.zeros((len(steps), length), np.float32)
    for number, step in enumerate(steps):
        if step.kept is not None and edited:
            weights[number, step.kept] = 1.0
        elif step.row >= 0:
            seen = attention[step.row, :length]
            weights[number, : len(seen)] = seen
    return weights


def _without_end(ids: Sequence[int]) -> list[int]:
    return [*ids[:-1]] if ids and ids[-1] == EOS else [*ids]


def _located(
    vocabulary: Vocabulary, ids: Sequence[int], text: str, stands_for: Mapping[str, str] = MappingProxyType({})
) -> tuple[tuple[str, ...], list[Span]]:
    """The pieces of a text, and of each the characters that it stands for: none where nothing is left of it."""
    pieces = tuple(vocabulary.piece_of(token) for token in ids)
    if isinstance(vocabulary, WordVocabulary):
        return pieces, locate_words(len(pieces), text) or locate([f" {piece}" for piece in pieces], text)
    return pieces, locate([stands_for.get(piece, piece) for piece in pieces], text)
