"""Written: the units' results put into their places, in plain text and in markup, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypedDict

from tandem.models.search import Hypothesis
from tandem.service.bundles.aligning import NOTHING, Alignment, WordPairs, word_aligner
from tandem.service.bundles.catalog import Route
from tandem.service.bundles.served import ServedModel
from tandem.service.text.blocks import MarkupDocument
from tandem.service.text.masking import Hidden
from tandem.service.text.spans import Span
from tandem.service.translation.candidates import Candidate
from tandem.service.translation.confidence import judge
from tandem.service.translation.plans import Plan
from tandem.service.translation.requests import DecodeRequest
from tandem.service.translation.results import (
    CharacterRange,
    GlossaryTerm,
    ProtectedSpan,
    SentenceAlignment,
    SentenceDetail,
    SourceAlignment,
    TokenWeights,
    WordPair,
    WrittenText,
)
from tandem.service.translation.units import ParsedText, SegmentedText

Align: TypeAlias = Callable[[str, Hypothesis], Sequence[Alignment]]
MAX_WEIGHTS = 250_000
"""Numbers in all of an answer's attention matrices: some 2 MB of JSON."""
EXACT = 100
"""Percent of a sentence that an entry of a translation memory matches: no others are taken."""


@dataclass(slots=True)
class SentenceWriter:
    """Describes the sentences of one request, one after another, as far as it asks for it.

    Attributes:
        request: what is asked for.
        room: numbers that attention matrices may still have.
    """

    request: DecodeRequest
    room: int = MAX_WEIGHTS

    def describe(
        self,
        route: Route,
        best: Candidate,
        sentence: Sequence[str],
        spans: tuple[Span, Span],
        written: str,
        align: Align | None = None,
    ) -> list[SentenceDetail]:
        """A translated sentence; none where nothing was decoded or known.

        Args:
            route: how it was decoded.
            best: its translation, as it was decoded.
            sentence: its text in every source of the model, as it was decoded or as the request has it.
            spans: where it stands in the text sent (of the leading source), and its translation in what is written.
            written: the translation.
            align: what a hypothesis with its attention aligns with; None = the sentence alone, by that model.
        """
        hypothesis = best.hypothesis
        source, target = (CharacterRange(*span) for span in spans)
        if best.known_from == "memory":
            return [SentenceDetail(source, target, [], match=EXACT)]
        if best.known_from == "stage":
            # which word of a phrase became which, a stage does not say
            whole = SentenceAlignment(TokenWeights([sentence[0]], [written], None), [WordPair(source, target)])
            alignment = whole if self.request.alignments else None
            return [SentenceDetail(source, target, [], alignment=alignment, lexicon=True)]
        if hypothesis is None:
            return []
        alignment = None
        if self.request.alignments and hypothesis.attention is not None:
            aligned = (align or partial(_alone, route.model, sentence))(written, hypothesis)
            others = {
                field: self._aligned(alignment, 0, target.start)
                for number, (field, alignment) in enumerate(zip(route.fields, aligned, strict=True))
                if number != route.lead
            }
            leading = self._aligned(aligned[route.lead], source.start, target.start)
            alignment = SentenceAlignment(leading.tokens, leading.words, others or None)
        confidence, words = judge(route, best, written, target.start) or (None, None)
        return [
            SentenceDetail(
                source,
                target,
                route.models[-1].pieces(hypothesis),
                round(hypothesis.score, 6),
                confidence,
                words,
                token_scores=[round(one, 6) for one in hypothesis.token_scores] if self.request.scores else None,
                alignment=alignment,
                repetition=best.repetition or None,
                faults=[*best.faults] or None,
            )
        ]

    def _aligned(self, alignment: Alignment, source: int, target: int) -> SourceAlignment:
        """One source's; ``source`` and ``target`` are where the sentence begins in its texts."""
        fits = alignment.weights.size <= self.room
        self.room -= alignment.weights.size if fits else 0
        weights = [[round(weight, 4) for weight in row] for row in alignment.weights.tolist()] if fits else None
        tokens = TokenWeights(alignment.source, alignment.target, weights)
        pairs = ((read.moved(source), to.moved(target)) for read, to in alignment.words)
        return SourceAlignment(tokens, [WordPair(CharacterRange(*read), CharacterRange(*to)) for read, to in pairs])


def _alone(model: ServedModel, sentence: Sequence[str], written: str, hypothesis: Hypothesis) -> Sequence[Alignment]:
    """What a sentence that one model decoded as a whole aligns with."""
    aligner = word_aligner()
    assert aligner is not None, "or else no hypothesis has its attention"
    return aligner.align(model, sentence, written, hypothesis, None, NOTHING)


def write_texts(request: DecodeRequest, parsed: Sequence[ParsedText]) -> list[WrittenText]:
    """The request's texts in its order; those that go nowhere stay as they are."""
    writer = SentenceWriter(request)
    written: dict[int, WrittenText] = {}
    for text in sorted(parsed, key=lambda text: text.number):  # the room goes to the first ones
        written[text.number] = (_write_plain if text.markup is None else _write_markup)(text, writer)
    return [written[number] if number in written else WrittenText(text) for number, text in enumerate(request.texts)]


