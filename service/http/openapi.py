"""The parts of the OpenAPI document that cannot be read off the routes: bodies in four encodings, errors, examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.api.examples import ERRORS
from service.api.replies import SentenceEvent, SummaryEvent
from service.api.schemas import (
    LIST_FIELDS,
    OBJECT_FIELDS,
    DetectRequest,
    ErrorBody,
    PosteditRequest,
    SummarizeRequest,
    TranslateRequest,
)
from service.http.dialects.deepl.schemas import (
    DeepLTranslateRequest,
    DictionaryFields,
    GlossaryChange,
    GlossaryRequest,
    MultilingualGlossaryRequest,
)
from service.http.document import FORM, TAGS, complete
from service.settings import Settings

BODIES: tuple[type[BaseModel], ...] = (
    TranslateRequest,
    PosteditRequest,
    SummarizeRequest,
    DetectRequest,
    DeepLTranslateRequest,
    GlossaryRequest,
    MultilingualGlossaryRequest,
    GlossaryChange,
    DictionaryFields,
)
"""What routes read by themselves, so that the document would not have them."""
_EVENTS: tuple[type[BaseModel], ...] = (SentenceEvent, SummaryEvent)
"""What they stream."""


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route, with an example each."""
    return {status: _error_response(status) for status in statuses}


def _error_response(status: int) -> dict[str, Any]:
    description, code, message = ERRORS[status]
    example: dict[str, Any] = {"error": message, "code": code, "request_id": "5f0c7e…"}
    if status == 422:
        example["detail"] = [{"field": "beam_size", "message": "must be at most 10", "value": 11}]
    return {"model": ErrorBody, "description": description, "content": {"application/json": {"example": example}}}


def streamed(events: str, replies: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route whose reply may be a stream of such events, with examples of its other replies."""
    return {200: {"content": {"application/json": {"examples": replies}, "text/event-stream": {"example": events}}}}


def request_body(model: type[BaseModel], examples: dict[str, Any] | None = None) -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads JSON, form, multipart or query string."""
    schema, form = (f"#/components/schemas/{model.__name__}{kind}" for kind in ("", FORM))
    shown = {"examples": examples} if examples else {}
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": schema}, **shown}}
    objects = [name for name in OBJECT_FIELDS if name in model.model_fields]
    lists = [name for name in LIST_FIELDS if name in model.model_fields]
    encoding = {name: {"contentType": "application/json"} for name in objects}
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        content[kind] = {"schema": {"$ref": form}, "encoding": encoding, **shown}
    description = (
        "The fields as JSON or as a form; a form's fields may also stand in the query string, alone or beside the form."
        " A form repeats a field that is a list"
    )
    description += f" (or has {_named(lists)} as JSON)" if lists else ""
    description += f", and has {_named(objects)} as JSON." if objects else "."
    body = {"requestBody": {"required": True, "description": description, "content": content}}
    return body | ({"parameters": [_STREAM]} if "stream" in model.model_fields else {})


def _named(fields: Sequence[str]) -> str:
    *most, last = (f"`{name}`" for name in fields)
    return f"{', '.join(most)} and {last}" if most else last


_STREAM = {
    "name": "stream", "in": "query", "required": False, "schema": {"type": "boolean", "default": False},
    "description": "The same as the field, for requests of any content type.",
}  # fmt: skip


def install(app: FastAPI, settings: Settings) -> None:
    """Make the app's document complete: see ``service.http.document``."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=TAGS,
                servers=[{"url": "/", "description": "this server"}],
            )
            _, bodies = models_json_schema(
                [(model, "validation") for model in (*BODIES, *_EVENTS)], ref_template="#/components/schemas/{model}"
            )
            schema["components"]["schemas"] |= bodies["$defs"]
            app.openapi_schema = complete(schema, settings, error_responses)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way
