"""Errors as the dialect of a request has them, which shows in its path and its content type.

Our own shape is right for LibreTranslate's JSON clients too; its form clients expect other statuses. How other
dialects word errors is brought with them (``service.http.parts.Dialect``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from tandem.service.http.parts import ErrorReply, dialect_of

LIBRETRANSLATE_PATHS = frozenset(("/translate", "/detect", "/translate_file", "/suggest"))
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_FORM_STATUSES: Mapping[str, int] = {
    "key_missing": 400,
    "key_invalid": 403,
    "language_not_served": 400,
    "pair_not_served": 400,
    "quota_exceeded": 403,
}


def in_dialect(reply: ErrorReply, scope: Scope) -> tuple[ErrorReply, dict[str, Any]]:
    """An error's reply and its body as the request's dialect has them."""
    request_id: str = scope["state"]["request_id"]
    if (dialect := dialect_of(scope["path"])) is not None:
        return dialect.worded(reply, request_id)
    if _is_form(scope):
        reply = _of_form(reply, scope["path"])
    return reply, reply.body(request_id)


def _is_form(scope: Scope) -> bool:
    if scope["path"] not in LIBRETRANSLATE_PATHS:
        return False
    kind = Headers(scope=scope).get("content-type", "").split(";")[0].strip().lower()
    return kind in _FORMS


def _of_form(reply: ErrorReply, path: str) -> ErrorReply:
    """As LibreTranslate's form clients expect it; what they do not know stays as it is."""
    if reply.code == "too_large" and path != "/translate_file":
        return replace(reply, status=400)
    if reply.code == "invalid_field":
        return _of_field(reply)
    return replace(reply, status=_FORM_STATUSES.get(reply.code, reply.status))


def _of_field(reply: ErrorReply) -> ErrorReply:
    faults = reply.detail if isinstance(reply.detail, list) else []
    for fault in faults:
        if "value" not in fault:  # so is nothing but a missing field described
            return replace(reply, status=400, message=f"Invalid request: missing {fault['field']} parameter")
    languages = any(fault["field"] in ("source", "target") for fault in faults)
    return replace(reply, status=400) if languages else reply
