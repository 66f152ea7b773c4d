"""Whether systems differ: scores with bootstrap intervals, and p-values against a baseline, of a test set or a part.

The paired bootstrap (Koehn 2004) draws test sets of the same size from the test set, with replacement, and scores all
systems on the same draws. Metrics, intervals and p-values are sacreBLEU's own, and the tests hold the draws against its
``PairedTest``. That class itself cannot give what is shown here: intervals of differences, scores of parts of a test
set and of single sentences, a seed that is no environment variable, and p-values of the same output or of a handful of
sentences. It also gathers the counts of every drawn sentence (for 6,000 sentences 0.4 GB, for each metric and system)
and counts again for each part. Here sentences are counted once, and a draw is a sum of counts: a matrix product.

Shape suffixes: N sentences, D draws, C counts of a metric, R runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import CorpusError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

DRAWS = 1000
SEED = 12345  # sacreBLEU's own
_HELD = 4_000_000  # drawn sentence numbers held at once

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ComparedScore:
    """One score of one system beside a baseline.

    Attributes:
        metric: as in :class:`training.quality.metrics.MeasuredScore`.
        value: in points of 100.
        interval: half the width of the 95% bootstrap interval of the value.
        difference: to the baseline's value; None of the baseline itself.
        difference_interval: the difference's 95% bootstrap interval, from and to; None of the baseline itself.
        p_value: of the paired bootstrap against the baseline, as sacreBLEU counts it, which is milder than the interval
            of the difference: that can hold 0 where p is a little below 0.05. Of few sentences not below what the most
            one-sided of all results would have in a sign test. None of the baseline itself.
        signature: the implementation's own description of its settings, number of draws and seed among them.
    """

    metric: str
    value: float
    interval: float
    difference: float | None
    difference_interval: tuple[float, float] | None
    p_value: float | None
    signature: str

    @property
    def shown(self) -> str:
        """The value and its interval."""
        return f"{self.value:.2f} ± {self.interval:.2f}"

    @property
    def p_shown(self) -> str:
        """The p-value as far as so many draws tell it."""
        if self.p_value is None:
            return "–"
        return "< 0.001" if self.p_value < 0.001 else f"{self.p_value:.3f}"

    @property
    def difference_shown(self) -> str:
        """The difference and its interval, with signs."""
        if self.difference is None or self.difference_interval is None:
            return "–"
        low, high = self.difference_interval
        return f"{self.difference:+.2f} ({low:+.2f} to {high:+.2f})"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How test sets are drawn.

    Attributes:
        draws: how many.
        seed: the same one gives the same draws.
    """

    draws: int = DRAWS
    seed: int = SEED


