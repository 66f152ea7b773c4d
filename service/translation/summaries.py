"""Summaries: a text is read as a whole where it fits the model, and else in parts, whose summaries are read again.

    text ──► parts ──► jobs ──► summaries ──► one, or no further reading is allowed: the answer
               ▲                    │
               └──── put together ──┘

Where no further reading is allowed the summaries of the parts are the answer: nothing is left out. Where none is
allowed at all (``depth`` 0) a text is cut to what the model reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

from tandem.models.search import SearchOptions
from tandem.models.text import normalise
from tandem.service.bundles.served import ServedModel, Tokeniser
from tandem.service.engine import Decoded, Job
from tandem.service.ports import extras, load
from tandem.service.telemetry import tracing
from tandem.service.text.layout import is_translatable
from tandem.service.text.masking import Masked
from tandem.service.text.segmentation import split_sentences
from tandem.service.text.spans import Span, trim
from tandem.service.text.splitting import cut_to_limit, pack_sentences
from tandem.service.translation.candidates import ENDS, Candidate, candidates_of_whole
from tandem.service.translation.plans import Plan
from tandem.service.translation.requests import SummarizeTask
from tandem.service.translation.results import SentenceDetail, WrittenText
from tandem.service.translation.writing import SentenceWriter

_PARAGRAPH = re.compile(r"(\n\s*\n)")  # lines may be wrapped: only an empty one ends what it follows

_CLOSING = ")]}'\"»”’"  # may stand behind a sentence's end
_READ = 20_000  # characters that tell whether a model was made for a text


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """A text whose summary are sentences of it: its number in the request, what of it was read, and its summary."""

    number: int
    span: Span
    written: WrittenText


ExtractText: TypeAlias = Callable[[SummarizeTask, int, str], ExtractedText]
"""Summarizes a request's text of that number, in that language, by sentences of its own."""


@cache
def text_extractor() -> ExtractText | None:
    """What an extra brings for texts that no model summarizes."""
    extractor: ExtractText | None = next((load(extra.extracts) for extra in extras() if extra.extracts), None)
    return extractor


def is_made_for(model: ServedModel, text: str) -> bool:
    """Whether a text is written in the words that a summarizer knows from its training.

    They are one piece of its vocabulary, others several: where a text has fewer characters a token than nine tenths of
    those that the model learnt from, it is of another kind. A bundle that was not measured so is made for all.
    """
    beginning = normalise(text)[:_READ]
    tokens = Tokeniser(model).measure(beginning)
    return len(beginning) >= model.bundle.manifest.characters_per_token * tokens


@dataclass(frozen=True, slots=True)
class Reading:
    """What the model reads at once.

    Attributes:
        text: without the white space around it.
        source: what of the text sent it stands for.
    """

    text: str
    source: Span
    job: Job


