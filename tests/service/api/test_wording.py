"""Errors of fields are worded alike, whoever found them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, ValidationError

from tandem.service.api.schemas import DetectRequest, TranslateRequest, read_object
from tandem.service.api.wording import bound_of
from tandem.service.http.error_replies import InvalidFields, invalid_fields

TEXT = {"q": "Hallo", "target": "en"}


@pytest.mark.parametrize(
    ("model", "fields", "wanted"),
    [
        (TranslateRequest, TEXT | {"max_length": 0}, "max_length: must be at least 1, but is 0"),
        (TranslateRequest, TEXT | {"timeout": 0}, "timeout: must be more than 0, but is 0"),
        (TranslateRequest, TEXT | {"details": "maybe"}, "details: must be true or false, but is 'maybe'"),
        (TranslateRequest, TEXT | {"alternatives": "many"}, "alternatives: must be a whole number, but is 'many'"),
        (TranslateRequest, TEXT | {"alternatives": 1.5}, "alternatives: must be a whole number, but is 1.5"),
        (TranslateRequest, TEXT | {"length_penalty": "x"}, "length_penalty: must be a number, but is 'x'"),
        (TranslateRequest, TEXT | {"format": "md"}, "format: must be 'text' or 'html', but is 'md'"),
        (TranslateRequest, TEXT | {"protect": [""]}, "protect.0: must not be empty, but is ''"),
        (TranslateRequest, {"q": [], "target": "en"}, "but is an empty list"),
        (TranslateRequest, {"q": None, "target": "en"}, "but is null"),
        (TranslateRequest, TEXT | {"model": "m" * 300}, "model: must have at most 200 characters, but is 300"),
        (DetectRequest, {"q": ["a"]}, "q: must be a string, but is a list"),
    ],
)
def test_bound_and_value_are_named_in_our_words(model: type[Any], fields: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ValidationError) as raised:
        read_object(model, fields, strict=False)
    error = invalid_fields(raised.value)
    assert wanted in str(error)
    assert "nput should" not in str(error) and "nput should" not in str(error.detail)


def test_values_of_our_own_checks_are_written_as_json_writes_them() -> None:
    assert str(InvalidFields.of("stream", "must be false here", True)) == "stream: must be false here, but is true"


def test_a_secret_has_characters() -> None:
    class Secrets(BaseModel):
        key: SecretStr = Field(min_length=20)

    with pytest.raises(ValidationError) as raised:
        Secrets.model_validate({"key": "short"})
    assert [bound_of(item) for item in raised.value.errors()] == ["must have at least 20 characters"]
