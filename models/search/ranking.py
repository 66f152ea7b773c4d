"""Ranking the hypotheses that left the beam, and deciding when a sentence is done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tandem.models.search.graphs import Array
from tandem.models.search.hypotheses import Admitted, Ended, Hypothesis
from tandem.models.search.options import SearchOptions

COVERAGE_FLOOR = 1e-6  # attention received by a source token that nothing looked at: keeps the logarithm finite


def penalise(ended: Ended, options: SearchOptions, coverage: float = 0.0) -> Hypothesis:
    """The hypothesis with its normalised score, score / length penalty + coverage penalty x coverage.

    There the prefix counts as certain: all begin with it, and divided by their lengths it would favour long ones.
    """
    score = ended.totals[-1] if ended.totals else 0.0
    chosen = score - _forced(ended, options)
    normalised = chosen / options.penalty(max(1, len(ended.totals))) + options.coverage_penalty * coverage
    steps = np.diff(np.asarray(ended.totals, np.float64), prepend=0.0)
    return Hypothesis(ended.tokens, score, normalised, ended.finished, tuple(steps.tolist()))


def _forced(ended: Ended, options: SearchOptions) -> float:
    """The score of the prefix that a hypothesis begins with."""
    known = ended.totals[: len(options.prefix)]
    return known[-1] if known else 0.0


def rank(ended: Sequence[Ended], options: SearchOptions, coverage: Sequence[float] = ()) -> tuple[Hypothesis, ...]:
    """The ``n_best`` hypotheses by normalised score; of equals, the one that ended first."""
    terms = coverage or [0.0] * len(ended)
    hypotheses = [penalise(one, options, term) for one, term in zip(ended, terms, strict=True)]
    return tuple(sorted(hypotheses, key=lambda one: -one.normalised)[: options.n_best])


def coverage(attention: Sequence[Array]) -> float:
    """GNMT's coverage term of one hypothesis: the log of the attention each source token received, at most 1, summed.

    Args:
        attention: per source, T x S weights without padding.
    """
    received = (np.clip(one.astype(np.float64).sum(axis=0), COVERAGE_FLOOR, 1.0) for one in attention)
    return float(sum(np.log(one).sum() for one in received))


def is_over(admitted: Admitted, ended: Sequence[Ended], best_live: float) -> bool:
    """Whether a sentence leaves the batch.

    Args:
        ended: its hypotheses that ended so far.
        best_live: the best live score, -inf where none lives.
    """
    options = admitted.sentence.options
    if best_live == -np.inf:
        return True
    if not options.exhaustive:
        return len(ended) >= options.beam_size
    if len(ended) < options.n_best or options.coverage_penalty:
        return False  # the coverage of a live hypothesis has no useful bound
    # Scores only fall and penalties only grow, so this is the best that any live hypothesis can still reach.
    reachable = (best_live - _forced(ended[0], options)) / options.penalty(admitted.longest + 1)
    return rank(ended, options)[-1].normalised >= reachable
