"""Every error of the HTTP side, and the one place where errors become status codes.

    TandemError
    ├── HttpError          carries status, code and headers of its reply
    │   └── BadRequest 400, InvalidFields 422, NotReady 503
    └── all others know no HTTP (``service.errors``, ``service.engine.failures``, ``models.errors``): see ``reply_for``

Replies are ``{"error", "code", "detail"?, "request_id"}`` and hold no traceback, no path and nothing of the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException

from tandem.models.errors import OptionError, TandemError
from tandem.service.api.wording import bound_of, quoted, shown
from tandem.service.engine import DeadlinePassed, DecodingFailed, Draining, Overloaded, UnknownModel
from tandem.service.errors import (
    AdminRequired,
    GlossaryNotFound,
    InvalidOption,
    KeyInvalid,
    KeyMissing,
    LanguageNotServed,
    ModelNotFound,
    PairNotServed,
    StorageError,
    StorageFull,
    TooLarge,
)
from tandem.service.http.parts import ErrorReply, ErrorRule, ReplyRule, http_parts

_SOON = 5.0  # seconds
_LONGEST_NAME = 80
_REPLIES: Mapping[type[BaseException], ErrorRule] = {
    LanguageNotServed: ReplyRule(404, "language_not_served"),
    PairNotServed: ReplyRule(404, "pair_not_served"),
    ModelNotFound: ReplyRule(404, "model_not_found"),
    TooLarge: ReplyRule(413, "too_large"),
    GlossaryNotFound: ReplyRule(404, "glossary_not_found"),
    KeyMissing: ReplyRule(401, "key_missing", {"WWW-Authenticate": 'Bearer realm="tandem"'}),  # which a 401 has to have
    KeyInvalid: ReplyRule(403, "key_invalid"),
    AdminRequired: ReplyRule(403, "admin_required"),
    UnknownModel: ReplyRule(404, "model_not_found"),
    Overloaded: ReplyRule(503, "overloaded"),
    Draining: ReplyRule(503, "draining"),
    DecodingFailed: ReplyRule(500, "decoding_failed"),
}


class HttpError(TandemError):
    """An error with a reply of its own: its message is for people, its code for machines."""

    def __init__(
        self, status: int, code: str, message: str, detail: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status, self.code, self.detail, self.headers = status, code, detail, headers or {}
        super().__init__(message)


class BadRequest(HttpError):
    """The body cannot be read: broken JSON, invalid UTF-8, lone surrogates."""

    def __init__(self, message: str, detail: Any = None) -> None:
        super().__init__(400, "bad_request", message, detail)


def not_offered(message: str) -> HttpError:
    """The request asks for what this server or its models do not do; better refused than left out silently."""
    return HttpError(400, "not_offered", message)


def body_timeout(seconds: float) -> HttpError:
    """The body did not arrive in time."""
    return HttpError(408, "body_timeout", f"the body did not arrive within {seconds:g} s; send it again")


def unsupported_media(message: str) -> HttpError:
    """A content type that the route does not read."""
    return HttpError(415, "unsupported_media_type", message)


class InvalidFields(HttpError):
    """Fields that break their bounds; ``detail`` lists each with message and value."""

    def __init__(self, message: str, detail: Any = None) -> None:
        super().__init__(422, "invalid_field", message, detail)

    @classmethod
    def of(cls, field_name: str, message: str, value: Any, remedy: str = "") -> InvalidFields:
        """One bad field: the bound that it breaks, the value, and what to do where the bound does not say it."""
        fault = {"field": field_name, "message": message, "value": shown(value)}
        after = f"; {remedy}" if remedy else ""
        return cls(_sentence(fault) + after, [fault | {"message": message + after}])

    @classmethod
    def missing(cls, field_name: str, message: str = "is required") -> InvalidFields:
        """A field that has to be there and is not."""
        return cls(f"{field_name}: {message}", [{"field": field_name, "message": message}])


class NotReady(HttpError):
    """The service cannot answer yet, or no more; ``detail`` lists the reasons."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(503, "not_ready", "not ready: " + "; ".join(reasons), {"reasons": list(reasons)})


