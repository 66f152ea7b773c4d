"""The OpenAPI document: what cannot be read off the routes, and what holds for all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from tandem.service.api.examples import ERRORS
from tandem.service.api.replies import ErrorBody, SentenceEvent, SummaryEvent
from tandem.service.api.schemas import (
    LIST_FIELDS,
    OBJECT_FIELDS,
    DetectRequest,
    PosteditRequest,
    SummarizeRequest,
    TranslateRequest,
    adapter_of,
    names_of,
)
from tandem.service.http.parts import KeyScheme, dialect_of, http_parts
from tandem.service.settings import Settings

FORM = "Form"
"""Ending of the name of a body's schema as forms have it: unknown fields are ignored there, not refused."""

_TAGS: list[dict[str, str]] = [
    {"name": "text", "description": "Translate, post-edit, summarize, detect languages."},
    {"name": "information", "description": "What is served."},
    {"name": "models", "description": "The loaded models; changing them takes an admin key."},
    {"name": "operations", "description": "For those who run the service."},
    {"name": "LibreTranslate", "description": "What clients of LibreTranslate ask for besides; the rest is shared."},
]
_BEARER = {
    "type": "http", "scheme": "bearer",
    "description": "`Authorization: Bearer KEY`. The field `api_key` of a request does as well.",
}  # fmt: skip
_HEADERS: dict[str, Any] = {
    "X-Request-ID": {
        "description": "Names the request in the log: the one that was sent, of up to 128 letters, digits and `._:-`, "
        "or a new one.",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds after which it may work: by the queue, or when the rate or quota allows it.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}},
}
_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
_WITH_BODY, _ALWAYS = (400, 408, 413), (500,)

Document = dict[str, Any]


_BODIES: tuple[type[Any], ...] = (
    TranslateRequest,
    PosteditRequest,
    SummarizeRequest,
    DetectRequest,
)
"""What our routes read by themselves, so that the document would not have them."""
_EVENTS: tuple[type[Any], ...] = (SentenceEvent, SummaryEvent)
"""What they stream."""


def bodies() -> tuple[type[Any], ...]:
    """What routes read by themselves, ours and those of extras."""
    return (*_BODIES, *(model for part in http_parts() for model in part.models))


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route, with an example each."""
    return {status: _error_response(status) for status in statuses}


def _error_response(status: int) -> dict[str, Any]:
    description, code, message = ERRORS[status]
    example: dict[str, Any] = {"error": message, "code": code, "request_id": "5f0c7e…"}
    if status == 422:
        example["detail"] = [{"field": "beam_size", "message": "must be at most 10", "value": 11}]
    return {"model": ErrorBody, "description": description, "content": {"application/json": {"example": example}}}


def streamed(events: str) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route whose reply may be a stream of such events."""
    return {200: {"content": {"text/event-stream": {"example": events}}}}


def request_body(model: type[Any]) -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads JSON, form, multipart or query string."""
    schema, form = (f"#/components/schemas/{model.__name__}{kind}" for kind in ("", FORM))
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": schema}}}
    known = names_of(model)
    objects = [name for name in OBJECT_FIELDS if name in known]
    lists = [name for name in LIST_FIELDS if name in known]
    encoding = {name: {"contentType": "application/json"} for name in objects}
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        content[kind] = {"schema": {"$ref": form}, "encoding": encoding}
    description = (
        "The fields as JSON or as a form; a form's fields may also stand in the query string, alone or beside the form."
        " A form repeats a field that is a list"
    )
    description += f" (or has {_named(lists)} as JSON)" if lists else ""
    description += f", and has {_named(objects)} as JSON." if objects else "."
    body = {"requestBody": {"required": True, "description": description, "content": content}}
    return body | ({"parameters": [_STREAM]} if "stream" in known else {})


def _named(fields: Sequence[str]) -> str:
    *most, last = (f"`{name}`" for name in fields)
    return f"{', '.join(most)} and {last}" if most else last


_STREAM = {
    "name": "stream", "in": "query", "required": False, "schema": {"type": "boolean", "default": False},
    "description": "The same as the field, for requests of any content type.",
}  # fmt: skip


def install(app: FastAPI, settings: Settings) -> None:
    """Make the app's document complete."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=[*_TAGS, *(tag for part in http_parts() for tag in part.tags)],
                servers=[{"url": "/", "description": "this server"}],
            )
            _, read = TypeAdapter.json_schemas(
                [(model.__name__, "validation", adapter_of(model)) for model in (*bodies(), *_EVENTS)],
                ref_template="#/components/schemas/{model}",
            )
            schema["components"]["schemas"] |= read["$defs"]
            app.openapi_schema = _complete(schema, settings)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way


