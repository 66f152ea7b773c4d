"""What a caller may not do. Messages never quote a key."""

from __future__ import annotations

import math
from collections.abc import Mapping

from service.http.errors import HttpError


class KeyMissing(HttpError):
    """The route asks for a key, and the request has none."""

    status, code = 401, "key_missing"

    def __init__(self, place: str = "") -> None:
        """``place``: where the field must stand, if that matters."""
        field = f"the field api_key {place}".rstrip()
        super().__init__(f"this server asks for a key; send it as 'Authorization: Bearer KEY', or as {field}")

    def headers(self) -> Mapping[str, str]:
        """How to authenticate, which a 401 has to say."""
        return {"WWW-Authenticate": 'Bearer realm="tandem"'}


class KeyInvalid(HttpError):
    """Unknown, revoked or expired; which of them is nobody's business."""

    status, code = 403, "key_invalid"

    def __init__(self) -> None:
        super().__init__("this key is not valid, or not any more; ask those who run this server for one")


class AdminRequired(HttpError):
    """The route is for administrators."""

    status, code = 403, "admin_required"

    @classmethod
    def for_other_key(cls) -> AdminRequired:
        """The key is good, but not for this."""
        return cls("this route asks for an admin key, and this one is not")

    @classmethod
    def without_any(cls) -> AdminRequired:
        """Nobody could pass."""
        return cls(
            "this route asks for an admin key, and this server has none; make one with 'tandem keys add NAME --admin' "
            "where the server keeps its data, or start it with TANDEM_ADMIN_KEY"
        )


class _Later(HttpError):
    """To be asked again later."""

    def __init__(self, message: str, detail: object, retry_after: float) -> None:
        super().__init__(message, detail)
        self.retry_after = max(1, math.ceil(retry_after))

    def headers(self) -> Mapping[str, str]:
        """When it may work again, in seconds."""
        return {"Retry-After": str(self.retry_after)}


class RateLimited(_Later):
    """Too many requests a minute."""

    status, code = 429, "rate_limited"

    def __init__(self, bound: int, retry_after: float) -> None:
        super().__init__(
            f"at most {bound} requests a minute; try again in {max(1, math.ceil(retry_after))} s",
            {"bound": bound, "unit": "requests a minute"},
            retry_after,
        )


class QuotaExceeded(_Later):
    """The month's characters are used up, or this request has more than are left."""

    status, code = 429, "quota_exceeded"

    def __init__(self, bound: int, used: int, characters: int, retry_after: float) -> None:
        super().__init__(
            f"at most {bound} characters a month, of which {used} are used; this request has {characters}. The next "
            "month begins at 00:00 UTC on its first day",
            {"bound": bound, "used": used, "value": characters},
            retry_after,
        )


class LimitsUnavailable(_Later):
    """The store of counters is down, and the server was told to answer nothing uncounted."""

    status, code = 503, "limits_unavailable"

    def __init__(self, retry_after: float) -> None:
        super().__init__("requests cannot be counted now; try again later", None, retry_after)
