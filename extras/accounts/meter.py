"""Counts what callers use and refuses what is beyond their limits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, TypeVar

import structlog
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import Storage
from limits.strategies import SlidingWindowCounterRateLimiter

from tandem.extras.accounts.errors import LimitsUnavailable, QuotaExceeded, RateLimited
from tandem.extras.accounts.keys import CallerLimits
from tandem.models.errors import TandemError
from tandem.service.callers import Receipt

T = TypeVar("T")

_log = structlog.get_logger("tandem.access")
_MONTHS_KEPT = 62 * 86_400  # seconds for which a month's count stays, from its first use
_PAUSE = 5.0  # seconds for which a store that failed is not asked again: each attempt may take its whole patience


class Meter:
    """Requests a minute (a window that slides) and characters a calendar month, per caller. Its methods block.

    While the store is down it counts nothing. Then ``open`` lets everything pass, since the server's own bounds on
    work hold without it, and ``closed`` refuses everything, for those who may not answer what they cannot count.
    """

    def __init__(
        self,
        storage: Storage,
        failure: Literal["open", "closed"] = "open",
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            storage: of the counters; wraps its errors in ``limits.errors.StorageError``.
            failure: what to do while it is down.
            clock: seconds since 1970, for the calendar.
            monotonic: seconds, for the pause after a failure.
        """
        self._storage, self._failure, self._clock, self._monotonic = storage, failure, clock, monotonic
        self._windows = SlidingWindowCounterRateLimiter(storage)
        self._down_until = -math.inf
        self._down = False
        self.failures = 0

    def charge(self, caller: str, limits: CallerLimits, characters: int, request: bool = True) -> Receipt:
        """Count a request and its characters; only these where the request was counted before (``request`` is False).

        Raises:
            RateLimited, QuotaExceeded: beyond a limit; then the characters are not counted.
            LimitsUnavailable: the store is down, and nothing may pass uncounted.
        """
        if request and limits.rate:
            self._asked(lambda: self._count_request(caller, limits.rate), None)
        if not characters:
            return Receipt()
        return self._asked(lambda: self._count_characters(caller, limits.quota, characters), Receipt())

    def refund(self, receipt: Receipt) -> None:
        """Give characters back; where the store is down they are lost."""
        if receipt.characters:
            with suppress(LimitsUnavailable):  # the request failed already; the store's failure is logged
                self._asked(lambda: self._storage.incr(receipt.counter, _MONTHS_KEPT, -receipt.characters), 0)

    def used(self, caller: str) -> int:
        """Characters of this month.

        Raises:
            LimitsUnavailable: the store is down, and nothing may pass uncounted.
        """
        return max(0, self._asked(lambda: self._storage.get(self._counter(caller)), 0))

    def _count_request(self, caller: str, rate: int) -> None:
        item = RateLimitItemPerMinute(rate, namespace="tandem/rate")
        if not self._windows.hit(item, caller):
            wait = self._windows.get_window_stats(item, caller).reset_time - time.time()
            raise RateLimited(rate, min(max(wait, 1.0), 60.0))

    def _count_characters(self, caller: str, quota: int, characters: int) -> Receipt:
        # Added first and taken back where it was too much: so two replicas never let more pass than the quota.
        counter = self._counter(caller)
        used = self._storage.incr(counter, _MONTHS_KEPT, characters)
        if quota and used > quota:
            self._storage.incr(counter, _MONTHS_KEPT, -characters)
            raise QuotaExceeded(quota, used - characters, characters, self._seconds_of_month_left())
        return Receipt(counter, characters)

    def _counter(self, caller: str) -> str:
        return f"tandem/characters/{caller}/{datetime.fromtimestamp(self._clock(), UTC):%Y-%m}"

    def _seconds_of_month_left(self) -> float:
        now = datetime.fromtimestamp(self._clock(), UTC)
        year, month = divmod(now.year * 12 + now.month, 12)
        return (datetime(year, month + 1, 1, tzinfo=UTC) - now).total_seconds()

    def _asked(self, work: Callable[[], T], instead: T) -> T:
        """The result, or what is to be taken instead while the store is down."""
        now = self._monotonic()
        if now >= self._down_until:
            try:
                result = work()
            except StorageError as error:
                cause = error.__cause__
                why = str(cause) if isinstance(cause, TandemError) else type(cause).__name__
                if not self._down:
                    _log.error("limits_store_failed", cause=why, answers=self._failure)
                self.failures += 1
                self._down, self._down_until = True, self._monotonic() + _PAUSE  # the attempt may have taken as long
            else:
                if self._down:
                    self._down = False
                    _log.warning("limits_store_back")
                return result
        if self._failure == "closed":
            raise LimitsUnavailable(_PAUSE)
        return instead
