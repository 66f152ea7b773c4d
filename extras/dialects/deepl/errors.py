"""Errors as DeepL's clients read them: with statuses of their own, and another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tandem.service.http.parts import ErrorReply

_STATUSES: Mapping[str, int] = {
    "key_missing": 403,
    "key_invalid": 403,
    "language_not_served": 400,
    "pair_not_served": 400,
    "model_not_found": 400,
    "unsupported_media_type": 400,
    "invalid_field": 400,
    "unsupported_file": 400,
    "broken_file": 400,
    "file_too_complex": 400,
    "file_not_ready": 400,
    "file_gone": 404,
    "overloaded": 529,
    "deadline": 503,
    "quota_exceeded": 456,
}
_OF_FILES = ("unsupported_file", "broken_file", "file_too_complex")
_FIELDS: Mapping[str, str] = {"q": "text", "source": "source_lang", "target": "target_lang"}
_KEY_MISSING = "this server asks for a key; send it as 'Authorization: DeepL-Auth-Key KEY'"


def worded(reply: ErrorReply, request_id: str) -> tuple[ErrorReply, dict[str, Any]]:
    """An error's reply and its body; clients put ``message`` and ``detail`` into one sentence: both must be strings."""
    status = _STATUSES.get(reply.code, reply.status)
    headers = {**reply.headers, "X-Trace-ID": request_id}
    headers.pop("WWW-Authenticate", None)  # belongs to a 401
    message = _KEY_MISSING if reply.code == "key_missing" else _named_as_sent(reply.message)
    if reply.code in _OF_FILES:
        message = f"Invalid file: {message}"
    return replace(reply, status=status, headers=headers), {"message": message}


def _named_as_sent(message: str) -> str:
    """A message about a field of ours, with the name that DeepL's field has."""
    name, colon, rest = message.partition(":")
    field, dot, number = name.partition(".")
    return f"{_FIELDS[field]}{dot}{number}{colon}{rest}" if colon and field in _FIELDS else message
