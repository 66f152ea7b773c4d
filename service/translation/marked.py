"""Texts in markup: every block is translated like a text of its own, and its inline markup follows the words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from service.api.replies import Span as SpanReply
from service.api.replies import TextDetail
from service.api.schemas import TranslateRequest
from service.http.errors import InvalidFields
from service.text.html import HtmlDocument
from service.text.markup import MarkupError, MarkupOptions
from service.text.spans import Span
from service.translation.alignment import align_sources
from service.translation.decoding import Plan
from service.translation.details import Details
from service.translation.sides import Guard, Sides, parse_alone
from service.translation.writing import Draft, Written, reports


class Item(Protocol):
    """One text of a request on its way."""

    @property
    def drafts(self) -> list[Draft]:
        """What of it is decoded."""
        ...

    def write(self, details: Details, alternatives: int) -> Written:
        """The text of the reply, once the drafts have their results."""
        ...


def read_markup(request: TranslateRequest, options: MarkupOptions | None) -> list[HtmlDocument]:
    """A request's texts, divided.

    Raises:
        InvalidFields: markup that is not read, or that comes in several languages.
    """
    if request.others:
        message = "must be 'text' where the same text is given in other languages"
        raise InvalidFields.of("format", message, request.format)
    documents = []
    for number, text in enumerate(request.texts):
        try:
            documents.append(HtmlDocument.parse(text, options))
        except MarkupError as error:
            place = f"q.{number}" if len(request.texts) > 1 else "q"
            raise InvalidFields.of(place, str(error), text if error.value is None else error.value) from error
    return documents


@dataclass(frozen=True, slots=True)
class MarkedUp:
    """A text in markup, with a draft for each of its blocks."""

    document: HtmlDocument
    drafts: list[Draft]

    @classmethod
    def parse(cls, document: HtmlDocument, plan: Plan, sides: Sides, guard: Guard) -> MarkedUp:
        """Its blocks in sentences; those with inline markup are decoded with their attention."""
        drafts = []
        for block in document.blocks:
            masked = guard.mask(block.text, block.kept)
            drafts.append(Draft(plan, parse_alone(block.text, masked, sides, plan.codec), block.has_markup))
        return cls(document, drafts)

    def write(self, details: Details, alternatives: int) -> Written:
        """The markup with its text translated; details count the characters of the blocks' texts, each on a line."""
        texts = [self._rendered(rank) for rank in range(alternatives + 1)]
        hidden = [one for draft in self.drafts for one in draft.hidden()]
        return Written(texts[0], texts[1:], self._detail(details), *reports(hidden))

    def _rendered(self, rank: int) -> str:
        blocks = zip(self.document.blocks, self.drafts, strict=True)
        return self.document.render([block.render(*_aligned(draft, rank)) for block, draft in blocks])

    def _detail(self, details: Details) -> TextDetail:
        sentences = []
        source = target = 0
        for block, draft in zip(self.document.blocks, self.drafts, strict=True):
            written = draft.write(details, 0)
            for one in written.detail.sentences:
                one.source, one.target = _moved(one.source, source), _moved(one.target, target)
                for pair in one.alignment.words if one.alignment else ():
                    pair.source, pair.target = _moved(pair.source, source), _moved(pair.target, target)
                sentences.append(one)
            source, target = source + len(block.text) + 1, target + len(written.text) + 1
        return TextDetail(sentences=sentences)


def _aligned(draft: Draft, rank: int) -> tuple[str, list[tuple[Span, Span]]]:
    """A block's translation of that rank, and which of its words belong to which of the block's."""
    text, spans = draft.joined(rank)
    return text, list(_pairs(draft, rank, text, spans)) if draft.attention else []


def _pairs(draft: Draft, rank: int, text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[Span, Span]]:
    for number, (piece, (start, end)) in enumerate(zip(draft.parsed.document.sentences, spans, strict=True)):
        lines, attempt = draft.lines[number], draft.attempts[number]
        best = lines[min(rank, len(lines) - 1)].hypothesis
        if best is None or best.attention is None:
            continue
        codec, ids = draft.plan.codec, draft.ids(number)
        (found,) = align_sources(codec, attempt.sentence.texts, text[start:end], best, ids)
        yield from ((read.moved(piece.start), written.moved(start)) for read, written in found.words)


def _moved(span: SpanReply, by: int) -> SpanReply:
    return SpanReply(start=span.start + by, end=span.end + by)
