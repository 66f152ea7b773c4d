"""What the text service answers: plain records, whose attributes have the names of the replies' fields.

Those that a reply holds as they are have the names of its objects too, and their attributes are described by strings
behind them, as the OpenAPI document takes them over (``_DESCRIBED``, which is pydantic's).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tandem.service.engine import Decoded, Job
from tandem.service.text.detection import Guess
from tandem.service.translation.fidelity import Fault

_DESCRIBED = {"use_attribute_docstrings": True}


@dataclass(frozen=True, slots=True)
class CharacterRange:
    """Characters `start` to `end` (exclusive)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class WordPair:
    """A word of the source and a word of the target that belong together."""

    __pydantic_config__ = _DESCRIBED

    source: CharacterRange
    """In the text sent, after Unicode NFC."""
    target: CharacterRange
    """In the reply's text."""


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
class SourceAlignment:
    """What one source's tokens and words align with."""

    tokens: TokenWeights
    words: list[WordPair]


@dataclass(frozen=True, slots=True)
class SentenceAlignment(SourceAlignment):
    """What a sentence aligns with in the text whose layout the reply keeps, and in the model's further sources."""

    __pydantic_config__ = _DESCRIBED

    others: Mapping[str, SourceAlignment] | None = None
    """By request field, of models that read several texts; there `source` of `words` counts from the start of the
    sentence."""


@dataclass(frozen=True, slots=True)
class WordConfidence:
    """A word of the reply's text, at the characters `start` to `end` (exclusive)."""

    __pydantic_config__ = _DESCRIBED

    start: int
    end: int
    confidence: float
    """The chance that a person's translation has this word as well, 0 to 1."""


@dataclass(frozen=True, slots=True)
class SentenceDetail:
    """One sentence: where it stands in the text sent (after Unicode NFC) and in the reply, and how sure the model is.

    The text sent is `q`, for /postedit `translation`. With the format `html`, both texts are those of the blocks
    without their markup, each block on a line.
    """

    __pydantic_config__ = _DESCRIBED

    source: CharacterRange
    target: CharacterRange
    tokens: list[str]
    score: float | None = None
    """Log-probability of the whole sentence; absent where nothing was decoded."""
    confidence: float | None = None
    """Of a calibrated model: the chrF (0 to 1) that the sentence is expected to have beside a person's translation."""
    words: list[WordConfidence] | None = None
    """Of a calibrated model: the words of the reply's text, without punctuation marks."""
    token_scores: list[float] | None = None
    """Per token and for the end of the sentence."""
    alignment: SentenceAlignment | None = None
    """Where `alignments` were asked for."""
    repetition: bool | None = None
    """True where the model repeated itself and was cut."""
    faults: list[Fault] | None = None
    """What is at fault after all attempts, where anything is: `characters` (a broken one), `signs`, `numbers` (of four
    digits or more, or any where there are others instead, or none even in words) and `parts` (that come back as they
    are) are not there as often as in the source, `brackets` or quotation marks lack their other one or what they hold,
    or there are no `words`."""
    match: int | None = None
    """100 where the caller's translation memory had the sentence, and nothing was decoded."""
    lexicon: bool | None = None
    """True where the bundle's lexicon had the word or phrase, and nothing was decoded."""


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
    sentences: Sequence[SentenceDetail] = ()
    protected: Sequence[ProtectedSpan] = ()
    glossary: Sequence[GlossaryTerm] = ()
    truncated: bool = False
    via: str | None = None
    method: Literal["model", "extract"] = "model"

    @classmethod
    def of(cls, text: str, others: Iterable[str], **fields: Any) -> WrittenText:
        """A text and its alternatives, each once: they may be fewer than were asked for."""
        return cls(text, [other for other in dict.fromkeys(others) if other != text], **fields)


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
    source: CharacterRange
    translation: str
    before: str


@dataclass(frozen=True, slots=True)
class FinishedSummary:
    """A summary that is done, while others are still decoded: its text's number, and what of that was read."""

    text: int
    source: CharacterRange
    summary: str
