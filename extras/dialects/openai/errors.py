"""Errors as OpenAI's clients read them: with statuses of their own, and another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tandem.extras.dialects.openai.document import fault_type
from tandem.service.http.parts import ErrorReply

_REPLIES: Mapping[str, tuple[int, str]] = {
    "key_missing": (401, "invalid_api_key"),
    "key_invalid": (401, "invalid_api_key"),
    "language_not_served": (400, "language_not_served"),
    "pair_not_served": (400, "pair_not_served"),
    "invalid_field": (400, "invalid_field"),
    "unsupported_media_type": (400, "unsupported_media_type"),
    "too_large": (400, "context_length_exceeded"),
    "rate_limited": (429, "rate_limit_exceeded"),
    "quota_exceeded": (429, "insufficient_quota"),
}
"""Status and code, where they are others than ours."""


def worded(reply: ErrorReply, request_id: str) -> tuple[ErrorReply, dict[str, Any]]:
    """An error's reply and its body: an object within ``error``, as OpenAI's clients make exceptions of it."""
    status, code = _REPLIES.get(reply.code, (reply.status, reply.code))
    faults = reply.detail if isinstance(reply.detail, list) else []
    param = str(faults[0]["field"]) if faults else None
    fault = {"message": reply.message, "type": fault_type(status), "param": param, "code": code}
    return replace(reply, status=status), {"error": fault}
