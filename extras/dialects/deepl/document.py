"""What the OpenAPI document says of DeepL's routes: bodies, errors, examples."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tandem.extras.dialects.deepl.schemas import DeepLError, DocumentRequest

_ERRORS = {
    400: ("A field is missing or wrong, or asks for what is not offered.",
          "Value for 'target_lang' not supported: this server does not know the language 'XX'; pairs served: de-en"),
    403: ("No key, or one that is not valid.", "this key is not valid, or not any more"),
    404: ("No such glossary or document.", "there is no such glossary; GET /v3/glossaries lists yours"),
    408: ("The body did not arrive in time.", "the body did not arrive within 60 s; send it again"),
    413: ("Over the limit of characters or bytes.", "a request may have at most 131072 bytes in its body"),
    429: ("Too many requests; see Retry-After.", "at most 60 requests a minute; try again in 12 s"),
    456: ("The quota is used up.", "at most 500000 characters a month, of which 500000 are used"),
    500: ("Failed on our side; the id is in the log.", "decoding failed on our side; the incident was logged"),
    503: ("Not ready, shutting down, or not finished in time.", "the deadline passed before the text was finished"),
    529: ("Overloaded; see Retry-After.", "the queue is full; try again in 2 s"),
}  # fmt: skip


def deepl_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route, with an example each."""
    return {
        status: {
            "model": DeepLError,
            "description": _ERRORS[status][0],
            "content": {"application/json": {"example": {"message": _ERRORS[status][1]}}},
        }
        for status in statuses
    }


def document_form() -> dict[str, Any]:
    """The ``openapi_extra`` of the route that takes documents."""
    schema = DocumentRequest.model_json_schema()
    file = {"type": "string", "format": "binary", "description": "The document; its name says its format."}
    schema = {
        "type": "object",
        "required": ["file", *schema["required"]],
        "properties": {**schema["properties"], "file": file},
    }
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def deepl_body(model: type[BaseModel], *, forms: bool = True) -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads JSON and, unless it holds objects, forms."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    kinds = ("application/json", *(("application/x-www-form-urlencoded", "multipart/form-data") if forms else ()))
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}
