"""Bodies of our own routes: the text service's requests as senders write them, with what only a sender has.

The requests, the bounds and the meanings of their fields are described once, in ``service.translation.requests``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar

from annotated_types import DocInfo, MaxLen, doc
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError

from tandem.service.text.glossary import MAX_GLOSSARY
from tandem.service.translation.requests import (
    MAX_OTHERS,
    Code,
    PosteditTask,
    SamplingOptions,
    SummarizeTask,
    Terms,
    TranslateTask,
)
from tandem.service.translation.requests import Texts as AnyTexts

OBJECT_FIELDS = ("others", "sampling", "glossary")
"""Fields that hold an object: a form has them as JSON."""
LIST_FIELDS = ("protect",)
"""Fields that hold a list of strings: a form repeats them, or has them as JSON."""
T = TypeVar("T")


class _Object:
    """Marks a record that a body has as an object: JSON is strict, where pydantic takes records only as themselves."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        handler.resolve_ref_schema(schema)["strict"] = False  # type: ignore[index]
        return schema


def _meanings(record: type[Any]) -> dict[str, str]:
    """What the fields of a record and of its bases mean; pydantic reads no ``doc``."""
    return {
        name: about.documentation
        for base in reversed(record.__mro__)
        for name, hint in inspect.get_annotations(base, eval_str=True).items()
        for about in getattr(hint, "__metadata__", ())
        if isinstance(about, DocInfo)
    }


def _texts(value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        for place, text in enumerate(value):
            if not isinstance(text, str):
                raise PydanticCustomError("string_type", "must be a string", {"place": place, "value": text})
        return value
    raise PydanticCustomError("texts", "must be a string or a list of at least one string")


Texts: TypeAlias = Annotated[
    AnyTexts,
    PlainValidator(_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
AnyNamed: TypeAlias = Annotated[Texts, Field(validation_alias=AliasChoices("q", "text"))]


def _at_most(bound: int, entries: str, holds: str) -> BeforeValidator:
    """Refuses what is no object and what has too many entries, before any of them is looked at."""

    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            raise PydanticCustomError("no_object", "must be an object of {holds}", {"holds": holds})
        if len(value) > bound:
            context = {"bound": bound, "entries": entries, "value": len(value)}
            raise PydanticCustomError("too_many_entries", "may hold at most {bound} {entries}", context)
        return value

    return BeforeValidator(check)


ApiKey: TypeAlias = Annotated[
    Annotated[str, MaxLen(512)] | None,
    doc("Key of the caller, where keys are asked for; or `Authorization: Bearer …`."),
]
Stream: TypeAlias = Annotated[
    bool,
    doc(
        "Sends each finished sentence as a server-sent event, and the whole reply at the end; so does "
        "`Accept: text/event-stream`. May stand in the query string of any request. Not with `html`."
    ),
]


def body_config(**example: str | int) -> ConfigDict:
    """How bodies are read, strictly, and what the OpenAPI document says of them: meanings, and an invented example."""

    def describe(schema: dict[str, Any], record: type[Any]) -> None:
        for name, meaning in _meanings(record).items():
            schema["properties"][name]["description"] = meaning
        if example:
            schema["examples"] = [{**example}]

    return ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, json_schema_extra=describe)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingFields(SamplingOptions):
    """Draw tokens instead of searching for the most probable ones."""

    __pydantic_config__ = body_config()


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateRequest(TranslateTask):
    """Text to translate."""

    __pydantic_config__ = body_config(q="Wo ist der Bahnhof?", source="de", target="en")

    q: AnyNamed
    sampling: Annotated[SamplingFields, _Object()] | None = None
    others: (
        Annotated[dict[Code, Texts], MaxLen(MAX_OTHERS), _at_most(MAX_OTHERS, "languages", "language code -> text")]
        | None
    ) = None
    glossary: Annotated[Terms, _at_most(MAX_GLOSSARY, "terms", "source term -> target term")] = field(
        default_factory=dict
    )
    stream: Stream = False
    api_key: ApiKey = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteditRequest(PosteditTask):
    """A text and its machine translation, which is to be corrected."""

    __pydantic_config__ = body_config(
        q="Click the OK button.", translation="Klicken auf die OK Schaltfläche.", target="de"
    )

    q: AnyNamed
    sampling: Annotated[SamplingFields, _Object()] | None = None
    translation: Texts
    api_key: ApiKey = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeRequest(SummarizeTask):
    """Text to summarize."""

    __pydantic_config__ = body_config(q="We study how ... Our experiments show that ...", max_length=30)

    q: AnyNamed
    sampling: Annotated[SamplingFields, _Object()] | None = None
    stream: Stream = False
    api_key: ApiKey = field(default=None, repr=False)


DecodingFields: TypeAlias = TranslateRequest | PosteditRequest | SummarizeRequest
"""What every decoding route takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectRequest:
    """Text whose language is wanted."""

    __pydantic_config__ = body_config()

    q: Annotated[
        str,
        Field(validation_alias=AliasChoices("q", "text"), examples=["Wo ist der Bahnhof?"]),
        doc("The text; `text` is an alias of `q`."),
    ]
    api_key: ApiKey = field(default=None, repr=False)


def adapter_of(body: type[T]) -> TypeAdapter[T]:
    """What reads a body, and describes it: a record of ours, or a dialect's model."""
    return _known(body)[0]  # type: ignore[arg-type]  # mypy takes no class for hashable


def names_of(body: type[Any]) -> frozenset[str]:
    """The fields that a body may have."""
    return _known(body)[1]  # type: ignore[arg-type]


@cache
def _known(body: type[Any]) -> tuple[TypeAdapter[Any], frozenset[str]]:
    """A body's adapter, and the names of its fields."""
    if is_dataclass(body):
        return TypeAdapter(Annotated[body, _Object()]), frozenset(  # type: ignore[arg-type]
            one.name for one in fields(body)
        )
    assert issubclass(body, BaseModel)
    return TypeAdapter(body), frozenset(body.model_fields)


def read_object(body: type[T], given: Mapping[str, Any], *, strict: bool) -> T:
    """A body of an object's fields; where not ``strict``, with conversions. Raises pydantic's ValidationError."""
    if strict and is_dataclass(body):  # which is strict by its configuration, but for what ``_Object`` marks
        return adapter_of(body).validate_python(given)
    return adapter_of(body).validate_python(given, strict=strict)
