"""From decoded sentences to the texts of a reply, with what is said about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from service.api.replies import GlossaryTerm, ProtectedSpan, SentenceDetail, TextDetail
from service.engine import Decoded, Job
from service.text.masking import Hidden
from service.text.spans import Span
from service.translation.decoding import Plan
from service.translation.details import Details, Place
from service.translation.sentences import Attempt, Line, first_attempt, next_attempt
from service.translation.sides import Parsed


@dataclass(frozen=True, slots=True)
class Written:
    """One text of a reply.

    Attributes:
        text: by the best hypotheses.
        alternatives: further ones, best first.
        detail: where its sentences stand.
        protected, glossary: what was hidden in it, each once, and whether the text has it.
    """

    text: str
    alternatives: list[str]
    detail: TextDetail
    protected: list[ProtectedSpan] = field(default_factory=list)
    glossary: list[GlossaryTerm] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Draft:
    """A text on its way: parsed, then tried, then written.

    Attributes:
        plan: how its request is decoded.
        parsed: its layout and sentences.
        attention: whether the hypotheses carry theirs, where they can.
        attempts: per sentence the last one.
        decoded: per sentence what became of its jobs.
        lines: per sentence its translations, best first.
    """

    plan: Plan
    parsed: Parsed
    attention: bool = False
    attempts: list[Attempt] = field(init=False)
    decoded: list[list[Decoded]] = field(init=False)
    lines: list[list[Line]] = field(init=False)

    def __post_init__(self) -> None:
        sentences = enumerate(self.parsed.sentences)
        self.attempts = [
            first_attempt(self.plan, one, first=number == 0, attention=self.attention) for number, one in sentences
        ]
        self.decoded, self.lines = [[] for _ in self.attempts], [[] for _ in self.attempts]

    @property
    def drafts(self) -> list[Draft]:
        """Itself alone: a text in markup has several."""
        return [self]

    @property
    def jobs(self) -> list[Job]:
        """Those of all sentences, in order."""
        return [job for attempt in self.attempts for job in attempt.jobs]

    def read(self, decoded: Iterator[Decoded]) -> None:
        """Take the results of ``jobs``."""
        for number, attempt in enumerate(self.attempts):
            self.decoded[number] = [next(decoded) for _ in attempt.jobs]
            self.lines[number] = attempt.lines(self.plan.codec, self.decoded[number])

    def again(self) -> list[tuple[int, Attempt]]:
        """By number the sentences of which something is missing, and how they are tried next."""
        found = []
        for number, (last, lines) in enumerate(zip(self.attempts, self.lines, strict=True)):
            if not lines[0].sound:
                attempt = next_attempt(self.plan, last, lines[0].kept, first=number == 0, attention=self.attention)
                found += [(number, attempt)] if attempt else []
        return found

    def replace(self, number: int, attempt: Attempt, decoded: Sequence[Decoded]) -> None:
        """Take the results of a sentence's next attempt."""
        self.attempts[number], self.decoded[number] = attempt, list(decoded)
        self.lines[number] = attempt.lines(self.plan.codec, decoded)

    def joined(self, rank: int) -> tuple[str, list[tuple[int, int]]]:
        """The text with every sentence's translation of that rank, and where each stands."""
        lines = [found[min(rank, len(found) - 1)].text for found in self.lines]
        if self.plan.polish is not None:
            sources = (piece.text for piece in self.parsed.document.sentences)
            lines = [self.plan.polish(source, line) for source, line in zip(sources, lines, strict=True)]
        return self.parsed.document.join(lines)

    def hidden(self) -> Iterable[tuple[Hidden, bool]]:
        """What was hidden in the sentences, and whether the translation has it."""
        for sentence, lines in zip(self.parsed.sentences, self.lines, strict=True):
            yield from zip(sentence.masked.hidden, lines[0].kept, strict=True)

    def write(self, details: Details, alternatives: int) -> Written:
        """The text of the reply."""
        if not self.attempts:  # nothing to translate: the text comes back as it was sent
            return unchanged(self.parsed.text, alternatives)
        text, spans = self.joined(0)
        found = list(self._details(details, text, spans)) if details.request.wants_details else []
        others = [self.joined(rank)[0] for rank in range(1, alternatives + 1)]
        return Written(text, others, TextDetail(sentences=found), *reports(self.hidden()))

    def _details(self, details: Details, text: str, spans: Sequence[tuple[int, int]]) -> Iterator[SentenceDetail]:
        """Of the sentences that were decoded."""
        for number, (piece, (start, end)) in enumerate(zip(self.parsed.document.sentences, spans, strict=True)):
            line, attempt = self.lines[number][0], self.attempts[number]
            if line.hypothesis is None:
                continue
            source = Span(piece.start, piece.start + len(piece.text))
            place = Place(attempt.sentence.texts, source, Span(start, end), text[start:end], self.ids(number))
            detail = details.sentence(line.hypothesis, place)
            detail.repetition = line.repetition or None
            yield detail

    def ids(self, number: int) -> tuple[tuple[int, ...], ...] | None:
        """The tokens that a sentence was decoded from; None where that was more than one sentence."""
        jobs = self.attempts[number].jobs
        return jobs[0].sources if len(jobs) == 1 else None


def unchanged(text: str, alternatives: int) -> Written:
    """A text that comes back as it was sent."""
    return Written(text, [text] * alternatives, TextDetail(sentences=[]))


def reports(hidden: Iterable[tuple[Hidden, bool]]) -> tuple[list[ProtectedSpan], list[GlossaryTerm]]:
    """What a reply says of hidden parts that were asked for: each once, in order; kept where all of its places are."""
    protected: dict[str, bool] = {}
    terms: dict[tuple[str, str], bool] = {}
    for one, kept in hidden:
        if one.term is not None:
            terms[one.term, one.target] = terms.get((one.term, one.target), True) and kept
        elif one.asked:
            protected[one.source] = protected.get(one.source, True) and kept
    return (
        [ProtectedSpan(text=text, kept=kept) for text, kept in protected.items()],
        [GlossaryTerm(source=source, target=target, found=found) for (source, target), found in terms.items()],
    )


Retry: TypeAlias = tuple[Draft, int, Attempt]
"""A sentence of a draft, by its number, and how it is tried again."""


def read_results(drafts: Sequence[Draft], decoded: Sequence[Decoded]) -> list[Retry]:
    """Give each draft its results, and return the sentences that are to be tried again."""
    remaining = iter(decoded)
    for draft in drafts:
        draft.read(remaining)
    return [(draft, number, attempt) for draft in drafts for number, attempt in draft.again()]


def replace_results(again: Sequence[Retry], decoded: Sequence[Decoded]) -> list[Retry]:
    """Give the sentences that were tried again their results, and return those of which something is still missing."""
    remaining = iter(decoded)
    for draft, number, attempt in again:
        draft.replace(number, attempt, [next(remaining) for _ in attempt.jobs])
    return [
        (draft, number, attempt)
        for draft in {id(one): one for one, _, _ in again}.values()
        for number, attempt in draft.again()
    ]
