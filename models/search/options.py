"""Everything that shapes a search, in one validated record."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tandem.models.errors import OptionError
from tandem.models.vocabulary.base import BOS, EOS, PAD

LENGTH_PENALTY_FORMS = ("power", "gnmt", "none")
RATIO_ALLOWANCE = 10  # tokens on top of a maximum ratio, so that short sources are not cut


@dataclass(frozen=True, slots=True)
class Sampling:
    """Draw tokens instead of searching; every row of the beam is one independent sample.

    Attributes:
        temperature: above 1 flattens the distribution, below 1 sharpens it.
        top_k: keep only the best k tokens; 0 keeps all.
        top_p: keep the smallest set of best tokens whose probabilities reach p.
        seed: same seed, same sentence, same options: same samples, whatever the batch.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _number("sampling.temperature", self.temperature, 0.01, 100.0)
        _integer("sampling.top_k", self.top_k, 0)
        _number("sampling.top_p", self.top_p, 0.0, 1.0)
        if self.top_p == 0:
            raise OptionError("sampling.top_p", "above 0", self.top_p)
        _integer("sampling.seed", self.seed, 0)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How a sentence is decoded. Lengths count target tokens without EOS, ratios are to the source's tokens.

    Attributes:
        beam_size: live hypotheses per sentence; 1 is greedy.
        n_best: hypotheses returned, best first; at most ``beam_size``.
        length_penalty: p of the chosen form; finished hypotheses are ranked by score / penalty.
        length_penalty_form: ``power`` len^p, ``gnmt`` ((5+len)/6)^p, ``none`` 1; len includes EOS.
        coverage_penalty: weight of the coverage term sum_i log(min(attention received by source token i, 1)) that is
            added when ranking finished hypotheses; needs the align graph.
        min_length, min_length_ratio: the larger bound holds; EOS is banned before it.
        max_length: EOS is forced there.
        max_length_ratio: if given, the maximum is ratio x source + 10, and ``max_length`` at most.
        no_repeat_ngram_size: no n-gram of this size twice in a hypothesis; 0 allows all.
        max_rounds: a stretch of up to 12 tokens stands at most so often in a row, or as often as one does in a source;
            0 allows all.
        suppressed: token ids never produced.
        prefix: token ids that every hypothesis starts with.
        required: token ids that a hypothesis holds exactly as often as they stand here, even where they are suppressed:
            EOS is banned before, and they themselves after. Where only just so many tokens still fit, they follow in
            this order; a hypothesis ends at its maximum length whatever it holds.
        sampling: draw instead of search.
        exhaustive: go on until no live hypothesis can reach the n best, instead of until ``beam_size`` are finished.
        attention: the hypotheses returned carry their attention on the sources; needs the align graph.

    Raises:
        OptionError: a value out of bounds, naming field, bound and value.
    """

    beam_size: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    length_penalty_form: str = "power"
    coverage_penalty: float = 0.0
    min_length: int = 0
    max_length: int = 256
    min_length_ratio: float = 0.0
    max_length_ratio: float | None = None
    no_repeat_ngram_size: int = 0
    max_rounds: int = 0
    suppressed: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    sampling: Sampling | None = None
    exhaustive: bool = False
    attention: bool = False

    def __post_init__(self) -> None:
        _integer("beam_size", self.beam_size, 1)
        _integer("n_best", self.n_best, 1)
        if self.n_best > self.beam_size:
            raise OptionError("n_best", f"at most beam_size = {self.beam_size}", self.n_best)
        _number("length_penalty", self.length_penalty, 0.0, 10.0)
        if self.length_penalty_form not in LENGTH_PENALTY_FORMS:
            raise OptionError("length_penalty_form", f"one of {LENGTH_PENALTY_FORMS}", self.length_penalty_form)
        _number("coverage_penalty", self.coverage_penalty, 0.0, 10.0)
        _integer("max_length", self.max_length, 1)
        _integer("min_length", self.min_length, 0)
        if self.min_length > self.max_length:
            raise OptionError("min_length", f"at most max_length = {self.max_length}", self.min_length)
        _number("min_length_ratio", self.min_length_ratio, 0.0, 100.0)
        if self.max_length_ratio is not None:
            _number("max_length_ratio", self.max_length_ratio, 0.0, 100.0)
        _integer("no_repeat_ngram_size", self.no_repeat_ngram_size, 0)
        _integer("max_rounds", self.max_rounds, 0)
        _tokens("suppressed", self.suppressed, (EOS,))
        _tokens("prefix", self.prefix, (PAD, BOS, EOS))
        _tokens("required", self.required, (PAD, BOS, EOS))
        if len(self.prefix) > self.max_length:
            raise OptionError("prefix", f"at most max_length = {self.max_length} tokens long", len(self.prefix))
        if self.sampling is not None and self.exhaustive:
            raise OptionError("exhaustive", "false when sampling", self.exhaustive)

    def beyond(self, size: int) -> list[int]:
        """Tokens that the options name and that a vocabulary of so many entries does not have."""
        return sorted({token for token in (*self.suppressed, *self.prefix, *self.required) if token >= size})

    def bounds(self, source_tokens: int) -> tuple[int, int]:
        """Shortest and longest hypothesis, in tokens without EOS, for a source of so many tokens without EOS."""
        longest = self.max_length
        if self.max_length_ratio is not None:
            ratio = math.floor(self.max_length_ratio * source_tokens) + RATIO_ALLOWANCE
            longest = min(longest, max(ratio, len(self.prefix) + len(self.required)))
        longest = max(longest, len(self.prefix))
        shortest = max(self.min_length, math.ceil(self.min_length_ratio * source_tokens))
        return min(shortest, longest), longest

    def penalty(self, length: int) -> float:
        """The divisor of a score for a hypothesis of ``length`` tokens, EOS included."""
        if self.length_penalty_form == "none":
            return 1.0
        base = length if self.length_penalty_form == "power" else (5 + length) / 6
        return float(base**self.length_penalty)


def _integer(field: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(field, f"a whole number, at least {least}", value)


def _number(field: str, value: object, least: float, most: float) -> None:
    # Written so that NaN fails too.
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise OptionError(field, f"from {least:g} to {most:g}", value)


def _tokens(field: str, value: object, excluded: tuple[int, ...]) -> None:
    if not isinstance(value, tuple):
        raise OptionError(field, "a tuple of token ids", value)
    for token in value:
        if not isinstance(token, int) or isinstance(token, bool) or token < 0 or token in excluded:
            raise OptionError(field, f"token ids of at least 0, none of {excluded}", token)
