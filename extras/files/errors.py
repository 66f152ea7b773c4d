"""Refusals of files as replies, and errors of jobs as sentences."""

from __future__ import annotations

from collections.abc import Mapping

from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.records import FilesFull, TooManyFiles
from tandem.extras.files.runner import Explanation
from tandem.service.http.error_replies import reply_for
from tandem.service.http.parts import ErrorReply, ErrorRule, ReplyRule

_STATUSES: Mapping[str, int] = {
    "file_too_large": 413,
    "unsupported_file": 415,
    "broken_file": 422,
    "file_too_complex": 422,
    "file_gone": 410,
}
"""Of a refused file, by its code."""


def _refused(error: FileRefused) -> ErrorReply:
    return ErrorReply(_STATUSES[error.code], error.code, str(error), error.detail)


ERRORS: Mapping[type[BaseException], ErrorRule] = {
    FileRefused: _refused,
    TooManyFiles: ReplyRule(429, "too_many_files"),
    FilesFull: ReplyRule(503, "files_full"),
}


def explain(error: Exception) -> Explanation | None:
    """What a client is told of an error where there is no reply to tell it with; None = nothing."""
    reply = reply_for(error)
    return None if reply.code == "internal" else Explanation(reply.message, reply.code, reply.status == 503)
