"""Drawing tokens from the logits of ``step_logits``: the rows of a sentence are independent samples.

A sentence's random numbers depend on its seed and its age alone, so neither batch-mates nor a repeated step change
what is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tandem.models.search.beam import Candidates, Live
from tandem.models.search.graphs import Array
from tandem.models.search.hypotheses import Admitted
from tandem.models.search.options import Sampling


def log_sum_exp(logits_RV: Array) -> NDArray[np.float64]:
    """Per row; NaN or infinite exactly where the logits are not usable."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        top_R = logits_RV.max(axis=1).astype(np.float64)
        summed: NDArray[np.float64] = top_R + np.log(np.exp(logits_RV - top_R[:, None]).sum(axis=1))
    return summed


def draw(
    places: Sequence[Admitted | None],
    live: Live,
    logits_RV: Array,
    constraints: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    beam_size: int,
) -> Candidates:
    """One continuation per sample, in row order; -inf where the row is dead or everything is banned.

    The scores are the model's own log-probabilities: temperature, top-k and top-p shape only what is drawn.
    """
    banned_RJ, forced_R = constraints
    rows = live.score_BK.shape[1]
    scores = np.full((len(places), beam_size), -np.inf, np.float32)
    tokens = np.zeros((len(places), beam_size), np.int64)
    parents = np.minimum(np.arange(beam_size), rows - 1)[None].repeat(len(places), axis=0)
    total_R = log_sum_exp(logits_RV)
    for place, admitted in enumerate(places):
        if admitted is None or admitted.sentence.options.sampling is None:
            continue
        sampling = admitted.sentence.options.sampling
        uniform = np.random.default_rng((sampling.seed, int(live.age_B[place]))).random(beam_size)
        for sample in np.flatnonzero(live.alive_BK[place, parents[place]]):
            row = place * rows + parents[place, sample]
            allowed_V = _allowed(logits_RV[row], banned_RJ[row], int(forced_R[row]))
            if not np.isfinite(allowed_V).any():
                continue
            token = pick(allowed_V, sampling, float(uniform[sample]))
            tokens[place, sample] = token
            gain = np.float32(float(logits_RV[row, token]) - total_R[row])
            scores[place, sample] = live.score_BK[place, parents[place, sample]] + gain
    return Candidates(scores, tokens, parents)


def pick(logits_V: NDArray[np.float64], sampling: Sampling, uniform: float) -> int:
    """The token whose share of the cut and sharpened distribution, laid out best first, contains ``uniform``."""
    order = np.argsort(-logits_V, kind="stable")
    if sampling.top_k:
        order = order[: sampling.top_k]
    scaled = logits_V[order] / sampling.temperature
    share = np.exp(scaled - scaled[0])
    reached = np.cumsum(share / share.sum())
    kept = int(np.searchsorted(reached, sampling.top_p)) + 1 if sampling.top_p < 1 else len(order)
    kept = min(kept, int(np.count_nonzero(share)))
    return int(order[min(int(np.searchsorted(reached[:kept], uniform * reached[kept - 1], side="right")), kept - 1)])


def _allowed(logits_V: Array, banned_J: NDArray[np.int64], forced: int) -> NDArray[np.float64]:
    allowed = logits_V.astype(np.float64)
    if forced >= 0:
        only = np.full_like(allowed, -np.inf)
        only[forced] = allowed[forced]
        return only
    allowed[banned_J[banned_J < len(allowed)]] = -np.inf
    return allowed