class Counts:
    """Every system's counts of every metric, sentence by sentence, of one test set.

    Args:
        metrics: by name.
        systems: the hypotheses of each system by its name.
        references: one for each hypothesis.
        further: where there are several references for each, the others, one column after another.
        runs: of each system, whose hypotheses follow each other: a sentence's counts are those of all runs together,
            so that a draw has a sentence as all of them translate it.

    Raises:
        CorpusError: there is nothing to score, or not one hypothesis for each reference.
    """

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        systems: Mapping[str, Sequence[str]],
        references: Sequence[str],
        further: Sequence[Sequence[str]] = (),
        runs: int = 1,
    ) -> None:
        for name, hypotheses in systems.items():
            if not references or len(hypotheses) != runs * len(references):
                times = f"{runs} times " if runs > 1 else ""
                raise CorpusError(f"{name} has {len(hypotheses)} hypotheses for {times}{len(references)} references")
        for column in further:  # sacreBLEU takes a shorter column for segments with fewer references
            if len(column) != len(references):
                raise CorpusError(f"there are {len(references)} first references, but {len(column)} further ones")
        self.size = len(references)
        self._metrics, self._systems = dict(metrics), list(systems)
        # What the library's own tests of significance ask its metrics for, and what a metric of it has to implement.
        self._counts_NC = {
            (system, name): self._counts(metric, texts, [references, *further])
            for system, texts in systems.items()
            for name, metric in metrics.items()
        }

    def _counts(self, metric: Metric, texts: Sequence[str], references: Sequence[Sequence[str]]) -> Numbers:
        """Of each sentence, those of all runs together."""
        runs = (list(texts[first : first + self.size]) for first in range(0, len(texts), self.size))
        counts_RNC = np.array([metric._extract_corpus_statistics(run, references) for run in runs], np.float64)
        total_NC: Numbers = counts_RNC.sum(axis=0)
        return total_NC

    def sentence_scores(self, system: str, metric: str) -> list[float]:
        """Of each sentence alone, in points of 100."""
        return self._scores(metric, self._counts_NC[system, metric])

    def compare(
        self,
        baseline: str,
        *,
        rows: Sequence[int] | None = None,
        metrics: Sequence[str] | None = None,
        sampling: Bootstrap = Bootstrap(),
    ) -> dict[str, list[ComparedScore]]:
        """The scores of every system, in the given order.

        Args:
            baseline: the name of the system that the others are compared with.
            rows: the sentences that count; None for all.
            metrics: those that are wanted; None for all.
            sampling: how test sets are drawn.

        Raises:
            CorpusError: there is no such baseline.
        """
        if baseline not in self._systems:
            raise CorpusError(f"the baseline must be one of {', '.join(self._systems)}, but is {baseline!r}")
        names = list(self._metrics) if metrics is None else metrics
        picked = slice(None) if rows is None else list(rows)
        chosen = {(system, name): self._counts_NC[system, name][picked] for system in self._systems for name in names}
        drawn: dict[tuple[str, str], list[float]] = {key: [] for key in chosen}
        size = len(next(iter(chosen.values())))
        for weights_DN in _weights(size, sampling):
            for key, counts_NC in chosen.items():
                drawn[key] += self._scores(key[1], weights_DN @ counts_NC)
        whole = {key: self._scores(key[1], counts.sum(0, keepdims=True))[0] for key, counts in chosen.items()}
        signatures = {name: _signature(self._metrics[name], sampling) for name in names}
        least = 0.5 ** (size - 1)
        return {
            system: [
                _compared(
                    name,
                    (whole[system, name], whole[baseline, name]),
                    (np.array(drawn[system, name]), None if system == baseline else np.array(drawn[baseline, name])),
                    signatures[name],
                    least,
                )
                for name in names
            ]
            for system in self._systems
        }

    def _scores(self, metric: str, sums_DC: Numbers) -> list[float]:
        score = self._metrics[metric]._compute_score_from_stats
        return [float(score(row).score) for row in sums_DC.tolist()]


def _weights(size: int, sampling: Bootstrap) -> Iterator[Numbers]:
    """How often each sentence is drawn, some draws at a time; their number changes no draw."""
    rng = np.random.default_rng(sampling.seed)
    step = max(1, _HELD // size)
    for start in range(0, sampling.draws, step):
        drawn_DN = rng.choice(size, size=(min(step, sampling.draws - start), size), replace=True)
        yield np.stack([np.bincount(row, minlength=size) for row in drawn_DN]).astype(np.float64)


def _signature(metric: Metric, sampling: Bootstrap) -> str:
    signature = metric.get_signature()
    signature.update("bs", sampling.draws)
    signature.update("seed", sampling.seed)
    return str(signature)


def _compared(
    name: str, whole: tuple[float, float], drawn: tuple[Numbers, Numbers | None], signature: str, least: float
) -> ComparedScore:
    """One score from the values of a system and the baseline, on the test set and on every draw.

    So few sentences tell nothing below the p-value ``least``: of one, which every draw has, the gaps are all the same.
    """
    from sacrebleu.significance import _compute_p_value, estimate_ci

    value, interval = round(whole[0], 2), round(float(estimate_ci(drawn[0])[1]), 2)
    if drawn[1] is None:
        return ComparedScore(name, value, interval, None, None, None, signature)
    gains_D = np.sort(drawn[0] - drawn[1])
    out = len(gains_D) // 40  # 2.5% on either side, as `estimate_ci` has it
    between = (round(float(gains_D[out]), 2), round(float(gains_D[-out - 1]), 2))
    difference = whole[0] - whole[1]
    # Where outputs are the same no draw differs from any other, which sacreBLEU's count takes for significant.
    gaps_D = np.abs(gains_D)
    p_value = max(least, _compute_p_value(gaps_D - gaps_D.mean(), abs(difference))) if difference else 1.0
    return ComparedScore(name, value, interval, round(difference, 2), between, p_value, signature)