@dataclass(slots=True, eq=False)
class SummarizedText:
    """A text on its way to its summary.

    Attributes:
        number: which of the request's.
        depth: how often summaries may be put together and read again from here on.
        span: what of it is read, without the white space around it.
        parts: what is read now; none where there is nothing to say.
        own: whether these are the text's own, and not summaries.
        truncated: whether it was cut instead.
        decoded: per part, once it is there.
    """

    plan: Plan
    request: SummarizeTask
    number: int
    depth: int
    span: Span = Span(0, 0)
    parts: Sequence[Reading] = ()
    own: bool = True
    truncated: bool = False
    decoded: Sequence[Decoded] = ()

    @classmethod
    def of(cls, plan: Plan, request: SummarizeTask, number: int, depth: int) -> SummarizedText:
        """A text of the request, in parts."""
        text, content = cls(plan, request, number, depth), normalise(request.texts[number])
        if not is_translatable(content):
            return text
        if depth:
            text.span = trim(content, 0, len(content))
            text._divide(_PARAGRAPH.split(content), plan.route.languages[0])
            return text
        tokens = Tokeniser(plan.model)
        cut, text.truncated = cut_to_limit(content, plan.model.limit, tokens.measure)
        if cut:
            text.span = Span(0, len(cut))
            text.parts = [Reading(cut, text.span, plan.job((tokens.ids(cut),), first=True))]
        return text

    @property
    def last(self) -> bool:
        """Whether the summaries of its parts are the answer."""
        return len(self.parts) < 2 or not self.depth

    def read_again(self) -> None:
        """Let the summaries of its parts be what is read."""
        summaries = [f"{_ended(candidates[0].text)}\n" for candidates in self.candidates(self.decoded)]
        self.depth, self.own = self.depth - 1, False
        self._divide(summaries, self.plan.model.target)

    def candidates(self, decoded: Sequence[Decoded]) -> list[list[Candidate]]:
        """Per part what its result says, best first."""
        model = self.plan.model
        return [
            candidates_of_whole(model, Masked(part.text), (), (part.text,), part.job.longest, result)
            for part, result in zip(self.parts, decoded, strict=True)
        ]

    def lines(self, candidates: Sequence[Sequence[Candidate]], rank: int = 0) -> list[str]:
        """Per part its summary of that rank, as far as the request's bound of sentences lets it stand in the answer."""
        lines = [ranked[min(rank, len(ranked) - 1)].text for ranked in candidates]
        lines = lines if len(lines) < 2 else [_ended(line) for line in lines]
        left = self.request.sentences
        if left is None:
            return lines
        for number, line in enumerate(lines):
            kept = split_sentences(line, self.plan.model.target)[:left]
            lines[number], left = "".join(kept).rstrip(), left - len(kept)
        return lines

    def _divide(self, blocks: Iterable[str], language: str) -> None:
        """Make the parts; sentences end where blocks do."""
        plan, tokens, start = self.plan, Tokeniser(self.plan.model), 0
        sentences = [one for block in blocks for one in split_sentences(block.replace("\n", " "), language)]
        found: list[tuple[str, Span]] = []
        for text in pack_sentences(sentences, plan.model.limit, tokens.measure):
            if is_translatable(text):
                place = trim(text, 0, len(text)).moved(start)
                found.append((text.strip(), place if self.own else self.span))
            start += len(text)
        passing = _passing(plan) if len(found) > 1 and self.depth else None
        jobs = [plan.job((tokens.ids(text),), first=number == 0) for number, (text, _) in enumerate(found)]
        self.parts = [
            Reading(text, source, replace(job, options=passing) if passing else job)
            for (text, source), job in zip(found, jobs, strict=True)
        ]


def _passing(plan: Plan) -> SearchOptions:
    """For summaries that are read again: of the model's own lengths, since those asked for are the answer's."""
    own = plan.model.options
    return replace(plan.options, min_length=own.min_length, max_length=own.max_length, n_best=1, attention=False)


def _ended(text: str) -> str:
    """A summary beside others: with a full stop, where it ends with no mark of its own."""
    return text if not text or text.rstrip(_CLOSING)[-1:] in ENDS else f"{text.rstrip(',;:')}."


def joined(lines: Iterable[str]) -> str:
    """The summaries of parts as one text."""
    return "\n".join(filter(None, lines))


@tracing.traced("detokenise")
def write_summaries(
    request: SummarizeTask,
    texts: Sequence[SummarizedText | ExtractedText],
    pending: Sequence[SummarizedText],
    decoded: Sequence[Decoded],
) -> tuple[list[SummarizedText], list[WrittenText]]:
    """Give the pending texts the results of their jobs. Returns those that are read again; or else all summaries."""
    results = iter(decoded)
    for text in pending:
        text.decoded = [next(results) for _ in text.parts]
    again = [text for text in pending if not text.last]
    for text in again:
        text.read_again()
    if again:
        return again, []
    writer, unaligned = SentenceWriter(request), SentenceWriter(replace(request, alignments=False))
    return [], [
        text.written if isinstance(text, ExtractedText) else _written(text, writer if text.own else unaligned)
        for text in texts
    ]


def _written(text: SummarizedText, writer: SentenceWriter) -> WrittenText:
    candidates = text.candidates(text.decoded)
    lines, start = text.lines(candidates), 0
    sentences: list[SentenceDetail] = []
    for part, (best, *_), line in zip(text.parts, candidates, lines, strict=True):
        if line and text.request.wants_details:
            places = part.source, Span(start, start + len(line))
            sentences += writer.describe(text.plan.route, best, (part.text,), places, line)
        start += len(line) + 1 if line else 0
    others = [joined(text.lines(candidates, rank)) for rank in range(1, text.request.alternatives + 1)]
    return WrittenText.of(joined(lines), others, sentences=sentences, truncated=text.truncated)
