"""One sentence on its way to the model and back: what is hidden becomes placeholders, is checked, and comes back.

A sentence is decoded as a whole: with a placeholder for each part that is hidden, which the search writes exactly as
often as it was read, or, where the model knows no placeholders or there are too few, as it was sent. Then the parts are
looked for in what was written. Where one is missing, the pieces between the parts are translated each by itself, and
the parts stand between them again: worse as a translation, but complete.
"""

from __future__ import annotations

import string
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Protocol

from models.search import Hypothesis
from service.engine import Decoded, Job
from service.text import is_translatable
from service.text.loops import cut_loops
from service.text.masking import Hidden, Masked
from service.text.placeholders import cased, choose_placeholders, found_parts, restored
from service.translation.decoding import Codec, Plan

_ENDS = ".!?…。！？"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text.

    Attributes:
        texts: per source of the model, as it was sent.
        masked: the leading source's, with what is hidden in it.
    """

    texts: tuple[str, ...]
    masked: Masked

    @classmethod
    def plain(cls, *texts: str) -> Sentence:
        """A sentence of which nothing is hidden."""
        return cls(texts, Masked(texts[0]))


@dataclass(frozen=True, slots=True)
class Line:
    """A hypothesis as text.

    Attributes:
        text: with everything that was hidden.
        hypothesis: None where nothing was decoded.
        kept: of each hidden part, whether the text has it.
        sound: whether it has them all, and ended by itself.
        repetition: whether a loop was cut out of it.
    """

    text: str
    hypothesis: Hypothesis | None
    kept: tuple[bool, ...] = ()
    sound: bool = True
    repetition: bool = False


class Attempt(Protocol):
    """A way to translate a sentence: some jobs, and what is made of their results."""

    @property
    def sentence(self) -> Sentence: ...
    @property
    def jobs(self) -> tuple[Job, ...]: ...
    def lines(self, codec: Codec, decoded: Sequence[Decoded]) -> list[Line]:
        """The sentence's translations, best first, at least one; ``decoded``: one result per job."""
        ...


def first_attempt(plan: Plan, sentence: Sentence, *, first: bool, attention: bool = False) -> Attempt:
    """How a sentence is tried first: terms are read as they are, since many translations have the target term anyway.

    Args:
        plan: how its request is decoded.
        sentence: what is translated.
        first: whether it is its text's first, which carries the prefix.
        attention: whether the hypotheses are to carry theirs, where they can.
    """
    hidden = sentence.masked.hidden
    if hidden and not is_translatable(sentence.masked.text):
        return Fixed(sentence)
    known = bool(plan.codec.placeholders)
    covered = frozenset(number for number, one in enumerate(hidden) if known and one.term is None)
    return _attempt(plan, sentence, covered, first=first, attention=attention)


def next_attempt(plan: Plan, last: Attempt, kept: Sequence[bool], *, first: bool, attention: bool) -> Attempt | None:
    """How a sentence is tried again: first the terms that are missing become placeholders, then all, then no sentence.

    Args:
        plan, first, attention: as for the first attempt.
        last: what was tried.
        kept: of each hidden part, whether the best translation has it.

    Returns:
        None where there is no other way: the parts have been tried, or the model reads several texts at once.
    """
    sentence = last.sentence
    if len(sentence.texts) > 1 or not isinstance(last, Whole):
        return None
    hidden = sentence.masked.hidden
    covered = {number for number, name in enumerate(last.names) if name}
    every = set(range(len(hidden)))
    missing = {hidden[number] for number in every if not kept[number]}
    wanted = covered | {number for number in every if hidden[number] in missing}
    if wanted == covered or any(hidden[number].term is not None for number in covered):
        wanted = every
    if wanted == covered or not plan.codec.placeholders:
        return InParts.of(plan, sentence, first=first)
    return _attempt(plan, sentence, frozenset(wanted), first=first, attention=attention)


