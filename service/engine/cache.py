"""A small least-recently-used cache of finished sentences."""

from __future__ import annotations

from collections import OrderedDict

from tandem.models.search import Hypothesis, SearchOptions
from tandem.service.engine.jobs import Job

Key = tuple[str, SearchOptions, tuple[tuple[int, ...], ...]]


class ResultCache:
    """Hypotheses by (bundle, options, sentence). Not thread-safe: its owner holds a lock."""

    def __init__(self, capacity: int) -> None:
        """Args: capacity: sentences kept; 0 switches the cache off."""
        self._capacity = capacity
        self._entries: OrderedDict[Key, tuple[Hypothesis, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def covers(self, job: Job) -> bool:
        """Whether a job's result may be cached: not where it is off, and never a random sample."""
        return self._capacity > 0 and job.cache and job.options.sampling is None

    def get(self, job: Job) -> tuple[Hypothesis, ...] | None:
        """The job's hypotheses, or None."""
        key = _key(job)
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, job: Job, hypotheses: tuple[Hypothesis, ...]) -> None:
        """Keep a result, dropping the one that was not asked for the longest time."""
        self._entries[_key(job)] = hypotheses
        self._entries.move_to_end(_key(job))
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def forget(self, bundle: str) -> None:
        """Drop the results of one bundle, which is being replaced."""
        for key in [key for key in self._entries if key[0] == bundle]:
            del self._entries[key]


def _key(job: Job) -> Key:
    return job.bundle, job.options, job.sources