def _write_plain(parsed: ParsedText, writer: SentenceWriter) -> WrittenText:
    (segment,), plan = parsed.segments, parsed.plan
    if not segment.units:  # nothing to translate: the text comes back as it was sent
        return WrittenText(segment.text)
    text, spans = _joined(segment, plan, 0)
    sentences = _sentences(segment, plan, writer, text, spans) if plan.request.wants_details else []
    others = [_joined(segment, plan, rank)[0] for rank in range(1, plan.request.alternatives + 1)]
    return WrittenText.of(text, others, sentences=sentences, **_reports(parsed), via=parsed.via)


def _write_markup(parsed: ParsedText, writer: SentenceWriter) -> WrittenText:
    """The markup with its text translated; sentences count the characters of the blocks' texts, each on a line."""
    assert parsed.markup is not None
    texts = [_rendered(parsed, parsed.markup, rank) for rank in range(parsed.plan.request.alternatives + 1)]
    sentences: list[SentenceDetail] = []
    source = target = 0
    for segment in parsed.segments if parsed.plan.request.wants_details else ():
        text, spans = _joined(segment, parsed.plan, 0) if segment.units else (segment.text, [])
        sentences += _sentences(segment, parsed.plan, writer, text, spans, (source, target))
        source, target = source + len(segment.text) + 1, target + len(text) + 1
    return WrittenText.of(texts[0], texts[1:], sentences=sentences, **_reports(parsed), via=parsed.via)


def _joined(segment: SegmentedText, plan: Plan, rank: int) -> tuple[str, list[tuple[int, int]]]:
    """The text with every unit's candidate of that rank, and where each stands."""
    lines = [unit.candidates[min(rank, len(unit.candidates) - 1)].text for unit in segment.units]
    postprocess = plan.context.postprocess
    if postprocess is not None:
        sources = (piece.text for piece in segment.document.sentences)
        lines = [postprocess(source, line) for source, line in zip(sources, lines, strict=True)]
    return segment.document.join(lines)


def _sentences(
    segment: SegmentedText,
    plan: Plan,
    writer: SentenceWriter,
    text: str,
    spans: Sequence[tuple[int, int]],
    before: tuple[int, int] = (0, 0),
) -> list[SentenceDetail]:
    """Of the units that were decoded; ``before``: characters of the source and the target before this segment."""
    written = []
    for unit, piece, (start, end) in zip(segment.units, segment.document.sentences, spans, strict=True):
        source = Span(piece.start, piece.start + len(piece.text)).moved(before[0])
        places = source, Span(start, end).moved(before[1])
        align = partial(unit.align, plan)
        written += writer.describe(plan.route, unit.candidates[0], unit.texts, places, text[start:end], align)
    return written


class _Reports(TypedDict):
    protected: list[ProtectedSpan]
    glossary: list[GlossaryTerm]


def _reports(parsed: ParsedText) -> _Reports:
    """What is said of hidden parts that were asked for: each once, in order; kept where all of its places are."""
    protected: dict[str, bool] = {}
    terms: dict[tuple[str, str], bool] = {}
    for part, kept in _hidden(parsed):
        if part.term is not None and part.asked:
            terms[part.term, part.target] = terms.get((part.term, part.target), True) and kept
        elif part.asked:
            protected[part.source] = protected.get(part.source, True) and kept
    return {
        "protected": [ProtectedSpan(text, kept) for text, kept in protected.items()],
        "glossary": [GlossaryTerm(source, target, kept) for (source, target), kept in terms.items()],
    }


def _hidden(parsed: ParsedText) -> Iterable[tuple[Hidden, bool]]:
    """What was hidden in the units, and whether the translation has it."""
    for unit in parsed.units:
        yield from zip(unit.masked.hidden, unit.candidates[0].kept, strict=True)


def _rendered(parsed: ParsedText, markup: MarkupDocument, rank: int) -> str:
    blocks = []
    for block, segment in zip(markup.blocks, parsed.segments, strict=True):
        text, spans = _joined(segment, parsed.plan, rank)
        pairs = list(_word_pairs(segment, parsed.plan, rank, text, spans)) if segment.attention else []
        blocks.append(block.render(text, pairs))
    return markup.render(blocks)


def _word_pairs(
    segment: SegmentedText, plan: Plan, rank: int, text: str, spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[Span, Span]]:
    """Which words of a block's text belong to which of its translation."""
    aligner = word_aligner()
    if aligner is None:
        return
    for unit, piece, (start, end) in zip(segment.units, segment.document.sentences, spans, strict=True):
        hypothesis = unit.candidates[min(rank, len(unit.candidates) - 1)].hypothesis
        found: WordPairs
        if hypothesis is not None and hypothesis.attention is not None:
            found = unit.align(plan, text[start:end], hypothesis)[0].words
        else:
            found = aligner.pairs_of_parts(unit.masked, text[start:end]) if unit.masked.source == piece.text else ()
        pairs = aligner.parted(found, piece.text, text[start:end])
        yield from ((read.moved(piece.start), written.moved(start)) for read, written in pairs)
