"""Requests and replies of our own routes, as pydantic models. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

MAX_OTHERS = 15
OBJECT_FIELDS = ("others", "sampling")
"""Fields that hold an object: a form has them as JSON."""


def _texts(value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return value
    raise PydanticCustomError("texts", "must be a string or a list of at least one string")


Texts = Annotated[
    str | list[str],
    PlainValidator(_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]


def _by_language(value: Any) -> Any:
    """Refuses what is no object and what has too many entries, before any of them is looked at."""
    if not isinstance(value, dict):
        raise PydanticCustomError("others", "must be an object of language code -> text")
    if len(value) > MAX_OTHERS:
        context = {"bound": MAX_OTHERS, "value": len(value)}
        raise PydanticCustomError("too_many_others", "may hold at most {bound} languages", context)
    return value


Others = Annotated[
    dict[Annotated[str, Field(max_length=35)], Texts], Field(max_length=MAX_OTHERS), BeforeValidator(_by_language)
]


def _listed(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


class SamplingFields(BaseModel):
    """Draw tokens instead of searching for the most probable ones."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    temperature: float = Field(default=1.0, ge=0.01, le=100, description="Above 1 is more varied, below 1 less.")
    top_k: int = Field(default=0, ge=0, description="Draw from the k most probable tokens; 0 = from all.")
    top_p: float = Field(default=1.0, gt=0, le=1, description="Draw from the tokens that together reach p.")
    seed: int | None = Field(default=None, ge=0, lt=1 << 63, description="Makes the draw repeatable.")


