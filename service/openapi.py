"""The parts of the OpenAPI document that cannot be read off the routes: bodies in four encodings, errors, examples."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.schemas import OBJECT_FIELDS, ErrorBody, PosteditRequest, SummarizeRequest, TranslateRequest

TRANSLATE_EXAMPLES: dict[str, Any] = {
    "sentence": {"value": {"q": "Wo ist der Bahnhof?", "source": "de", "target": "en"}},
    "texts with alternatives and details": {
        "value": {
            "q": ["Guten Morgen.", "Wie geht es dir?"], "source": "de", "target": "en",
            "alternatives": 2, "beam_size": 5, "details": True,
        }
    },
    "one text in three languages": {
        "value": {
            "q": "Zwei Hunde spielen im Schnee.", "source": "de", "target": "en",
            "others": {"fr": "Deux chiens jouent dans la neige.", "cs": "Dva psi si hrají ve sněhu."},
        }
    },
}  # fmt: skip
POSTEDIT_EXAMPLES: dict[str, Any] = {
    "sentence": {
        "value": {"q": "Click the OK button.", "translation": "Klicken auf die OK Schaltfläche.", "target": "de"}
    },
    "texts with scores": {
        "value": {
            "q": ["Save the file.", "Close the window."],
            "translation": ["Speichern der Datei.", "Schließen des Fenster."],
            "scores": True,
        }
    },
}
SUMMARIZE_EXAMPLES: dict[str, Any] = {
    "abstract": {"value": {"q": "We study how ... Our experiments show that ...", "max_length": 30}},
}

_ERRORS: dict[int, tuple[str, str, str]] = {
    400: ("Malformed: broken JSON, invalid UTF-8.", "bad_request", "the request is not valid UTF-8 at byte 7"),
    404: ("Model, language or pair not served.", "pair_not_served",
          "this server does not translate en-de; pairs served: de-en"),
    413: ("Over the limit of characters or bytes.", "too_large",
          "a request may have at most 20000 characters, but this one has 100000; send it in several requests"),
    415: ("Content type not read here.", "unsupported_media_type", "content type 'text/csv' is not read here; ..."),
    422: ("A field breaks its bounds.", "invalid_field", "beam_size: must be at most 10, but is 11"),
    500: ("Failed on our side; the id is in the log.", "decoding_failed",
          "decoding failed on our side; the incident 0a1b2c3d4e5f was logged"),
    503: ("Overloaded or shutting down; see Retry-After.", "overloaded",
          "the queue is full: at most 65536 predicted tokens may wait and 65490 do; try again in 12 s"),
    504: ("The deadline passed.", "deadline",
          "the deadline passed before the text was finished; send less text or allow more time"),
}  # fmt: skip


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route, with an example each."""
    return {status: _error_response(status) for status in statuses}


def _error_response(status: int) -> dict[str, Any]:
    description, code, message = _ERRORS[status]
    example: dict[str, Any] = {"error": message, "code": code, "request_id": "5f0c7e…"}
    if status == 422:
        example["detail"] = [{"field": "beam_size", "message": "must be at most 10", "value": 11}]
    return {"model": ErrorBody, "description": description, "content": {"application/json": {"example": example}}}


def reply_example(example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route whose reply has an example."""
    return {200: {"content": {"application/json": {"example": example}}}}


def request_body(model: type[BaseModel], examples: dict[str, Any]) -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads JSON, form, multipart or query string."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content: dict[str, Any] = {"application/json": {"schema": schema, "examples": examples}}
    objects = [name for name in OBJECT_FIELDS if name in model.model_fields]
    encoding = {name: {"contentType": "application/json"} for name in objects}
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        content[kind] = {"schema": schema, "encoding": encoding}
    description = (
        "The fields as JSON or as a form; a form's fields may also stand in the query string. In a form, "
        f"{' and '.join(f'`{name}`' for name in objects)} {'are JSON strings' if objects[1:] else 'is a JSON string'}."
    )
    return {"requestBody": {"required": True, "description": description, "content": content}}


def install(app: FastAPI) -> None:
    """Make the app's document complete: the bodies' schemas stand among its components."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            template = "#/components/schemas/{model}"
            _, bodies = models_json_schema(
                [(model, "validation") for model in (TranslateRequest, PosteditRequest, SummarizeRequest)],
                ref_template=template,
            )
            schema["components"]["schemas"] |= bodies["$defs"]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way
