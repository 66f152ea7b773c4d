"""Errors as each dialect writes them: the one place that knows which client reads which status and shape.

Our own shape is right for LibreTranslate's JSON clients too. Its form clients expect other statuses, and DeepL's and
OpenAI's clients other statuses and another shape; which dialect a request speaks shows in its path and content type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from service.http.dialects.openai.document import fault_type
from service.http.errors import ErrorReply

DEEPL_PREFIXES = ("/v2/", "/v3/")
OPENAI_PREFIX = "/v1/"
LIBRETRANSLATE_PATHS = frozenset(("/translate", "/detect", "/translate_file", "/suggest"))
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_QUOTA = "quota_exceeded"

_FORM_STATUSES: Mapping[str, int] = {
    "key_missing": 400,
    "key_invalid": 403,
    "language_not_served": 400,
    "pair_not_served": 400,
    _QUOTA: 403,
}
_DEEPL_STATUSES: Mapping[str, int] = {
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
    _QUOTA: 456,
}
_OPENAI_REPLIES: Mapping[str, tuple[int, str]] = {
    "key_missing": (401, "invalid_api_key"),
    "key_invalid": (401, "invalid_api_key"),
    "language_not_served": (400, "language_not_served"),
    "pair_not_served": (400, "pair_not_served"),
    "invalid_field": (400, "invalid_field"),
    "unsupported_media_type": (400, "unsupported_media_type"),
    "too_large": (400, "context_length_exceeded"),
    "rate_limited": (429, "rate_limit_exceeded"),
    _QUOTA: (429, "insufficient_quota"),
}
"""Status and code, where they are others than ours."""
_OF_FILES = ("unsupported_file", "broken_file", "file_too_complex")
_DEEPL_FIELDS: Mapping[str, str] = {"q": "text", "source": "source_lang", "target": "target_lang"}
_KEY_MISSING = "this server asks for a key; send it as 'Authorization: DeepL-Auth-Key KEY'"


def speaks_deepl(scope: Scope) -> bool:
    """Whether a request's path is one of DeepL's."""
    path: str = scope["path"]
    return path.startswith(DEEPL_PREFIXES)


def in_dialect(reply: ErrorReply, scope: Scope) -> tuple[ErrorReply, dict[str, Any]]:
    """An error's reply and its body as the request's dialect has them."""
    request_id: str = scope["state"]["request_id"]
    if speaks_deepl(scope):
        return _of_deepl(reply, request_id)
    if scope["path"].startswith(OPENAI_PREFIX):
        return _of_openai(reply)
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


def _of_deepl(reply: ErrorReply, request_id: str) -> tuple[ErrorReply, dict[str, Any]]:
    """DeepL's clients put ``message`` and ``detail`` into one sentence, so both must be strings."""
    status = _DEEPL_STATUSES.get(reply.code, reply.status)
    headers = {**reply.headers, "X-Trace-ID": request_id}
    headers.pop("WWW-Authenticate", None)  # belongs to a 401
    message = _KEY_MISSING if reply.code == "key_missing" else _named_as_sent(reply.message)
    if reply.code in _OF_FILES:
        message = f"Invalid file: {message}"
    return replace(reply, status=status, headers=headers), {"message": message}


def _of_openai(reply: ErrorReply) -> tuple[ErrorReply, dict[str, Any]]:
    """An object within ``error``, as OpenAI's clients make exceptions of it."""
    status, code = _OPENAI_REPLIES.get(reply.code, (reply.status, reply.code))
    faults = reply.detail if isinstance(reply.detail, list) else []
    param = str(faults[0]["field"]) if faults else None
    fault = {"message": reply.message, "type": fault_type(status), "param": param, "code": code}
    return replace(reply, status=status), {"error": fault}


def _named_as_sent(message: str) -> str:
    """A message about a field of ours, with the name that DeepL's field has."""
    name, colon, rest = message.partition(":")
    field, dot, number = name.partition(".")
    return f"{_DEEPL_FIELDS[field]}{dot}{number}{colon}{rest}" if colon and field in _DEEPL_FIELDS else message
