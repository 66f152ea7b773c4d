"""What a caller may not do. Messages never quote a key."""

from __future__ import annotations

import math
from typing import Any

from tandem.service.errors import ServiceError


class _Later(ServiceError):
    """To be asked again after ``retry_after`` seconds."""

    def __init__(self, message: str, detail: Any, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message, detail)


class RateLimited(_Later):
    """Too many requests a minute."""

    def __init__(self, bound: int, retry_after: float) -> None:
        super().__init__(
            f"at most {bound} requests a minute; try again in {max(1, math.ceil(retry_after))} s",
            {"bound": bound, "unit": "requests a minute"},
            retry_after,
        )


class QuotaExceeded(_Later):
    """The month's characters are used up, or this request has more than are left."""

    def __init__(self, bound: int, used: int, characters: int, retry_after: float) -> None:
        super().__init__(
            f"at most {bound} characters a month, of which {used} are used; this request has {characters}. The next "
            "month begins at 00:00 UTC on its first day",
            {"bound": bound, "used": used, "value": characters},
            retry_after,
        )


class LimitsUnavailable(_Later):
    """The store of counters is down, and the server was told to answer nothing uncounted."""

    def __init__(self, retry_after: float) -> None:
        super().__init__("requests cannot be counted now; try again later", None, retry_after)


class MemoryEntryNotFound(ServiceError):
    """The caller's translation memory has no such entry."""


class StoreFull(ServiceError):
    """The caller stores as much as it may; names the bound and the value."""

    def __init__(self, what: str, bound: int, value: int) -> None:
        message = f"a caller may store at most {bound} {what}, and this would make {value}; delete some first"
        super().__init__(message, {"bound": bound, "value": value})


class GlossaryLimit(StoreFull):
    """Of glossaries."""


class MemoryLimit(StoreFull):
    """Of the translation memory."""
