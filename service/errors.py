"""The root of what keys, files and storage refuse; the HTTP side has a status for each code, in one place."""

from __future__ import annotations

from typing import Any

from models.errors import TandemError


class Refused(TandemError):
    """What was asked for is not done, and the message says why.

    Attributes:
        code: for machines; ``service/http/errors.py`` maps it to a status.
        detail: bound and value, where there are any.
        retry_after: seconds after which it may be done; None = time alone changes nothing, or nobody knows.
    """

    code = "refused"

    def __init__(self, message: str, detail: Any = None, retry_after: float | None = None) -> None:
        self.detail, self.retry_after = detail, retry_after
        super().__init__(message)