def _attempt(plan: Plan, sentence: Sentence, covered: Set[int], *, first: bool, attention: bool) -> Attempt:
    """A sentence as a whole, some of its parts placeholders; in parts where those are too few or it is too long so."""
    hidden = sentence.masked.hidden
    if len(sentence.texts) > 1 or not hidden:
        job = plan.job(sentence.texts, first=first, attention=attention)
        return Whole(sentence, (job,), sentence.texts, ("",) * len(hidden))
    names = choose_placeholders(plan.codec.placeholders, sentence.masked, covered)
    if names is None:
        return InParts.of(plan, sentence, first=first)
    read = sentence.masked.fill([name or one.source for name, one in zip(names, hidden, strict=True)])
    job = plan.job((read,), first=first, reserved=[name for name in names if name], attention=attention)
    if job.length - 1 > plan.codec.limit:
        return InParts.of(plan, sentence, first=first)
    return Whole(sentence, (job,), (read,), names)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A sentence that is nothing but hidden parts, and what is no word."""

    sentence: Sentence
    jobs: tuple[Job, ...] = ()

    def lines(self, codec: Codec, decoded: Sequence[Decoded]) -> list[Line]:
        """What is to stand in the translation."""
        masked = self.sentence.masked
        text = masked.fill([cased(one, masked, place == 0) for place, one in enumerate(masked.hidden)])
        return [Line(text, None, (True,) * len(masked.hidden))]


@dataclass(frozen=True, slots=True)
class Whole:
    """A sentence in one piece.

    Attributes:
        read: what the model reads, per source.
        names: the placeholder of each hidden part; empty for those that are read as they are.
    """

    sentence: Sentence
    jobs: tuple[Job, ...]
    read: tuple[str, ...]
    names: tuple[str, ...] = ()

    def lines(self, codec: Codec, decoded: Sequence[Decoded]) -> list[Line]:
        """Of every hypothesis, the sound ones first."""
        lines = [self._line(one, codec.decode(one, self.read)) for one in decoded[0].hypotheses]
        return sorted(lines, key=lambda line: not line.sound)

    def _line(self, hypothesis: Hypothesis, written: str) -> Line:
        text, repetition = cut_loops(written, *self.read)
        hidden = self.sentence.masked.hidden
        if not hidden:
            return Line(text, hypothesis, repetition=repetition)
        kept = found_parts(text, hidden, self.names)
        if not any(self.names):
            return Line(text, hypothesis, kept, all(kept), repetition)
        # A placeholder that came only because nothing else was allowed any more stands in no good place.
        longest = self.jobs[0].options.bounds(self.jobs[0].length - 1)[1]
        sound = all(kept) and len(hypothesis.tokens) < longest
        return Line(restored(text, self.sentence.masked, self.names), hypothesis, kept, sound, repetition)


@dataclass(frozen=True, slots=True)
class InParts:
    """A sentence in the pieces between its hidden parts.

    Attributes:
        cores: what each job translates.
        pieces: in order text that stays, the numbers of cores, and hidden parts.
    """

    sentence: Sentence
    jobs: tuple[Job, ...]
    cores: tuple[str, ...]
    pieces: tuple[str | int | Hidden, ...]

    @classmethod
    def of(cls, plan: Plan, sentence: Sentence, *, first: bool) -> InParts:
        """The pieces of a sentence with one source."""
        masked = sentence.masked
        pieces: list[str | int | Hidden] = []
        cores: list[str] = []
        for text, hidden in zip_longest(masked.text.split(masked.mark), masked.hidden):
            core = text.lstrip(string.punctuation + string.whitespace).rstrip()
            if is_translatable(core):
                before, _, after = text.partition(core)
                pieces += [before, len(cores), after]
                cores.append(core)
            else:
                pieces.append(text)
            pieces += [hidden] if hidden else []
        jobs = tuple(plan.job((core,), first=first and number == 0) for number, core in enumerate(cores))
        return cls(sentence, jobs, tuple(cores), tuple(pieces))

    def lines(self, codec: Codec, decoded: Sequence[Decoded]) -> list[Line]:
        """As many as the piece with the most hypotheses has."""
        return [self._line(codec, decoded, rank) for rank in range(max(len(one.hypotheses) for one in decoded))]

    def _line(self, codec: Codec, decoded: Sequence[Decoded], rank: int) -> Line:
        masked = self.sentence.masked
        hypotheses = [nth(one, rank) for one in decoded]
        cut = [cut_loops(codec.decode(one, (core,)), core) for one, core in zip(hypotheses, self.cores, strict=True)]
        text = ""
        for piece in self.pieces:
            if isinstance(piece, Hidden):
                text += cased(piece, masked, not any(map(str.isalnum, text)))
            elif isinstance(piece, int):
                text += _ended_alike(cut[piece][0], self.cores[piece])
            else:
                text += piece
        repetition = any(looped for _, looped in cut)
        return Line(text, _joined(hypotheses), (True,) * len(masked.hidden), True, repetition)


def nth(decoded: Decoded, rank: int) -> Hypothesis:
    """The hypothesis of that rank, or the last one where the search found fewer."""
    return decoded.hypotheses[min(rank, len(decoded.hypotheses) - 1)]


def _ended_alike(written: str, core: str) -> str:
    """A piece's translation without the full stop that the piece does not have."""
    return written.rstrip(_ENDS) or written if core[-1] not in _ENDS else written


def _joined(hypotheses: Sequence[Hypothesis]) -> Hypothesis:
    """One hypothesis that says what all of them say."""
    ends = sum(one.token_scores[-1] for one in hypotheses if one.finished)
    tokens = tuple(chain.from_iterable(one.tokens for one in hypotheses))
    scores = chain.from_iterable(one.token_scores[: len(one.tokens)] for one in hypotheses)
    score = sum(one.score for one in hypotheses)
    return replace(hypotheses[0], tokens=tokens, score=score, token_scores=(*scores, ends), attention=None)
