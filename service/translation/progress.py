"""What is finished of a request while the rest is still being decoded: from the text service to the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from service.api.replies import SentenceEvent, Span, SummaryEvent
from service.engine import Decoded
from service.engine.engine import Watch
from service.translation.decoding import Codec
from service.translation.sentences import Attempt, Line
from service.translation.writing import Draft

Event: TypeAlias = SentenceEvent | SummaryEvent
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


def watch_sentences(progress: Progress | None, drafts: Sequence[tuple[int, Draft]]) -> Watch | None:
    """Tells ``progress`` of the sentences of drafts, each with its text's number, whose jobs were made in order."""
    if progress is None:
        return None
    places = [
        (text, number, draft)
        for text, draft in drafts
        for number, attempt in enumerate(draft.attempts)
        for _ in attempt.jobs
    ]

    def finished(job: int, decoded: Decoded) -> None:
        text, number, draft = places[job]
        attempt = draft.attempts[number]  # the first one; later there may be another
        if len(attempt.jobs) == 1:
            progress.add(lambda: _tried(progress, text, number, draft, attempt, decoded))

    return finished


def tell_rest(progress: Progress | None, drafts: Sequence[tuple[int, Draft]]) -> None:
    """Tells ``progress`` of the sentences that it knows nothing of: of nothing but hidden parts, or tried again."""
    if progress is None:
        return
    for text, draft in drafts:
        for number in range(len(draft.attempts)):
            progress.add(partial(_rest, progress, text, number, draft))


def _tried(
    progress: Progress, text: int, number: int, draft: Draft, attempt: Attempt, decoded: Decoded
) -> SentenceEvent | None:
    """A finished sentence; None where it will be tried again."""
    line = attempt.lines(draft.plan.codec, [decoded])[0]
    return _sentence(progress, text, number, draft, line) if line.sound else None


def _rest(progress: Progress, text: int, number: int, draft: Draft) -> SentenceEvent | None:
    """A sentence as it is in the end; None where that was told."""
    return None if (text, number) in progress.told else _sentence(progress, text, number, draft, draft.lines[number][0])


def _sentence(progress: Progress, text: int, number: int, draft: Draft, line: Line) -> SentenceEvent:
    progress.told.add((text, number))
    piece = draft.parsed.document.sentences[number]
    source = Span(start=piece.start, end=piece.start + len(piece.text))
    return SentenceEvent(text=text, sentence=number, source=source, translation=line.text)


def watch_summaries(progress: Progress | None, codec: Codec, read: Sequence[tuple[int, str]]) -> Watch | None:
    """Tells ``progress`` of summaries; ``read`` has per job the text's number and what of it is read."""
    if progress is None:
        return None

    def finished(job: int, decoded: Decoded) -> None:
        number, text = read[job]
        progress.add(lambda: _summary(codec, number, text, decoded))

    return finished


def _summary(codec: Codec, number: int, text: str, decoded: Decoded) -> SummaryEvent:
    summary = codec.decode(decoded.hypotheses[0], (text,))
    return SummaryEvent(text=number, source=Span(start=0, end=len(text)), summary=summary)
