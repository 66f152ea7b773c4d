"""What the service refuses, whoever asks: routes, dialects, file jobs or a program that embeds it. Knows no HTTP.

    TandemError
    ├── ServiceError
    │   ├── InvalidOption      a field breaks a bound
    │   ├── TooLarge           over a limit of size
    │   ├── LanguageNotServed, PairNotServed, ModelNotFound
    │   ├── KeyMissing, KeyInvalid, AdminRequired
    │   └── GlossaryNotFound
    ├── StorageError           what is kept cannot be read or written now
    │   └── StorageFull
    ├── OptionError            of a search option (``models.errors``)
    └── Overloaded, Draining, DeadlinePassed, DecodingFailed, ...      (``service.engine.failures``)

``service.http.error_replies.reply_for`` is the one place that makes replies of them. Fields have the names that the
HTTP contract gives them (``q``, ``others.fr``, ``protect.0``): the only ones that anybody who asks has seen.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from tandem.models.errors import FULL, TandemError

_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)  # for the database, for the index of its log


class ServiceError(TandemError):
    """A request that cannot be done.

    Attributes:
        detail: what the message says, for machines; None = nothing more.
    """

    def __init__(self, message: str, detail: Any = None) -> None:
        self.detail = detail
        super().__init__(message)


class InvalidOption(ServiceError):
    """A field breaks a bound.

    Attributes:
        field: its name; one of several texts with its number, from 0.
        bound: what it must be, in words ("must be at most 10").
        value: what was given.
        remedy: what to do, where the bound does not say it.
    """

    def __init__(self, field: str, bound: str, value: object, remedy: str = "") -> None:
        self.field, self.bound, self.value, self.remedy = field, bound, value, remedy
        super().__init__(f"{field}: {bound}" + (f"; {remedy}" if remedy else ""))


class TooLarge(ServiceError):
    """Over a limit of size; names the bound and the value, where that is known."""

    def __init__(self, what: str, bound: int, value: int | None, remedy: str) -> None:
        got = "" if value is None else f", but this one has {value}"
        super().__init__(f"a request may have at most {bound} {what}{got}; {remedy}", {"bound": bound, "value": value})


class LanguageNotServed(ServiceError):
    """No loaded bundle knows that language."""


class PairNotServed(ServiceError):
    """No loaded bundle translates from that language into that one."""


class ModelNotFound(ServiceError):
    """No loaded bundle has that name or does that task."""


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


class GlossaryNotFound(ServiceError):
    """The caller has stored no such glossary, or it has no dictionary for that language pair."""


class StorageError(TandemError):
    """What is kept cannot be read or written now: locked for too long, damaged, closed. No path in its message."""

    @classmethod
    def of(cls, what: str, error: Exception) -> StorageError:
        """Of what cannot be done, and the error that says why; a StorageFull where there is no room."""
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        if getattr(error, "errno", None) in FULL or getattr(error, "sqlite_errorcode", None) in _NO_ROOM:
            return StorageFull(f"{what} ({why}); make room on its disk")
        return cls(f"{what} ({why})")


class StorageFull(StorageError):
    """There is no room on the disk."""
