"""What the text service answers: plain records, whose attributes have the names of the replies' fields.

Those that a reply holds as they are have the names of its objects too, and their attributes are described by strings
behind them, as the OpenAPI document takes them over (``_DESCRIBED``, which is pydantic's).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tandem.service.engine import Decoded, Job
from tandem.service.text.detection import Guess
from tandem.service.text.faithful import Fault
from tandem.service.text.spans import Span

_DESCRIBED = {"use_attribute_docstrings": True}


class AlignedWords(NamedTuple):
    """Where a word of the source stands in the text sent, and a word that belongs to it in the translation."""

    source: Span
    target: Span


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """The attention with which each token was written."""

    __pydantic_config__ = _DESCRIBED

    source: Sequence[str]
    """The source's tokens, without the end of the sentence."""
    target: Sequence[str]
    """The written tokens, without the end of the sentence."""
    weights: list[list[float]] | None = None
    """Per target token one weight per source token, to 4 digits; absent where the reply has 250000 numbers already."""


@dataclass(frozen=True, slots=True)
class AlignedSource:
    """What one source of a sentence aligns with; ``others``: by field the further ones, None where it is alone."""

    tokens: TokenWeights
    words: list[AlignedWords]
    others: Mapping[str, AlignedSource] | None = None


@dataclass(frozen=True, slots=True)
class WordConfidence:
    """A word of the reply's text, at the characters `start` to `end` (exclusive)."""

    __pydantic_config__ = _DESCRIBED

    start: int
    end: int
    confidence: float
    """The chance that a person's translation has this word as well, 0 to 1."""


@dataclass(frozen=True, slots=True)
class WrittenSentence:
    """A sentence that was decoded, or that the caller's memory or a lexicon had: then it has no score, and no tokens.

    Attributes:
        source, target: where it stands in the text sent, and in the one that came of it.
        score: log-probability.
        tokens: pieces that the model wrote.
        token_scores: of each, and of the end; None where nobody asked.
        repetition: True where a loop was cut out of it, else None.
        faults: what is still at fault in it after all attempts, None where nothing is.
        match: percent of the source that the memory's entry has, 100; None where it was decoded.
        lexicon: True where it is a word or phrase that the bundle's lexicon had, else None.
        confidence: 0 to 1, and words: theirs; None where a model that wrote it was not calibrated.
    """

    source: Span
    target: Span
    score: float | None
    tokens: list[str]
    token_scores: list[float] | None = None
    alignment: AlignedSource | None = None
    repetition: bool | None = None
    match: int | None = None
    lexicon: bool | None = None
    confidence: float | None = None
    words: list[WordConfidence] | None = None
    faults: list[Fault] | None = None


@dataclass(frozen=True, slots=True)
class ProtectedSpan:
    """A part of the text that was to come back as it was."""

    __pydantic_config__ = _DESCRIBED

    text: str
    kept: bool
    """Whether the translation has it, byte for byte."""


@dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """A term of the glossary that stands in the text."""

    __pydantic_config__ = _DESCRIBED

    source: str
    target: str
    found: bool
    """Whether the translation has the target term."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """What became of one text.

    Attributes:
        text: by the best hypotheses.
        alternatives: by further ones, best first.
        sentences: those that were decoded; none where nobody asked.
        protected, glossary: what was hidden in it, each once, in order.
        truncated: whether it was cut to what the model reads.
        via: the language that it went through; None where one model translated it, or nothing did.
        method: what made it, a model, or an extract of its own sentences.
    """

    text: str
    alternatives: Sequence[str] = ()
    sentences: Sequence[WrittenSentence] = ()
    protected: Sequence[ProtectedSpan] = ()
    glossary: Sequence[GlossaryTerm] = ()
    truncated: bool = False
    via: str | None = None
    method: Literal["model", "extract"] = "model"

    @classmethod
    def unchanged(cls, text: str, alternatives: int) -> WrittenText:
        """A text that comes back as it was sent."""
        return cls(text, [text] * alternatives)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request amounted to."""

    characters: int
    source_tokens: int
    target_tokens: int

    @classmethod
    def of(cls, characters: int, jobs: Sequence[Job], decoded: Sequence[Decoded]) -> Usage:
        """Of jobs and their results: of sentences that were tried again, the last attempt's."""
        source = sum(len(source) - 1 for job in jobs for source in job.sources)
        target = sum(len(one.hypotheses[0].tokens) for one in decoded if one.hypotheses)
        return cls(characters, source, target)


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds; of the sentence that took longest, and of the request as a whole."""

    queue: float
    encode: float
    decode: float
    total: float

    @classmethod
    def of(cls, rounds: Sequence[Sequence[Decoded]], total: float) -> Time:
        """Of sentences that were decoded at the same time, and of others after that, such as those tried again."""
        longest = (
            sum(max((getattr(one, stage) for one in decoded), default=0.0) for decoded in rounds)
            for stage in ("queue", "encode", "decode")
        )
        return cls(*(round(seconds, 6) for seconds in (*longest, total)))


@dataclass(frozen=True, slots=True)
class DecodeResult:
    """The answer to a request.

    Attributes:
        texts: in the request's order.
        guesses: of each text the language that was detected, where the request left it open.
        model: names of what decoded it, with commas; None where nothing did.
        usage, time: None where nobody asked for details.
    """

    texts: Sequence[WrittenText]
    model: str | None
    usage: Usage | None = None
    time: Time | None = None
    guesses: Sequence[Guess] = ()


@dataclass(frozen=True, slots=True)
class FinishedSentence:
    """A sentence that is done, while others are still decoded: its text's number, its own, and where it stands;
    ``before``: what stands between the translation before it and its own.
    """

    text: int
    sentence: int
    source: Span
    translation: str
    before: str


@dataclass(frozen=True, slots=True)
class FinishedSummary:
    """A summary that is done, while others are still decoded: its text's number, and what of that was read."""

    text: int
    source: Span
    summary: str
