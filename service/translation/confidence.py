"""Confidence: how sure a route's models are of a sentence and of its words, as far as they were calibrated.

Where a text goes through a third language, the first model has to be right as well: what the last one is sure of is
multiplied by the first one's confidence in the sentence between.
"""

from __future__ import annotations

from itertools import chain

from models.confidence import Floats, sentence_numbers, word_numbers
from models.search import Hypothesis
from service.bundles.catalog import Route
from service.bundles.served import ServedModel
from service.text.spans import Span
from service.translation.alignment import written_words
from service.translation.candidates import Candidate
from service.translation.results import WordConfidence

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
        scores = list(chain.from_iterable(one.token_scores for one in best.before))
        between = float(first.sentences(sentence_numbers(scores)))
    spans, numbers = judged_words(route.models[-1], best.hypothesis, written)
    words = [
        WordConfidence(*span.moved(start), round(between * confidence, _DIGITS))
        for span, confidence in zip(spans, own.words(numbers).tolist(), strict=True)
    ]
    return round(between * float(own.sentences(sentence_numbers(best.hypothesis.token_scores))), _DIGITS), words


def judged_words(model: ServedModel, hypothesis: Hypothesis, written: str) -> tuple[list[Span], Floats]:
    """The words of a translation that are no hidden parts, and what is weighed of each (W x N)."""
    hidden, scores = set(model.placeholders.values()), hypothesis.token_scores
    words = [
        (span, places)
        for span, places in written_words(model.bundle.target_vocabulary, hypothesis.tokens, written)
        if hidden.isdisjoint(hypothesis.tokens[place] for place in places)
    ]
    of_words = [[scores[place] for place in places] for _, places in words]
    return [span for span, _ in words], word_numbers(of_words, scores)