class DecodingFields(BaseModel):
    """What every decoding route takes. Fields left out have the bundle's values."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    q: Texts = Field(
        validation_alias=AliasChoices("q", "text"), description="The text or texts; `text` is an alias of `q`."
    )
    alternatives: int = Field(default=0, ge=0, description="Further hypotheses, best first; at most beam_size - 1.")
    details: bool = Field(default=False, description="Adds `model`, `usage`, `time` and `details` to the reply.")
    scores: bool = Field(default=False, description="Adds log-probabilities; implies `details`.")
    model: str | None = Field(default=None, max_length=200, description="Bundle name; see GET /models.")
    beam_size: int | None = Field(default=None, ge=1, description="Hypotheses searched at once; 1 = greedy.")
    length_penalty: float | None = Field(default=None, ge=0, le=10, description="p; the bundle fixes the form.")
    coverage_penalty: float | None = Field(default=None, ge=0, le=10, description="Weight of the coverage term.")
    min_length: int | None = Field(default=None, ge=0, description="Target tokens of a sentence, at least.")
    max_length: int | None = Field(default=None, ge=1, description="Target tokens of a sentence, at most.")
    no_repeat_ngram_size: int | None = Field(default=None, ge=0, le=100, description="No n-gram twice; 0 = off.")
    prefix: str | None = Field(default=None, max_length=1000, description="Text that the first sentence starts with.")
    sampling: SamplingFields | None = Field(default=None, description="Draw instead of search.")
    timeout: float | None = Field(default=None, gt=0, description="Seconds for the whole request; else the server's.")
    priority: Literal["interactive", "bulk"] | None = Field(default=None, description="By size where not given.")

    @property
    def texts(self) -> list[str]:
        """The texts as a list."""
        return _listed(self.q)

    @property
    def further_texts(self) -> dict[str, list[str]]:
        """By field, what belongs to each of the texts: the same in further languages, or its machine translation."""
        return {}

    @property
    def wants_details(self) -> bool:
        """Whether the reply carries the details block."""
        return self.details or self.scores


class TranslateRequest(DecodingFields):
    """Text to translate."""

    source: str = Field(max_length=35, description="Language code of the text. `auto` is not available yet.")
    target: str = Field(max_length=35, description="Language code to translate into.")
    others: Others | None = Field(
        default=None,
        description="The same text in further source languages, by language code, for models that read several at "
        "once (GET /languages lists their combinations); each a string or, where `q` is one, a list as long as `q`.",
    )
    format: Literal["text"] = Field(default="text", description="Only plain text so far.")

    @property
    def further_texts(self) -> dict[str, list[str]]:
        """The text in each further language."""
        return {f"others.{code}": _listed(texts) for code, texts in (self.others or {}).items()}


class PosteditRequest(DecodingFields):
    """A text and its machine translation, which is to be corrected."""

    translation: Texts = Field(
        description="The machine translation of `q`; a string or, where `q` is one, a list as long as `q`."
    )
    source: str | None = Field(
        default=None, max_length=35, description="Language code of the text. `auto` is not available yet."
    )
    target: str | None = Field(default=None, max_length=35, description="Language code of the translation.")

    @property
    def further_texts(self) -> dict[str, list[str]]:
        """The translations."""
        return {"translation": _listed(self.translation)}


class SummarizeRequest(DecodingFields):
    """Text to summarize."""

    language: str | None = Field(default=None, max_length=35, description="Language code of the text.")


class Usage(BaseModel):
    """What a request amounted to."""

    characters: int
    source_tokens: int
    target_tokens: int


class Time(BaseModel):
    """Seconds; of the sentence that took longest, and of the request as a whole."""

    queue: float
    encode: float
    decode: float
    total: float


class Span(BaseModel):
    """Characters `start` to `end` (exclusive)."""

    start: int
    end: int


class SentenceDetail(BaseModel):
    """One sentence: where it stands in the text sent (after Unicode NFC) and in the reply, and how sure the model is.

    The text sent is `q`, for /postedit `translation`.
    """

    source: Span
    target: Span
    score: float = Field(description="Log-probability of the whole sentence.")
    tokens: list[str]
    token_scores: list[float] | None = Field(default=None, description="Per token and for the end of the sentence.")


class TextDetail(BaseModel):
    """The sentences of one text."""

    sentences: list[SentenceDetail]


class DecodingReply(BaseModel):
    """What replies of decoding routes share. Fields that were not asked for are absent."""

    alternatives: list[str] | list[list[str]] | None = None
    details: list[TextDetail] | None = None
    model: str | None = None
    usage: Usage | None = None
    time: Time | None = None


class TranslateReply(DecodingReply):
    """A translation; a list where `q` was one."""

    translatedText: str | list[str]


class PosteditReply(DecodingReply):
    """The corrected translation; a list where `q` was one."""

    translatedText: str | list[str]


class SummarizeReply(DecodingReply):
    """A summary; a list where `q` was one."""

    summary: str | list[str]
    truncated: bool | list[bool] = Field(description="Whether the text was longer than the model takes, and was cut.")


class Combination(BaseModel):
    """Source languages that a model reads together: all of them are needed, in any order."""

    sources: list[str]
    target: str


class Language(BaseModel):
    """A source language and what it can be translated into."""

    code: str
    name: str
    targets: list[str] = Field(description="Of this language alone.")
    combinations: list[Combination] | None = Field(
        default=None, description="Together with further source languages, which `others` of POST /translate takes."
    )


class ModelInfo(BaseModel):
    """A loaded bundle."""

    name: str
    task: str
    source_languages: list[str]
    sources: int = Field(description="Texts that it reads at once: 1 of any source language, or one of each.")
    target_language: str
    architecture: str
    runtime: str
    precision: str
    licence: str
    attribution: list[str] = Field(description="Of the training text.")
    scores: list[dict[str, Any]]
    state: Literal["ready", "draining"]


class Status(BaseModel):
    """State of the process."""

    status: str


class Fault(BaseModel):
    """One bad field."""

    field: str
    message: str
    value: Any = None


class ErrorBody(BaseModel):
    """Every error of our own routes."""

    error: str = Field(description="A sentence for people.")
    code: str = Field(description="For machines.")
    detail: Any = Field(default=None, description="For 422 a list of faults, each with field, message and value.")
    request_id: str
