"""Confidence: how sure a route's models are of a sentence and of its words, as far as they were calibrated.

Where a text goes through a third language, the first model has to be right as well: what the last one is sure of is
multiplied by the first one's confidence in the sentence between.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tandem.models.search import Hypothesis
from tandem.models.search.confidence import Evidence
from tandem.service.bundles.aligning import word_aligner
from tandem.service.bundles.catalog import Route
from tandem.service.bundles.served import ServedModel
from tandem.service.text.spans import Span
from tandem.service.translation.candidates import Candidate
from tandem.service.translation.results import WordConfidence

_DIGITS = 3


def judge(route: Route, best: Candidate, written: str, start: int) -> tuple[float, list[WordConfidence]] | None:
    """The confidence of a translated sentence, 0 to 1, and of its words; None where a model was not calibrated.

    Args:
        route: how it was decoded.
        best: its translation.
        written: that as it stands in its text.
        start: where it begins there.
    """
    own = route.models[-1].bundle.manifest.confidence
    if own is None or best.hypothesis is None:
        return None
    between = 1.0
    if route.onward is not None:
        first = route.model.bundle.manifest.confidence
        if first is None:
            return None
        between = first.of_sentence(_between(best.before))
    evidence = Evidence.of(best.hypothesis)
    spans, places = judged_words(route.models[-1], best.hypothesis, written)
    words = [
        WordConfidence(*span.moved(start), round(between * confidence, _DIGITS))
        for span, confidence in zip(spans, own.of_words(evidence, places).tolist(), strict=True)
    ]
    return round(between * own.of_sentence(evidence), _DIGITS), words


def _between(pieces: Sequence[Hypothesis]) -> Evidence:
    """Of a sentence in a language between, which may have been written in several pieces: then by its scores alone."""
    if len(pieces) == 1:
        return Evidence.of(pieces[0])
    return Evidence([*chain.from_iterable(one.token_scores for one in pieces)])


def judged_words(model: ServedModel, hypothesis: Hypothesis, written: str) -> tuple[list[Span], list[list[int]]]:
    """The words of a translation that are no hidden parts, and of each the places of its tokens; none where no extra
    knows words."""
    aligner, hidden = word_aligner(), set(model.placeholders.values())
    if aligner is None:
        return [], []
    words = [
        (span, places)
        for span, places in aligner.written_words(model.bundle.target_vocabulary, hypothesis.tokens, written)
        if hidden.isdisjoint(hypothesis.tokens[place] for place in places)
    ]
    return [span for span, _ in words], [places for _, places in words]
