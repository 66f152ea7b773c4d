"""Which pairs a recipe leaves out, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from training.data.config import FilterConfig

Pair = tuple[str, ...]  # the sources in order, then the target


def identities(columns: Sequence[Sequence[str]], marks: Sequence[str] = ()) -> Iterator[Pair]:
    """What makes pairs equal: their text, and their marks where they have any."""
    return zip(*columns, *([marks] if marks else []), strict=True)


class PairFilter:
    """Decides pair by pair, remembers the training pairs it has seen, and counts what it drops by reason.

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
        self._seen: set[Pair] = set()
        self._deduplicate = deduplicate

    def keep(self, columns: Sequence[Sequence[str]], marks: Sequence[str] = ()) -> list[int]:
        """The indices of the pairs that stay, of parallel columns of text.

        ``marks`` tell pairs apart that have other things than text; :func:`identities` joins them to the held-out ones.
        """
        kept = []
        pairs = zip(zip(*columns, strict=True), identities(columns, marks), strict=True)
        for index, (pair, identity) in enumerate(pairs):
            reason = self._reason(pair, identity)
            if reason:
                self.dropped[reason] += 1
            else:
                kept.append(index)
        return kept

    def _reason(self, pair: Pair, identity: Pair) -> str:
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
        return self._repeated(identity) if self._deduplicate else ""

    def _repeated(self, pair: Pair) -> str:
        if pair in self._held_out:
            return "held_out"
        if pair in self._seen:
            return "duplicate"
        self._seen.add(pair)
        return ""
