"""What holds for all routes in the OpenAPI document: keys, headers, errors that any request may get, limits, tags."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from service.settings import Settings

FORM = "Form"
"""Ending of the name of a body's schema as forms have it: unknown fields are ignored there, not refused."""

TAGS: list[dict[str, str]] = [
    {"name": "text", "description": "Translate, post-edit, summarize, detect languages."},
    {"name": "files", "description": "Translate documents, in the background."},
    {"name": "information", "description": "What is served."},
    {"name": "models", "description": "The loaded models; changing them takes an admin key."},
    {"name": "operations", "description": "For those who run the service."},
    {"name": "LibreTranslate", "description": "What clients of LibreTranslate ask for besides; the rest is shared."},
    {"name": "DeepL", "description": "DeepL's API, version 2, for its clients. Errors: `{message, detail?}`."},
    {"name": "DeepL glossaries", "description": "Glossaries that the server keeps, as DeepL's clients store them."},
]
_KEYS = {
    "bearer": {
        "type": "http", "scheme": "bearer",
        "description": "`Authorization: Bearer KEY`. The field `api_key` of a request does as well.",
    },
    "deepl": {
        "type": "apiKey", "in": "header", "name": "Authorization",
        "description": "`Authorization: DeepL-Auth-Key KEY`, as DeepL's clients send it.",
    },
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
_DEEPL = re.compile(r"/v[23]/")
_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
_WITH_BODY, _ALWAYS = (400, 408, 413), (500,)

Document = dict[str, Any]
Errors = Callable[..., dict[int | str, Document]]


def complete(schema: Document, settings: Settings, errors: Errors) -> Document:
    """The document with all that holds for all routes.

    Args:
        schema: as FastAPI makes it, the bodies' schemas among its components.
        settings: whose limits stand in it.
        errors: makes the responses of some statuses.
    """
    schemas = schema["components"]["schemas"]
    schema["components"] |= {"securitySchemes": _KEYS, "headers": _HEADERS}
    for path, method, operation in _operations(schema):
        if not _DEEPL.match(path):
            _add_errors(operation, method, errors)
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


def _add_errors(operation: Document, method: str, errors: Errors) -> None:
    """Any request may fail on our side, and any body may be late, too large or unreadable."""
    responses = operation["responses"]
    if _is_default(responses.get("422", {})):
        del responses["422"]
        responses |= _plain(errors(422))
    wanted = (*_WITH_BODY, *_ALWAYS) if method in ("post", "put", "patch") else _ALWAYS
    responses |= _plain(errors(*(status for status in wanted if str(status) not in responses)))
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
    if _DEEPL.match(path):
        return [{}, {"deepl": []}]
    if "401" not in operation["responses"]:
        return []
    return [{"bearer": []}] if "models" in operation.get("tags", ()) else [{}, {"bearer": []}, {"deepl": []}]


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
        for field in ("q", "translation"):
            if field in fields:
                _bound(fields[field], "maxItems", settings.max_texts)
                fields[field]["description"] += f" At most {settings.max_characters} characters in all."


def _bound(field: Document, name: str, value: float) -> None:
    """Put a bound where the field's own kind of value is described."""
    kinds = field.get("anyOf", [field])
    kind = next(one for one in kinds if one.get("type") in ("integer", "number", "array"))
    kind[name] = value
