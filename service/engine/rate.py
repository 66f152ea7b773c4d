"""How fast the queue is worked off."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

_WINDOW = 10.0  # seconds that the rate looks back over
_GRAIN = 0.25  # seconds that share one entry, so that memory does not grow with the rate
_GUESS = 1_000.0  # tokens per second, before anything was measured


class Rate:
    """Predicted tokens worked off per second, over the last ten seconds that saw any."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: deque[tuple[float, int]] = deque()  # when it began, tokens
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, tokens: int) -> None:
        """Count the tokens of a sentence that was worked off."""
        now = self._clock()
        if self._entries and now - self._entries[-1][0] < _GRAIN:
            began, before = self._entries.pop()
            self._entries.append((began, before + tokens))
        else:
            self._entries.append((now, tokens))
        self._tokens += tokens
        while self._entries[0][0] < now - _WINDOW:
            self._tokens -= self._entries.popleft()[1]

    def tokens_per_second(self) -> float:
        """The measured rate; a guess where too little was seen."""
        if not self._entries:
            return _GUESS
        span = self._entries[-1][0] - self._entries[0][0]
        return self._tokens / span if span >= 1.0 else max(_GUESS, float(self._tokens))
