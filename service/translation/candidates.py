"""Candidates: what the hypotheses of a unit's jobs say, as text with everything in it that was hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, TypeAlias

from tandem.models.search import Hypothesis
from tandem.service.bundles.aligning import NOTHING, word_aligner
from tandem.service.bundles.served import ServedModel
from tandem.service.engine import Decoded
from tandem.service.text.loops import cut_loops
from tandem.service.text.masking import Hidden, Masked
from tandem.service.text.placeholders import cased, found_parts, marked, restored
from tandem.service.translation.fidelity import Fault

Known: TypeAlias = Literal["memory", "stage"]
"""What has translations without decoding: the caller's translation memory, or a text stage."""
ENDS = ".!?…。！？"
"""What a sentence ends with."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A translation of a unit.

    Attributes:
        text: with everything that was hidden.
        hypothesis: None where nothing was decoded.
        kept: of each hidden part, whether the text has it.
        complete: whether it has all that was hidden, and ended by itself.
        repetition: whether a loop was cut out of it.
        known_from: what had it, so that nothing was decoded.
        before: what was written in a language between, piece by piece; none where there is none.
        faults: what it lacks, or has and its source does not.
    """

    text: str
    hypothesis: Hypothesis | None
    kept: tuple[bool, ...] = ()
    complete: bool = True
    repetition: bool = False
    known_from: Known | None = None
    before: Sequence[Hypothesis] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Copied:
    """What a model reads as it is, with the parts that are to stand in what it writes.

    Attributes:
        masked: the text, whose source is what is read, and its parts.
        ids: its tokens, per source.
    """

    masked: Masked
    ids: Sequence[Sequence[int]]

    def in_translation(self, model: ServedModel, text: str, hypothesis: Hypothesis, *, onward: bool = False) -> Masked:
        """A translation with the parts at their places, where not all of them are there, and attention says where.

        Args:
            model: wrote it.
            text, hypothesis: what it wrote.
            onward: whether that is translated once more: then its parts are hidden in any case.
        """
        whole = all(found_parts(text, self.masked.hidden, ("",) * len(self.masked.hidden)))
        aligner = word_aligner()
        if aligner is None or hypothesis.attention is None or (whole and not onward):
            return Masked(text)
        (alignment,) = aligner.align(model, (self.masked.source,), text, hypothesis, self.ids, NOTHING)
        return aligner.project(self.masked, text, alignment.words, onward)


def candidates_of_whole(
    model: ServedModel,
    masked: Masked,
    names: Sequence[str],
    read: Sequence[str],
    longest: int,
    decoded: Decoded,
    copied: Copied | None = None,
) -> list[Candidate]:
    """Of a unit that was read as a whole, the complete ones first.

    Args:
        model: decoded it.
        masked: its leading source, with what is hidden.
        names: the placeholder of each hidden part; empty for those that were read as they are.
        read: what was read, per source.
        longest: tokens at which a hypothesis is cut.
        decoded: the result.
        copied: what of it is put where the words stand that the model wrote for it; None = nothing.
    """

    def candidate(hypothesis: Hypothesis) -> Candidate:
        text, repetition = cut_loops(model.decode(hypothesis, read), *read)
        if copied is not None:
            text = copied.in_translation(model, text, hypothesis).source
        if not masked.hidden:
            return Candidate(text, hypothesis, repetition=repetition)
        kept = found_parts(text, masked.hidden, names)
        complete = all(kept)
        if complete:
            text = restored(*marked(text, masked, names))
        elif any(names):
            text = restored(text, masked, names)
        if not any(names):
            return Candidate(text, hypothesis, kept, complete, repetition)
        # A placeholder that came only because nothing else was allowed any more stands in no good place.
        complete = complete and len(hypothesis.tokens) < longest
        return Candidate(text, hypothesis, kept, complete, repetition)

    return sorted(map(candidate, decoded.hypotheses), key=lambda one: not one.complete)


def candidates_in_parts(
    model: ServedModel,
    masked: Masked,
    pieces: Sequence[str | int | Hidden],
    read: Sequence[Sequence[str]],
    decoded: Sequence[Decoded],
    ended: Callable[[str, str], str],
) -> list[Candidate]:
    """Of a unit in pieces, as many as the piece with the most hypotheses has; one where nothing was decoded.

    Args:
        model: decoded them.
        masked: the unit, with what is hidden.
        pieces: in order text that stays, the numbers of jobs, and hidden parts.
        read: what each job read.
        decoded: the results of the jobs.
        ended: what was written with the final punctuation of what was read.
    """
    ranks = max((len(one.hypotheses) for one in decoded), default=1)
    return [_in_parts(model, masked, pieces, read, [nth(one, rank) for one in decoded], ended) for rank in range(ranks)]


def _in_parts(
    model: ServedModel,
    masked: Masked,
    pieces: Sequence[str | int | Hidden],
    read: Sequence[Sequence[str]],
    hypotheses: Sequence[Hypothesis],
    ended: Callable[[str, str], str],
) -> Candidate:
    cut = [cut_loops(model.decode(one, core), *core) for one, core in zip(hypotheses, read, strict=True)]
    text = ""
    for piece in pieces:
        if isinstance(piece, Hidden):
            text += cased(piece, masked, not any(map(str.isalnum, text)))
        elif isinstance(piece, int):
            text += ended(cut[piece][0], read[piece][0])
        else:
            text += piece
    repetition = any(looped for _, looped in cut)
    best = _joined(hypotheses) if hypotheses else None
    return Candidate(text, best, (True,) * len(masked.hidden), repetition=repetition)


def joined(decoded: Sequence[Decoded]) -> Decoded:
    """One result that says what several say one after another; of one that alone."""
    if len(decoded) == 1:
        return decoded[0]
    ranks = max(len(one.hypotheses) for one in decoded)
    return Decoded(tuple(_joined([nth(one, rank) for one in decoded]) for rank in range(ranks)))


def nth(decoded: Decoded, rank: int) -> Hypothesis:
    """The hypothesis of that rank, or the last one where the search found fewer."""
    return decoded.hypotheses[min(rank, len(decoded.hypotheses) - 1)]


def _joined(hypotheses: Sequence[Hypothesis]) -> Hypothesis:
    """One hypothesis that says what all of them say."""
    ends = sum(one.token_scores[-1] for one in hypotheses if one.finished)
    tokens = tuple(chain.from_iterable(one.tokens for one in hypotheses))
    scores = chain.from_iterable(one.token_scores[: len(one.tokens)] for one in hypotheses)
    score = sum(one.score for one in hypotheses)
    return replace(hypotheses[0], tokens=tokens, score=score, token_scores=(*scores, ends), attention=None)