def reply_for(error: BaseException) -> ErrorReply:
    """The reply to any error that a request can end with; unknown ones are a bare 500."""
    if isinstance(error, HttpError):
        headers = {**(_retry(_SOON) if error.status == 503 else {}), **error.headers}
        return ErrorReply(error.status, error.code, str(error), error.detail, headers)
    if isinstance(error, InvalidOption):
        return reply_for(InvalidFields.of(error.field, error.bound, error.value, error.remedy))
    if (rule := _rule_of(type(error))) is not None:
        return _ruled(rule, error)
    if isinstance(error, OptionError):
        fault = {"field": error.field, "message": f"must be {error.bound}", "value": shown(error.value)}
        return ErrorReply(422, "invalid_field", _sentence(fault), [fault])
    if isinstance(error, DeadlinePassed | TimeoutError):
        return ErrorReply(504, "deadline", str(DeadlinePassed()))
    if isinstance(error, StorageError):
        message = "what this server keeps cannot be read or written now; try again later"
        if isinstance(error, StorageFull):
            message = "this server's disk is full: it can keep nothing new until those who run it make room"
        return ErrorReply(503, "storage_unavailable", message, headers=_retry(_SOON))
    if isinstance(error, HTTPException):
        return _reply_for_route(error)
    return ErrorReply(500, "internal", "something went wrong on our side; quote the request id when you report it")


def invalid_fields(error: ValidationError) -> InvalidFields:
    """Pydantic's findings in our shape: one sentence for people, one entry per field."""
    return InvalidFields(*_describe(error.errors(include_url=False)))


def invalid_parameters(errors: Sequence[Any]) -> InvalidFields:
    """FastAPI's findings about parameters of path and query, in our shape."""
    return InvalidFields(*_describe([{**item, "loc": item["loc"][1:]} for item in errors]))


def _describe(errors: Sequence[Any]) -> tuple[str, list[dict[str, Any]]]:
    faults = []
    for item in errors:
        context = item.get("ctx", {})
        name = _place((*item["loc"], *([context["place"]] if "place" in context else [])))
        fault: dict[str, Any] = {"field": name, "message": bound_of(item)}
        if item["type"] != "missing":
            fault["value"] = shown(context.get("value", _measured(item)))
        faults.append(fault)
    sentence = "; ".join(_sentence(fault) for fault in faults[:5])
    return sentence + (f"; and {len(faults) - 5} more" if len(faults) > 5 else ""), faults[:100]


def _place(location: Sequence[Any]) -> str:
    """Where a fault is; of an object's key that is at fault, and of one that is too long, nothing is quoted."""
    parts = [str(part) for part in location]
    if parts[-1:] == ["[key]"]:
        del parts[-2]
    return ".".join(part if len(part) <= _LONGEST_NAME else "…" for part in parts) or "body"


def _measured(item: Mapping[str, Any]) -> Any:
    """The value at fault: of a string that is too long its length, which is what the bound is about."""
    return len(item["input"]) if item["type"] == "string_too_long" else item["input"]


def _sentence(fault: Mapping[str, Any]) -> str:
    given = f", but is {quoted(fault['value'])}" if "value" in fault and "known field" not in fault["message"] else ""
    return f"{fault['field']}: {fault['message']}{given}"


def _reply_for_route(error: HTTPException) -> ErrorReply:
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return ErrorReply(404, "route_not_found", "there is no such route; GET /docs lists them", headers=headers)
    if error.status_code == 405:
        allowed = headers.get("Allow") or headers.get("allow") or ""
        message = f"this route answers {allowed or 'another method'}"
        return ErrorReply(405, "method_not_allowed", message, headers=headers)
    return ErrorReply(error.status_code, "http_error", str(error.detail), headers=headers)


def _rule_of(kind: type[BaseException]) -> ErrorRule | None:
    """What errors of a type become: by a rule of ours or of an extra, for the type or the nearest of its bases."""
    rules = _rules()
    return next((rules[base] for base in kind.__mro__ if base in rules), None)


@cache
def _rules() -> Mapping[type[object], ErrorRule]:
    """All of them, ours and those of extras."""
    return {kind: rule for rules in (_REPLIES, *(part.errors for part in http_parts())) for kind, rule in rules.items()}


def _ruled(rule: ErrorRule, error: BaseException) -> ErrorReply:
    if not isinstance(rule, ReplyRule):
        return rule(error)
    seconds = getattr(error, "retry_after", None)
    headers = {**rule.headers, **({} if seconds is None else _retry(seconds))}
    return ErrorReply(rule.status, rule.code, str(error), getattr(error, "detail", None), headers)


def _retry(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
