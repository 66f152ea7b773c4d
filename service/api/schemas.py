"""Requests of our own routes, as pydantic models. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from service.text.glossary import MAX_GLOSSARY, MAX_TERM

MAX_OTHERS = 15
MAX_PROTECT = 100
OBJECT_FIELDS = ("others", "sampling", "glossary")
"""Fields that hold an object: a form has them as JSON."""
LIST_FIELDS = ("protect",)
"""Fields that hold a list of strings: a form repeats them, or has them as JSON."""


def _texts(value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        for place, text in enumerate(value):
            if not isinstance(text, str):
                raise PydanticCustomError("string_type", "must be a string", {"place": place, "value": text})
        return value
    raise PydanticCustomError("texts", "must be a string or a list of at least one string")


Texts = Annotated[
    str | list[str],
    PlainValidator(_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]


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


Others = Annotated[
    dict[Annotated[str, Field(max_length=35)], Texts],
    Field(max_length=MAX_OTHERS),
    _at_most(MAX_OTHERS, "languages", "language code -> text"),
]


Term = Annotated[str, Field(min_length=1, max_length=MAX_TERM)]
Glossary = Annotated[
    dict[Term, Term], Field(max_length=MAX_GLOSSARY), _at_most(MAX_GLOSSARY, "terms", "source term -> target term")
]


ApiKey = Annotated[
    Annotated[str, Field(max_length=512)] | None,
    Field(repr=False, description="Key of the caller, where keys are asked for; or `Authorization: Bearer …`."),
]


def _listed(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


STREAM = (
    "Sends each finished sentence as a server-sent event, and the whole reply at the end; so does "
    "`Accept: text/event-stream`. May stand in the query string of any request. Not with `html`."
)


def example_of(**fields: str | int) -> ConfigDict:
    """The example of a request that the OpenAPI document shows; invented."""
    return ConfigDict(json_schema_extra={"examples": [{**fields}]})


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
    alignments: bool = Field(
        default=False,
        description="Adds to each sentence the attention between its tokens and the words that it aligns; implies "
        "`details`.",
    )
    model: str | None = Field(default=None, max_length=200, description="Model, by alias or name; see GET /models.")
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
    api_key: ApiKey = None

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
        return self.details or self.scores or self.alignments


class TranslateRequest(DecodingFields):
    """Text to translate."""

    model_config = example_of(q="Wo ist der Bahnhof?", source="de", target="en")

    source: str = Field(
        default="auto",
        max_length=35,
        description="Language code of the text; `auto` = detected, per text.",
    )
    target: str = Field(max_length=35, description="Language code to translate into.")
    others: Others | None = Field(
        default=None,
        description="The same text in further source languages, by language code, for models that read several at "
        "once (GET /languages lists their combinations); each a string or, where `q` is one, a list as long as `q`.",
    )
    format: Literal["text", "html"] = Field(
        default="text", description="`html`: the text nodes are translated and the markup is kept."
    )
    glossary: Glossary = Field(
        default_factory=dict,
        description="Source term -> target term, enforced: the longest match counts, at word boundaries. The reply's "
        "`glossary` says which were found in the translation.",
    )
    protect: list[Term] = Field(
        default_factory=list,
        max_length=MAX_PROTECT,
        description="What is to come back as it was: `placeholders`, `urls`, `emails`, `numbers`, `regex:` and an "
        "expression in RE2's syntax, or any other string literally (after `literal:` whatever it is). The reply's "
        "`protected` says what was kept.",
    )
    pivot: bool = Field(
        default=True,
        description="Whether a pair that no model translates may go through a third language, where two do; the "
        "reply's `via` names that.",
    )
    memory: bool = Field(
        default=True,
        description="Whether sentences that the translation memory of the caller's key has are answered from it.",
    )
    lexicon: bool = Field(
        default=True,
        description="Whether the bundle's lexicon, if it has one, translates words and short phrases that stand "
        "alone, keeps names and rare nouns, and says how words in capitals are read.",
    )
    rerank: bool | None = Field(
        default=None,
        description="Whether the model of the other direction chooses among the hypotheses: better, and more than "
        "twice the work. An error where a pair has none; where not given the server's way.",
    )
    stream: bool = Field(default=False, description=STREAM)

    @property
    def further_texts(self) -> dict[str, list[str]]:
        """The text in each further language."""
        return {f"others.{code}": _listed(texts) for code, texts in (self.others or {}).items()}


class PosteditRequest(DecodingFields):
    """A text and its machine translation, which is to be corrected."""

    model_config = example_of(q="Click the OK button.", translation="Klicken auf die OK Schaltfläche.", target="de")

    translation: Texts = Field(
        description="The machine translation of `q`; a string or, where `q` is one, a list as long as `q`."
    )
    source: str | None = Field(
        default=None, max_length=35, description="Language code of the text, where several models post-edit."
    )
    target: str | None = Field(default=None, max_length=35, description="Language code of the translation.")

    @property
    def further_texts(self) -> dict[str, list[str]]:
        """The translations."""
        return {"translation": _listed(self.translation)}


class SummarizeRequest(DecodingFields):
    """Text to summarize."""

    model_config = example_of(q="We study how ... Our experiments show that ...", max_length=30)

    language: str | None = Field(
        default=None,
        max_length=35,
        description="Language code of the text; where it is not given it is detected, per text, and a text in a "
        "language that no model summarizes is refused.",
    )
    sentences: int | None = Field(
        default=None, ge=1, le=1000, description="Sentences of the summary, at most: it is cut at a sentence's end."
    )
    method: Literal["auto", "model", "extract"] = Field(
        default="auto",
        description="What summarizes: a `model`; `extract`, the sentences of the text that say most of it, at most "
        "three where `sentences` is not given, in any language; `auto`, a model where one was made for such a text, or "
        "`model` names one, and else an extract. The fields of a model's search say nothing to an extract.",
    )
    stream: bool = Field(default=False, description=STREAM)


class DetectRequest(BaseModel):
    """Text whose language is wanted."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field(
        examples=["Wo ist der Bahnhof?"],
        validation_alias=AliasChoices("q", "text"),
        description="The text; `text` is an alias of `q`.",
    )
    api_key: ApiKey = None
