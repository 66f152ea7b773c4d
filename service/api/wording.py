"""Bounds and values in errors as we word them: pydantic's findings in the words of all our other errors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

_SHOWN = 80
_BOUNDS: Mapping[str, str] = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_type": "must be a string",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must hold at least {min_length} entries",
    "too_long": "must hold at most {max_length} entries",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be {expected}",
    "extra_forbidden": "is not a known field",
    "unexpected_keyword_argument": "is not a known field",
    "missing": "is required",
}
"""By pydantic's types of errors; what is not here keeps pydantic's message."""
_EMPTY: Mapping[str, str] = {"string_too_short": "must not be empty", "too_short": "must hold at least 1 entry"}


class _Kind(str):
    """What a value is, where it is not quoted itself."""

    __slots__ = ()


def bound_of(finding: Mapping[str, Any]) -> str:
    """The bound that one of pydantic's findings says was broken, to follow the field's name."""
    try:
        kind, context = finding["type"], {name: _number(value) for name, value in finding.get("ctx", {}).items()}
        if kind in ("too_short", "too_long") and isinstance(finding["input"], str | SecretStr):
            kind = f"string_{kind}"  # of secrets pydantic counts "items"
        if kind in _EMPTY and context["min_length"] == 1:
            return _EMPTY[kind]
        return _BOUNDS[kind].format_map(context)
    except KeyError:
        return str(finding["msg"]).removeprefix("Value error, ")


def _number(value: Any) -> Any:
    """A bound as people write it: 60 and not 60.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def shown(value: Any) -> Any:
    """A value as it may be quoted in a reply: short, and never a whole text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not isinstance(value, str):
        return _kind(value)
    return value if len(value) <= _SHOWN else value[:_SHOWN] + "…"


def quoted(value: Any) -> str:
    """What ``shown`` returned, within a sentence: a string in quotes, and else as JSON writes it."""
    if isinstance(value, _Kind):
        return str(value)
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


def _kind(value: Any) -> _Kind:
    if isinstance(value, Mapping):
        return _Kind("an object" if value else "an empty object")
    if isinstance(value, list | tuple):
        return _Kind("a list" if value else "an empty list")
    return _Kind(f"a {type(value).__name__}")
