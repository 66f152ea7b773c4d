"""The details of a reply's sentences: where they stand, how sure the model is, and what their words align with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from models.search import Hypothesis
from service.api.replies import SentenceAlignment, SentenceDetail, SourceAlignment, TokenWeights, WordPair
from service.api.replies import Span as SpanReply
from service.api.schemas import DecodingFields
from service.text.spans import Span
from service.translation.alignment import Alignment, align_sources
from service.translation.decoding import Codec

MAX_WEIGHTS = 250_000
"""Numbers in all of a reply's attention matrices: some 2 MB of JSON."""


@dataclass(frozen=True, slots=True)
class Place:
    """One translated sentence.

    Attributes:
        sentence: its text in every source of the model, as it was decoded or as the request has it.
        source: where it stands in the text sent (of the leading source).
        target: where its translation stands in the reply's text.
        text: the translation.
        ids: per source the tokens that were decoded; None = those of ``Codec.encode``.
    """

    sentence: Sequence[str]
    source: Span
    target: Span
    text: str
    ids: Sequence[Sequence[int]] | None = None


@dataclass(slots=True)
class Details:
    """Writes the details of one request's sentences, one after another.

    Attributes:
        request: what was asked for.
        codec: of the bundle that decoded them.
        fields: per source of the model, the request's field that holds its texts.
        lead: the source whose layout the reply keeps.
        room: numbers that the reply's matrices may still have.
    """

    request: DecodingFields
    codec: Codec
    fields: Sequence[str] = ("q",)
    lead: int = 0
    room: int = field(default=MAX_WEIGHTS)

    def sentence(self, best: Hypothesis, place: Place) -> SentenceDetail:
        """The details of a sentence, as far as they were asked for."""
        detail = SentenceDetail(
            source=SpanReply(start=place.source.start, end=place.source.end),
            target=SpanReply(start=place.target.start, end=place.target.end),
            score=round(best.score, 6),
            tokens=self.codec.pieces(best),
        )
        if self.request.scores:
            detail.token_scores = [round(score, 6) for score in best.token_scores]
        if self.request.alignments and best.attention is not None:
            detail.alignment = self._alignment(best, place)
        return detail

    def _alignment(self, best: Hypothesis, place: Place) -> SentenceAlignment:
        found = align_sources(self.codec, place.sentence, place.text, best, place.ids)
        at = place.target.start
        others = {self.fields[number]: self._one(one, 0, at) for number, one in enumerate(found) if number != self.lead}
        lead = self._one(found[self.lead], place.source.start, at)
        return SentenceAlignment(tokens=lead.tokens, words=lead.words, others=others or None)

    def _one(self, found: Alignment, source: int, target: int) -> SourceAlignment:
        """One source's; ``source`` and ``target`` are where the sentence begins in its texts."""
        fits = found.weights.size <= self.room
        self.room -= found.weights.size if fits else 0
        tokens = TokenWeights(
            source=[token.piece for token in found.source],
            target=[token.piece for token in found.target],
            weights=[[round(weight, 4) for weight in row] for row in found.weights.tolist()] if fits else None,
        )
        words = [WordPair(source=_span(read, source), target=_span(written, target)) for read, written in found.words]
        return SourceAlignment(tokens=tokens, words=words)


def _span(span: Span, start: int) -> SpanReply:
    return SpanReply(start=span.start + start, end=span.end + start)
