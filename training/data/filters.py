"""Which pairs a recipe leaves out, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tandem.training.data.config import FilterConfig

Pair = tuple[str, ...]  # the sources in order, then the target


def identities(columns: Sequence[Sequence[str]], marks: Sequence[str] = ()) -> Iterator[Pair]:
    """What makes pairs equal: their text, and their marks where they have any."""
    return zip(*columns, *([marks] if marks else []), strict=True)


class PairFilter:
    """Decides pair by pair, knows again the training pairs it has seen, and counts what it drops by reason.

    Args:
        config: the limits.
        held_out: pairs that must not be trained on.
        deduplicate: drop what was seen before or is held out.
    """

    def __init__(self, config: FilterConfig, *, held_out: Iterable[Pair] = (), deduplicate: bool = False) -> None:
        self.dropped: Counter[str] = Counter()
        self._config = config
        self._pattern = re.compile(config.exclude_pattern) if config.exclude_pattern else None
        self._held_out = frozenset(held_out)
        self._seen = _Seen()
        self._deduplicate = deduplicate

    def keep(self, columns: Sequence[Sequence[str]], marks: Sequence[str] = ()) -> list[int]:
        """The indices of the pairs that stay, of parallel columns of text.

        ``marks`` tell pairs apart that have other things than text; :func:`identities` joins them to the held-out ones.
        """
        reasons = [self._reason(pair) for pair in zip(*columns, strict=True)]
        if self._deduplicate:
            self._mark_repeated(reasons, list(identities(columns, marks)))
        self.dropped.update(filter(None, reasons))
        return [index for index, reason in enumerate(reasons) if not reason]

    def _mark_repeated(self, reasons: list[str], pairs: Sequence[Pair]) -> None:
        """Give a reason to each of the pairs without one that is held out or was there before."""
        for index, pair in enumerate(pairs):
            if not reasons[index] and pair in self._held_out:
                reasons[index] = "held_out"
        left = [index for index, reason in enumerate(reasons) if not reason]
        for index, fresh in zip(left, self._seen.add([pairs[index] for index in left]), strict=True):
            if not fresh:
                reasons[index] = "duplicate"

    def _reason(self, pair: Pair) -> str:
        words = [len(text.split()) for text in pair]
        if not all(words):
            return "empty"
        config, sources, target = self._config, words[:-1], words[-1]
        if config.max_source_words is not None and max(sources, default=0) > config.max_source_words:
            return "source_words"
        if config.max_target_words is not None and target > config.max_target_words:
            return "target_words"
        if config.max_length_ratio is not None and max(words) > config.max_length_ratio * min(words):
            return "length_ratio"
        if self._pattern and any(self._pattern.search(text) for text in pair):
            return "excluded_pattern"
        return ""


class _Seen:
    """The pairs that were there before: eight bytes of each, so that millions fit.

    Two different pairs are taken for one with the probability 2^-64 for each two: once in 30,000 corpora of 35 million.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []  # sorted, each less than half as long as the one before it

    def add(self, pairs: Sequence[Pair]) -> list[bool]:
        """Whether each pair is seen for the first time."""
        digests = np.frombuffer(b"".join(map(_digest, pairs)), np.uint64)
        own, first = np.unique(digests, return_index=True)
        known = np.zeros(len(own), bool)
        for run in self._runs:
            known |= run[np.minimum(np.searchsorted(run, own), len(run) - 1)] == own
        fresh = np.zeros(len(digests), bool)
        fresh[first[~known]] = True
        self._keep(own[~known])
        found: list[bool] = fresh.tolist()
        return found

    def _keep(self, run: NDArray[np.uint64]) -> None:
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)


def _digest(pair: Pair) -> bytes:
    """Line ends cannot occur in a text, so they may stand between two."""
    return blake2b("\n".join(pair).encode(), digest_size=8).digest()
