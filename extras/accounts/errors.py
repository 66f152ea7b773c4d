"""What a caller may not do. Messages never quote a key."""

from __future__ import annotations

import math
from typing import Any

from service.errors import ServiceError


class KeyMissing(ServiceError):
    """A key is asked for, and there is none."""

    def __init__(self, place: str = "") -> None:
        """``place``: where the field must stand, if that matters."""
        field = f"the field api_key {place}".rstrip()
        super().__init__(f"this server asks for a key; send it as 'Authorization: Bearer KEY', or as {field}")


class KeyInvalid(ServiceError):
    """Unknown, revoked or expired; which of them is nobody's business."""

    def __init__(self) -> None:
        super().__init__("this key is not valid, or not any more; ask those who run this server for one")


class AdminRequired(ServiceError):
    """The route is for administrators."""


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
