"""What the OpenAPI document says of OpenAI's routes: bodies, errors, examples."""

from __future__ import annotations

from typing import Any

from tandem.extras.dialects.openai.schemas import ChatRequest, OpenAiError

STREAM = (
    'data: {"id":"chatcmpl-5f0c7e","created":1924939800,"model":"translate-de-en","object":"chat.completion.chunk",'
    '"choices":[{"index":0,"delta":{"role":"assistant","content":"Good morning."},"finish_reason":null}]}\n\n'
    "data: [DONE]\n\n"
)
_ERRORS = {
    400: ("A field is missing or wrong, or asks for what is not offered.", "invalid_field",
          "messages: must hold at least 1 entry"),
    401: ("No key, or one that is not valid.", "invalid_api_key", "this key is not valid, or not any more"),
    404: ("No such model; the message lists those that there are.", "model_not_found",
          "there is no model 'gpt-4' here; there are translate-auto-en, translate-de-en, summarize-en"),
    408: ("The body did not arrive in time.", "body_timeout", "the body did not arrive within 60 s; send it again"),
    429: ("Over the key's rate or quota; see Retry-After.", "rate_limit_exceeded",
          "at most 60 requests a minute; try again in 12 s"),
    500: ("Failed on our side; the id is in the log.", "internal", "something went wrong on our side"),
    503: ("Overloaded, starting or shutting down; see Retry-After.", "overloaded", "the queue is full"),
    504: ("The deadline passed.", "deadline", "the deadline passed before the text was finished"),
}  # fmt: skip


def openai_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route, with an example each."""
    return {status: _error_response(status) for status in statuses}


def fault_type(status: int) -> str:
    """OpenAI's kind of error for a status."""
    if status >= 500:
        return "server_error"
    return "rate_limit_error" if status == 429 else "invalid_request_error"


def chat_body() -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads a chat."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ChatRequest.__name__}"}}}
    return {"requestBody": {"required": True, "content": content}}


def _error_response(status: int) -> dict[str, Any]:
    description, code, message = _ERRORS[status]
    example = {"error": {"message": message, "type": fault_type(status), "param": None, "code": code}}
    return {"model": OpenAiError, "description": description, "content": {"application/json": {"example": example}}}
