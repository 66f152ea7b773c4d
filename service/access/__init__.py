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
from service.access.keys import Key, KeyStore, Limits, NewKey
from service.access.meter import Receipt

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "Access",
    "AdminRequired",
    "Caller",
    "Key",
    "KeyInvalid",
    "KeyMissing",
    "KeyStore",
    "Limits",
    "LimitsUnavailable",
    "NewKey",
    "QuotaExceeded",
    "QuotaUsage",
    "RateLimited",
    "Receipt",
]
