"""What is finished of a request while the rest is still being decoded: from the text service to the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from tandem.service.engine import Decoded
from tandem.service.engine.engine import Watch
from tandem.service.translation.candidates import Candidate
from tandem.service.translation.results import CharacterRange, FinishedSentence, FinishedSummary
from tandem.service.translation.summaries import ExtractedText, SummarizedText, joined
from tandem.service.translation.units import Attempt, ParsedText, Unit

Event: TypeAlias = FinishedSentence | FinishedSummary
Render: TypeAlias = Callable[[], Event | None]


class Progress:
    """What is finished of a request, in the order in which it was finished.

    Attributes:
        told: the sentences of which there was an event, by the number of their text and their own.
    """

    def __init__(self) -> None:
        self.told: set[tuple[int, int]] = set()
        self._queue: asyncio.Queue[Render | None] = asyncio.Queue()

    def add(self, render: Render) -> None:
        """Note a finished sentence; ``render`` writes its event, if it has one, and is called in a thread."""
        self._queue.put_nowait(render)

    def end(self) -> None:
        """Note that nothing more will come."""
        self._queue.put_nowait(None)

    async def next(self, seconds: float) -> Render | None:
        """The next finished sentence; None at the end. Raises TimeoutError where that takes longer."""
        async with asyncio.timeout(seconds):
            return await self._queue.get()


def watch_sentences(progress: Progress, units: Sequence[tuple[ParsedText, Unit]]) -> Watch:
    """Tells ``progress`` of sentences of plain texts, whose jobs are decoded in the order of these units.

    Before the first it tells of those that were looked up: not at once, since what cannot begin is no stream.
    """
    places = [(text, unit) for text, unit in units for _ in unit.attempt.jobs]
    known = [(text, unit) for text, unit in units if unit.attempt.known_from]

    def finished(job: int, decoded: Decoded) -> None:
        while known:
            text, unit = known.pop(0)
            progress.add(partial(_tried, progress, text, unit, unit.attempt, ()))
        text, unit = places[job]
        if len(unit.attempt.jobs) == 1 and unit.is_last(text.plan):
            # Its attempt at this time: later there may be another.
            progress.add(partial(_tried, progress, text, unit, unit.attempt, [decoded]))

    return finished


def tell_rest(progress: Progress, parsed: Sequence[ParsedText]) -> None:
    """Tells ``progress`` of the sentences that it knows nothing of: looked up where nothing was decoded, of nothing but
    hidden parts, or tried again."""
    for text in parsed:
        for unit in text.units:
            progress.add(partial(_rest, progress, text, unit))


def _tried(
    progress: Progress, text: ParsedText, unit: Unit, attempt: Attempt, decoded: Sequence[Decoded]
) -> FinishedSentence | None:
    """A finished sentence; None where it will be tried again."""
    best = unit.candidates_of(text.plan, attempt, decoded)[0]
    return _sentence(progress, text, unit.number, best) if best.complete else None


def _rest(progress: Progress, text: ParsedText, unit: Unit) -> FinishedSentence | None:
    """A sentence as it is in the end; None where that was told."""
    told = (text.number, unit.number) in progress.told
    return None if told else _sentence(progress, text, unit.number, unit.candidates[0])


def _sentence(progress: Progress, text: ParsedText, number: int, candidate: Candidate) -> FinishedSentence:
    progress.told.add((text.number, number))
    document = text.segments[0].document
    piece, before = document.sentences[number], document.between[number]
    span = CharacterRange(piece.start, piece.start + len(piece.text))
    return FinishedSentence(text.number, number, span, candidate.text, before)


def watch_summaries(progress: Progress, texts: Sequence[SummarizedText]) -> Watch:
    """Tells ``progress`` of summaries that are answers; the jobs are decoded in the order of the texts' parts."""
    places = [(text, number) for text in texts for number in range(len(text.parts))]
    arrived: dict[int, dict[int, Decoded]] = {text.number: {} for text in texts}

    def finished(job: int, decoded: Decoded) -> None:
        text, number = places[job]
        results = arrived[text.number]
        results[number] = decoded
        if text.last and len(results) == len(text.parts):
            progress.add(partial(_summary, text, [results[number] for number in sorted(results)]))

    return finished


def tell_extracts(progress: Progress, texts: Sequence[SummarizedText | ExtractedText]) -> None:
    """Tells ``progress`` of summaries for which nothing was decoded."""
    for text in texts:
        if isinstance(text, ExtractedText):
            progress.add(partial(FinishedSummary, text.number, CharacterRange(*text.span), text.written.text))


def _summary(text: SummarizedText, decoded: Sequence[Decoded]) -> FinishedSummary:
    return FinishedSummary(text.number, CharacterRange(*text.span), joined(text.lines(text.candidates(decoded))))
