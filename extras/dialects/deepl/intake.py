"""Reads DeepL's requests: JSON or forms, in which lists are repeated fields, and lists of objects numbered ones
(``dictionaries[0].source_lang``, as deepl-node writes them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel
from starlette.requests import Request

from tandem.extras.dialects.deepl.schemas import DeepLFields
from tandem.service.http.intake import read_body, validate

T = TypeVar("T", bound=DeepLFields)
_NUMBERED = re.compile(r"(\w{1,50})\[(\d{1,4})\]\.(\w{1,50})")

MAX_BODY_BYTES = 128 * 1024
"""Of POST /v2/translate; DeepL's own bound, which the middleware keeps."""


async def read_request(request: Request, model: type[T]) -> T:
    """Parse and validate a request; unlike our own routes' JSON, with conversions and without unknown fields refused.

    Raises:
        HttpError: as ``service.http.intake.read_fields``.
    """
    content = await read_body(request)
    fields = content if isinstance(content, dict) else fields_of_form(content, model)
    return validate(model, fields, strict=False)


def fields_of_form(pairs: Iterable[tuple[str, Any]], model: type[BaseModel]) -> dict[str, Any]:
    """Of a field that is a list every value, of the others the last one."""
    fields: dict[str, Any] = {}
    numbered: dict[str, dict[int, dict[str, Any]]] = {}
    for name, value in pairs:
        if match := _NUMBERED.fullmatch(name):
            numbered.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
        found = model.model_fields.get(name)
        if found is None:
            continue
        if get_origin(found.annotation) in (list, tuple):
            fields.setdefault(name, []).append(value)
        else:
            fields[name] = value
    return fields | {
        name: [objects[number] for number in sorted(objects)]
        for name, objects in numbered.items()
        if name in model.model_fields
    }
