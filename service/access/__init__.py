"""Who may do how much: keys, rate limits, quotas."""

from service.access.access import ADMIN, ANONYMOUS, Access, Caller, QuotaUsage
from service.access.errors import (
    AdminRequired,
    KeyInvalid,
    KeyMissing,
    LimitsUnavailable,
    QuotaExceeded,
    RateLimited,
)
from service.access.keys import CallerLimits, Key, KeyStore, NewKey
from service.access.meter import Receipt

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "Access",
    "AdminRequired",
    "Caller",
    "CallerLimits",
    "Key",
    "KeyInvalid",
    "KeyMissing",
    "KeyStore",
    "LimitsUnavailable",
    "NewKey",
    "QuotaExceeded",
    "QuotaUsage",
    "RateLimited",
    "Receipt",
]
