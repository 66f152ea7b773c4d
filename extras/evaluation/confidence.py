"""Calibration of confidences (``models.search.confidence``), and what they are worth on other text. NumPy alone.

Numbers are weighed by logistic regression (of shares as well as of yes and no: McCullagh and Nelder, Generalized Linear
Models, 1989, sec. 4.4.2, Newton's method), and the weighed sum is read off a rising curve: isotonic regression by
pooling adjacent violators (Ayer et al., 1955) over the means of equally many things.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import CorpusError
from tandem.models.search.confidence import Floats, Reliability, ReliabilityBin, Scale

_RIDGE = 1e-3  # of the standardised weights: numbers that say the same share the weight
_BINS = 20  # of the curve: each has a twentieth of the things
_TENTHS = 10
_FOLDS = 5
_LEAST = 50  # things that a curve can be made of
_DIGITS = 6


def fit_scale(numbers_TN: Floats, worth_T: Floats) -> Scale:
    """The scale that says best what things with such numbers are worth.

    Args:
        numbers_TN: per thing what is known of it.
        worth_T: what it was worth, 0 to 1.

    Raises:
        CorpusError: fewer than 50 things.
    """
    if len(worth_T) < _LEAST:
        raise CorpusError(f"a curve needs at least {_LEAST} sentences and words, but there are {len(worth_T)}")
    weights_N = _regressed(numbers_TN, worth_T).round(_DIGITS)
    score_T = numbers_TN @ weights_N
    parts = np.array_split(np.argsort(score_T, kind="stable"), _BINS)
    knots = pooled(
        np.array([score_T[part].mean() for part in parts]).round(4),  # coarser than what is kept: knots stay apart
        np.array([worth_T[part].mean() for part in parts]),
        np.array([len(part) for part in parts], float),
    )
    scores, values = knots.round(_DIGITS).tolist()
    return Scale(tuple(weights_N.tolist()), tuple(scores), tuple(values))


def held_out_area(numbers_TN: Floats, worth_T: Floats, bad_T: NDArray[np.bool_]) -> float:
    """How well weighed numbers tell bad things of which their weights know nothing: the mean over five folds.

    Args:
        numbers_TN: per thing what is known of it.
        worth_T: what it was worth, 0 to 1.
        bad_T: whether that is bad.
    """
    fold_T = np.arange(len(worth_T)) % _FOLDS
    areas = [
        area_under_curve(-numbers_TN[own_T] @ _regressed(numbers_TN[~own_T], worth_T[~own_T]), bad_T[own_T])
        for own_T in (fold_T == fold for fold in range(_FOLDS))
    ]
    return float(np.mean(areas))


def _regressed(numbers_TN: Floats, worth_T: Floats) -> Floats:
    """The weights of a logistic regression with an intercept, which is left out: the curve says it."""
    spread_N = np.maximum(numbers_TN.std(axis=0), 1e-9)
    standard = (numbers_TN - numbers_TN.mean(axis=0)) / spread_N
    design = np.column_stack([np.ones(len(worth_T)), standard])
    ridge = _RIDGE * len(worth_T) * np.diag([0.0, *np.ones(standard.shape[1])])
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        chance_T = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (worth_T - chance_T) - ridge @ weights
        curvature = (design.T * (chance_T * (1 - chance_T))) @ design + ridge + 1e-9 * np.eye(len(weights))
        step = np.linalg.solve(curvature, slope)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    weights_N: Floats = weights[1:] / spread_N
    return weights_N


def pooled(scores_B: Floats, values_B: Floats, counts_B: Floats) -> Floats:
    """The rising curve nearest to bins by weighted squares: 2 x knots, the mean score and value of bins put together.

    Where a bin's value is not above the one before it, the two become one; so do bins of equal scores.
    """
    blocks: list[Floats] = []  # each the sums of count, count x score and count x value
    for block in np.column_stack([counts_B, counts_B * scores_B, counts_B * values_B]):
        while blocks and (block / block[0] <= blocks[-1] / blocks[-1][0])[1:].any():
            block = block + blocks.pop()
        blocks.append(block)
    sums = np.array(blocks).T
    knots: Floats = sums[1:] / sums[0]
    return knots


def measure_reliability(confidence_T: Floats, worth_T: Floats, bad_T: NDArray[np.bool_]) -> Reliability:
    """What confidences were worth.

    Args:
        confidence_T: of each thing.
        worth_T: what it turned out to be worth, 0 to 1.
        bad_T: whether that is bad.
    """
    bins = [
        ReliabilityBin(len(part), round(float(confidence_T[part].mean()), 4), round(float(worth_T[part].mean()), 4))
        for part in np.array_split(np.argsort(confidence_T, kind="stable"), _TENTHS)
        if len(part)
    ]
    return Reliability(round(area_under_curve(-confidence_T, bad_T), 4), tuple(bins))


def area_under_curve(scores_T: Floats, positive_T: NDArray[np.bool_]) -> float:
    """Chance that a positive thing has the higher score than a negative one, ties half; 0.5 where one kind is missing.

    It is Mann and Whitney's U over the number of pairs, from the ranks.
    """
    _, place, count = np.unique(scores_T, return_inverse=True, return_counts=True)
    rank_T = (np.cumsum(count) - (count - 1) / 2)[place]
    yes, no = int(positive_T.sum()), int((~positive_T).sum())
    if not yes or not no:
        return 0.5
    return float((rank_T[positive_T].sum() - yes * (yes + 1) / 2) / (yes * no))