def _complete(schema: Document, settings: Settings) -> Document:
    """The document with all that holds for all routes.

    Args:
        schema: as FastAPI makes it, the bodies' schemas among its components.
        settings: whose limits stand in it.
    """
    schemas = schema["components"]["schemas"]
    keys = {"bearer": _BEARER, **{scheme.name: dict(scheme.described) for scheme in _schemes()}}
    schema["components"] |= {"securitySchemes": keys, "headers": _HEADERS}
    for path, method, operation in _operations(schema):
        if dialect_of(path) is None:
            _add_errors(operation, method)
        elif _is_default(operation["responses"].get("422", {})):
            del operation["responses"]["422"]
        operation["security"] = _security(path, operation)
        _add_examples(operation, schemas)
        for status, response in operation["responses"].items():
            response["headers"] = response.get("headers", {}) | _headers(status)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _set_limits(schemas, settings)
    for name in sorted(set(re.findall(rf'"#/components/schemas/(\w+){FORM}"', json.dumps(schema)))):
        form = deepcopy(schemas[name])
        form.pop("additionalProperties", None)
        schemas[name + FORM] = form | {"title": name + FORM}
    return schema


def _operations(schema: Document) -> Iterator[tuple[str, str, Document]]:
    for path, operations in schema["paths"].items():
        yield from ((path, method, operation) for method, operation in operations.items() if method in _METHODS)


def _add_errors(operation: Document, method: str) -> None:
    """Any request may fail on our side, and any body may be late, too large or unreadable."""
    responses = operation["responses"]
    if _is_default(responses.get("422", {})):
        del responses["422"]
        responses |= _plain(error_responses(422))
    wanted = (*_WITH_BODY, *_ALWAYS) if method in ("post", "put", "patch") else _ALWAYS
    responses |= _plain(error_responses(*(status for status in wanted if str(status) not in responses)))
    operation["responses"] = dict(sorted(responses.items()))


def _plain(responses: dict[int | str, Document]) -> Document:
    """Responses as they stand in a document, where FastAPI puts the model's schema itself."""
    found = {}
    for status, response in responses.items():
        content = response["content"]["application/json"] | {"schema": {"$ref": "#/components/schemas/ErrorBody"}}
        found[str(status)] = {"description": response["description"], "content": {"application/json": content}}
    return found


def _is_default(response: Document) -> bool:
    """Whether a response is the one that FastAPI writes for parameters, which is none of ours."""
    return "HTTPValidationError" in json.dumps(response)


def _add_examples(operation: Document, schemas: Document) -> None:
    """Give the JSON body and the JSON reply of success the example that their fields make, where they have none."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        if "examples" not in content and not _is_upload(content["schema"]):
            content["examples"] = {"example": {"value": _example(content["schema"], schemas)}}
    for status, response in operation["responses"].items():
        reply = response.get("content", {}).get("application/json")
        if status.startswith("2") and reply is not None and not {"example", "examples"} & reply.keys():
            reply["example"] = _example(reply["schema"], schemas)


def _is_upload(schema: Document) -> bool:
    return "file" in schema.get("properties", ())


def _example(schema: Document, schemas: Document) -> Any:
    """The first example of a value: its own, or made of those of its fields; optional ones without one are left out.

    Raises:
        KeyError: a field that is required has none.
    """
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return _example(schemas[schema["$ref"].rsplit("/", 1)[1].removesuffix(FORM)], schemas)
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], schemas)
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "array":
        return [_example(schema["items"], schemas)]
    needed = schema.get("required", ())
    fields = schema["properties"].items()
    return {name: _example(field, schemas) for name, field in fields if name in needed or "examples" in field}


def _security(path: str, operation: Document) -> list[Document]:
    """The keys that an operation takes; the empty one stands for servers that ask for none."""
    if (dialect := dialect_of(path)) is not None:
        return [{}, *({name: []} for name in dialect.keys)]
    if "401" not in operation["responses"]:
        return []
    tags = operation.get("tags", ())
    keys: list[Document] = [{"bearer": []}, *({scheme.name: []} for scheme in _schemes())]
    if "models" in tags:
        return keys[:1]
    needed = {tag for part in http_parts() for tag in part.needs_key}
    return keys if needed.intersection(tags) else [{}, *keys]


def _schemes() -> Iterator[KeyScheme]:
    """Those that extras bring."""
    return (scheme for part in http_parts() for scheme in part.keys)


def _headers(status: str) -> Document:
    names = ["X-Request-ID"]
    names += ["Retry-After"] if status in ("429", "503", "529") else []
    names += ["WWW-Authenticate"] if status == "401" else []
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _set_limits(schemas: Document, settings: Settings) -> None:
    """Bounds that are settings; a model's own limits on lengths may be lower."""
    for name in ("TranslateRequest", "PosteditRequest", "SummarizeRequest"):
        fields = schemas[name]["properties"]
        _bound(fields["beam_size"], "maximum", settings.max_beam_size)
        _bound(fields["alternatives"], "maximum", settings.max_beam_size - 1)
        _bound(fields["timeout"], "maximum", settings.request_timeout)
        characters = settings.max_summary_characters if name == "SummarizeRequest" else settings.max_characters
        for field in ("q", "translation"):
            if field in fields:
                _bound(fields[field], "maxItems", settings.max_texts)
                fields[field]["description"] += f" At most {characters} characters in all."


def _bound(field: Document, name: str, value: float) -> None:
    """Put a bound where the field's own kind of value is described."""
    kinds = field.get("anyOf", [field])
    kind = next(one for one in kinds if one.get("type") in ("integer", "number", "array"))
    kind[name] = value
