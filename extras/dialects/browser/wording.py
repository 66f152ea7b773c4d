"""Errors as Google's and DeepLX's clients read them, and what the OpenAPI document says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tandem.service.http.openapi import error_responses
from tandem.service.http.parts import ErrorReply

Worded = Callable[[ErrorReply, str], tuple[ErrorReply, dict[str, Any]]]
STATUSES = (400, 401, 403, 404, 413, 415, 422, 429, 500, 503, 504)
_REASONS = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
_CALLERS_FAULT = (404, 413, 415, 422)  # of which Google's API makes a 400


def google_worded(reply: ErrorReply, request_id: str) -> tuple[ErrorReply, dict[str, Any]]:
    """As Google's clients read errors: an object within ``error``, which has the status too."""
    status = 400 if reply.status in _CALLERS_FAULT else 403 if reply.status == 401 else reply.status
    fault = {"message": reply.message, "domain": "global", "reason": reply.code}
    reason = _REASONS.get(status, "UNAVAILABLE" if status >= 500 else "FAILED_PRECONDITION")
    error = {"code": status, "message": reply.message, "status": reason, "errors": [fault]}
    return replace(reply, status=status), {"error": error}


def deeplx_worded(reply: ErrorReply, request_id: str) -> tuple[ErrorReply, dict[str, Any]]:
    """As DeepLX words errors."""
    return reply, {"code": reply.status, "message": reply.message}


def worded_responses(worded: Worded) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route whose errors are worded so: ours, with their examples in that form."""
    found: dict[int | str, dict[str, Any]] = {}
    for status, response in error_responses(*STATUSES).items():
        example = response["content"]["application/json"]["example"]
        reply, body = worded(ErrorReply(int(status), example["code"], example["error"]), "")
        content = {"application/json": {"example": body}}
        found.setdefault(reply.status, {"description": response["description"], "content": content})
    return found
