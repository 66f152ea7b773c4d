"""Reranking: hypotheses of one model, ranked by a model of the other direction too. Needs no torch.

That is the noisy channel of Yee, Dauphin and Auli (2019), "Simple and Effective Noisy Channel Modeling for Neural
Machine Translation", equation 2, without its language model. A hypothesis that left something out, or made it up, gives
a model little to find the source with, however probable it was itself. Beam search of the channel model with one
row, whose prefix is the whole source, finds that probability: any runtime can do it, in the batches that it has.

    (1 - w) log p(y|x) / penalty(y)  +  w log p(x|y) / |x|
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tandem.models.bundle import Bundle
from tandem.models.search.hypotheses import Hypothesis
from tandem.models.search.options import SearchOptions
from tandem.models.text import as_read
from tandem.models.vocabulary import Vocabulary

WEIGHT = 0.3
"""Of the channel model. On validation text of the shipped models 0.2 to 0.5 are alike, and 0.1 is nearly as good."""


class Question(NamedTuple):
    """What a channel model decodes to say how probable the source is: a hypothesis, and how to search.

    Attributes:
        ids: of the hypothesis, as it reads it, with the end of the sentence.
        options: let it write nothing but the source.
    """

    ids: tuple[int, ...]
    options: SearchOptions


@dataclass(frozen=True, slots=True)
class ChannelModel:
    """A bundle that translates back, and what it takes to ask it.

    Attributes:
        read: the vocabulary with which it reads hypotheses.
        written: that with which it writes sources.
        begin: tokens that all it writes begins with, such as a language's tag; they say nothing of a hypothesis.
        longest: tokens that it reads, and that it writes, at most, without the end of the sentence.
    """

    read: Vocabulary
    written: Vocabulary
    begin: tuple[int, ...]
    longest: tuple[int, int]

    @classmethod
    def of(cls, bundle: Bundle) -> ChannelModel:
        """Of a bundle that reads one text, or its view for one direction."""
        manifest = bundle.manifest
        limits = manifest.limits.max_source_tokens, manifest.limits.max_target_tokens
        return cls(bundle.source_vocabularies[0], bundle.target_vocabulary, manifest.decoding.prefix, limits)

    def questions(self, source: str, hypotheses: Sequence[str], reserved: Collection[str] = ()) -> list[Question]:
        """One for each hypothesis, in order; none where it cannot read or write one of these texts whole.

        Args:
            source: what was translated.
            hypotheses: what became of it.
            reserved: placeholders in these texts, which stand for their tokens.
        """
        kept = reserved or False
        wanted = self.written.encode(as_read(source), reserved=kept)
        read = [self.read.encode(as_read(text), reserved=kept) for text in hypotheses]
        if len(self.begin) + len(wanted) > self.longest[1] or max(map(len, read), default=0) > self.longest[0]:
            return []
        prefix = (*self.begin, *wanted)
        options = SearchOptions(beam_size=1, prefix=prefix, max_length=max(1, len(prefix)))
        return [Question((*ids, self.read.eos), options) for ids in read]

    def ranked(
        self, hypotheses: Sequence[Hypothesis], answers: Sequence[Hypothesis], weight: float = WEIGHT
    ) -> tuple[Hypothesis, ...]:
        """The hypotheses, best first; ``answers``: what the channel model wrote for the question about each."""

        def score(pair: tuple[Hypothesis, Hypothesis]) -> float:
            hypothesis, answer = pair
            scores = answer.token_scores[len(self.begin) :]
            return (1 - weight) * hypothesis.normalised + weight * sum(scores) / max(1, len(scores))

        pairs = zip(hypotheses, answers, strict=True)
        return tuple(hypothesis for hypothesis, _ in sorted(pairs, key=score, reverse=True))
