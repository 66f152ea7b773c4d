"""Replies of our own routes, as pydantic models. The OpenAPI document is made from them.

Records of the text service that the replies hold as they are stand in its ``results``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from tandem.service.translation.results import (
    CharacterRange,
    GlossaryTerm,
    ProtectedSpan,
    SentenceDetail,
    Time,
    Usage,
)


class TextDetail(BaseModel):
    """The sentences of one text."""

    sentences: list[SentenceDetail]


class DetectedLanguage(BaseModel):
    """The language that a text seems to be written in."""

    language: str = Field(examples=["de"])
    confidence: float = Field(examples=[98.0], ge=0, le=100, description="Percent.")


class DecodingReply(BaseModel):
    """What replies of decoding routes share. Fields that were not asked for are absent."""

    alternatives: list[str] | list[list[str]] | None = None
    details: list[TextDetail] | None = None
    model: str | None = None
    usage: Usage | None = None
    time: Time | None = None


class TranslateReply(DecodingReply):
    """A translation; a list where `q` was one."""

    translatedText: str | list[str] = Field(examples=["Where is the train station?"])
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(
        default=None, description="Only where `source` was `auto`."
    )
    via: str | list[str | None] | None = Field(
        default=None,
        description="The language that the text went through, as no model translates the pair; per text, where `q` was "
        "a list, null where one does. Absent where none went through another.",
    )
    protected: list[ProtectedSpan] | list[list[ProtectedSpan]] | None = Field(
        default=None, description="Per text what `protect` matched in it; only where `protect` was given."
    )
    glossary: list[GlossaryTerm] | list[list[GlossaryTerm]] | None = Field(
        default=None, description="Per text the glossary's terms in it; only where a glossary was given."
    )


class PosteditReply(DecodingReply):
    """The corrected translation; a list where `q` was one."""

    translatedText: str | list[str] = Field(examples=["Klicken Sie auf die Schaltfläche OK."])


class SummarizeReply(DecodingReply):
    """A summary; a list where `q` was one."""

    summary: str | list[str] = Field(examples=["a study of how"])
    truncated: bool | list[bool] = Field(
        examples=[False], description="Whether it was cut to what the model reads: only where `summary_depth` is 0."
    )
    method: Literal["model", "extract"] | list[Literal["model", "extract"]] = Field(
        examples=["model"], description="What made it: a model, or sentences of the text itself."
    )


class SentenceEvent(BaseModel):
    """A sentence of a streamed translation."""

    name: ClassVar[str] = "sentence"

    text: int = Field(description="Which of the texts, from 0.")
    sentence: int = Field(description="Which of its sentences, from 0, in the order in which they stand in it.")
    source: CharacterRange = Field(description="In the text sent, after Unicode NFC.")
    translation: str


class SummaryEvent(BaseModel):
    """A text's summary in a stream."""

    name: ClassVar[str] = "summary"

    text: int = Field(description="Which of the texts, from 0.")
    source: CharacterRange = Field(description="What of the text sent was read, after Unicode NFC.")
    summary: str


class SourceCombination(BaseModel):
    """Source languages that a model reads together: all of them are needed, in any order."""

    sources: list[str]
    target: str


class Language(BaseModel):
    """A language and what it can be translated into."""

    code: str = Field(examples=["de"])
    name: str = Field(examples=["German"])
    targets: list[str] = Field(
        examples=[["en"]], description="Of this language alone; empty where it is only translated into."
    )
    via: dict[str, str] | None = Field(
        default=None, description="Of those targets that are reached through a third language only: that language."
    )
    combinations: list[SourceCombination] | None = Field(
        default=None, description="Together with further source languages, which `others` of POST /translate takes."
    )


class Direction(BaseModel):
    """A source language and a target language."""

    source: str
    target: str


class ModelOrigin(BaseModel):
    """Where a model comes from that was not trained here."""

    form: str = Field(examples=["Hugging Face MarianMT"], description="Of the files that the bundle was made of.")
    url: str | None = Field(
        examples=["https://huggingface.co/Helsinki-NLP/opus-mt-de-en"], default=None, description="Where they are."
    )


class ModelInfo(BaseModel):
    """A loaded bundle."""

    name: str = Field(
        examples=["de-en@2"], description="With its version where it has one: `de-en@2`. Requests take it as `model`."
    )
    alias: str = Field(
        examples=["de-en"], description="Its name without the version: stands for one version, and can be switched."
    )
    current: bool = Field(examples=[True], description="Whether the alias stands for this version.")
    task: str = Field(examples=["translate"])
    source_languages: list[str] = Field(examples=[["de"]])
    sources: int = Field(
        examples=[1], description="Texts that it reads at once: 1 of any source language, or one of each."
    )
    target_language: str = Field(examples=["en"])
    pairs: list[Direction] | None = Field(
        default=None, description="Every direction, where the model translates into more than one language."
    )
    architecture: str = Field(examples=["…"])
    runtime: str = Field(examples=["onnx"])
    precision: str = Field(examples=["int8"])
    licence: str = Field(examples=["CC-BY-2.0"])
    attribution: list[str] = Field(
        examples=[["Sentences from www.manythings.org/anki and tatoeba.org"]], description="Of the training text."
    )
    origin: ModelOrigin | None = Field(default=None, description="Of an imported model.")
    scores: list[dict[str, Any]] = Field(
        examples=[[{"metric": "BLEU", "value": 41.7, "test_set": "tatoeba-de-en/test"}]]
    )
    state: Literal["ready", "resting", "draining"] = Field(
        description="resting = not in memory until it is asked for (`models_memory`); draining = being unloaded."
    )


class AbsentModel(BaseModel):
    """A bundle that is being loaded, or could not be."""

    name: str
    alias: str
    state: Literal["loading", "failed"]
    reason: str | None = Field(default=None, description="Why it could not be loaded.")


class Status(BaseModel):
    """State of the process."""

    status: str = Field(examples=["ok"])


class ErrorBody(BaseModel):
    """Every error of our own routes."""

    error: str = Field(description="A sentence for people.")
    code: str = Field(description="For machines.")
    detail: Any = Field(default=None, description="For 422 a list of faults, each with field, message and value.")
    request_id: str
