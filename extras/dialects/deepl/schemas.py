"""Requests and replies of DeepL's API, as pydantic models. Unknown fields are ignored, as DeepL does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

MAX_TAGS = 100
MAX_GLOSSARIES = 5
_KEY = "0CB0054F1C132C1625B392EADDA41CB754A742822F6877173029A6C487E7F60A"


def _absent_if_empty(value: Any) -> Any:
    """Forms say `field=` for a field that is not set."""
    return None if value == "" else value


def _listed(value: Any) -> Any:
    """One text is a list of one."""
    return [value] if isinstance(value, str) else value


def _names(value: Any) -> Any:
    """Names in a list, or in one string with commas between them, as forms have them."""
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise PydanticCustomError("names", "must be a list of names, or names with commas between them")
    return tuple(name.strip() for part in parts for name in part.split(",") if name.strip())


def _as_text(value: Any) -> Any:
    """JSON clients write 0 and 1 as numbers, too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _absent_if_empty(value)


def _in_lower_case(value: Any) -> Any:
    """DeepL takes its words in any case."""
    return _absent_if_empty(value.lower() if isinstance(value, str) else value)


Language = Annotated[str, Field(min_length=1, max_length=35)]
Optional = BeforeValidator(_absent_if_empty)
Names = Annotated[tuple[str, ...], BeforeValidator(_names), Field(max_length=MAX_TAGS)]
Identifier = Annotated[Annotated[str, Field(max_length=200)] | None, Optional]
SplitSentences = Literal["0", "1", "nonewlines"]
Formality = Annotated[
    Literal["default", "more", "less", "prefer_more", "prefer_less"] | None, BeforeValidator(_in_lower_case)
]
ModelType = Annotated[
    Literal["quality_optimized", "prefer_quality_optimized", "latency_optimized"] | None,
    BeforeValidator(_in_lower_case),
]
Ignored = Annotated[Any, Optional]
Resource = Literal[
    "translate_text", "translate_document", "glossary", "voice", "write", "style_rules", "translation_memory"
]


class DeepLFields(BaseModel):
    """What all of DeepL's requests share."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    auth_key: Annotated[Annotated[str, Field(max_length=512)] | None, Optional] = Field(
        default=None, repr=False, description="Key; or `Authorization: DeepL-Auth-Key …`."
    )


class StyleFields(DeepLFields):
    """What steers a translation, and changes nothing here: the header `X-Tandem-Notice` says so, each time."""

    formality: Formality = Field(default=None, description="Taken, without effect: no model here has it.")
    style_id: Ignored = Field(default=None, description="Taken, without effect: there are no style rules here.")
    style: Ignored = Field(default=None, description="As `style_id`.")
    translation_memory_id: Ignored = Field(
        default=None, description="Taken, without effect: a key has one memory, which is always looked at."
    )


class DeepLTranslateRequest(StyleFields):
    """Texts to translate, as DeepL's clients send them."""

    text: Annotated[list[str], Field(fail_fast=True), BeforeValidator(_listed)] = Field(
        examples=[["Guten Morgen.", "Wie geht es dir?"]], min_length=1, description="A form repeats it."
    )
    target_lang: Language = Field(
        examples=["EN-GB"], description="`DE`, `EN-GB`, `PT-BR` ...; see GET /v2/languages?type=target."
    )
    source_lang: Annotated[Language | None, Optional] = Field(
        examples=["DE"],
        default=None,
        description="Left out = detected per text: a language that is not served is taken for the likeliest that is.",
    )
    split_sentences: Annotated[SplitSentences | None, BeforeValidator(_as_text)] = Field(
        default=None,
        description="`0`: a text is one sentence; `1`: split at punctuation and line breaks; `nonewlines`: at "
        "punctuation only. Left out: `1`, and `nonewlines` for HTML.",
    )
    preserve_formatting: Annotated[bool | None, Optional] = Field(
        default=None, description="Sentences begin and end as they do in the text: their case and punctuation."
    )
    tag_handling: Annotated[Literal["xml", "html"] | None, Optional] = Field(default=None)
    tag_handling_version: Annotated[Literal["v1", "v2"] | None, Optional] = Field(
        default=None, description="Both mean the one way there is here."
    )
    outline_detection: Annotated[bool | None, Optional] = Field(
        default=None, description="False: XML elements split sentences only where `splitting_tags` names them."
    )
    splitting_tags: Names = Field(default=(), description="XML elements that split sentences.")
    non_splitting_tags: Names = Field(default=(), description="XML elements that never split sentences.")
    ignore_tags: Names = Field(default=(), description="XML elements whose text is not translated.")
    glossary_id: Identifier = Field(default=None, description="A stored glossary; needs `source_lang`.")
    glossary_ids: Names = Field(
        default=(), max_length=MAX_GLOSSARIES, description="Several, of which the first with a term counts."
    )
    model_type: ModelType = Field(
        default=None,
        description="For quality the model of the other direction, where it is loaded, chooses among the hypotheses.",
    )
    show_billed_characters: Annotated[bool | None, Optional] = Field(default=None, description="They are always shown.")
    context: Ignored = Field(default=None, description="Taken, without effect: no model here reads it.")
    custom_instructions: Ignored = Field(
        default=None, description="Taken, without effect: no model here follows instructions."
    )


class DocumentRequest(StyleFields):
    """A document to translate: the fields beside the file."""

    target_lang: Language = Field(examples=["EN-GB"])
    source_lang: Annotated[Language | None, Optional] = Field(
        default=None, description="Left out = detected, for the whole document."
    )
    filename: Annotated[Annotated[str, Field(max_length=1_000)] | None, Optional] = Field(
        default=None, description="Instead of the file's own name."
    )
    output_format: Annotated[Annotated[str, Field(max_length=20)] | None, Optional] = Field(
        default=None, description="Must be that of the document, where it is given."
    )
    glossary_id: Identifier = Field(default=None, description="A stored glossary; needs `source_lang`.")
    glossary_ids: Names = Field(default=(), max_length=MAX_GLOSSARIES, description="Several.")


class DocumentKey(DeepLFields):
    """What opens a document."""

    document_key: str = Field(max_length=200, examples=[_KEY])


class DocumentHandle(BaseModel):
    """What a document is asked for with."""

    document_id: str = Field(examples=["04DE5AD98A02647D83285A36021911C6"])
    document_key: str = Field(examples=[_KEY])


class DocumentStatus(BaseModel):
    """How far a document is."""

    document_id: str = Field(examples=["04DE5AD98A02647D83285A36021911C6"])
    status: Literal["queued", "translating", "done", "error"] = Field(examples=["done"])
    seconds_remaining: int | None = Field(default=None, description="A guess, by how long it took so far.")
    billed_characters: int | None = Field(default=None, examples=[1337], description="Once it is done.")
    error_message: str | None = Field(default=None, description="Of an error.")


class LanguagesRequest(DeepLFields):
    """Which languages to list."""

    type: Annotated[Literal["source", "target"] | None, Optional] = Field(default=None)


class DeepLLanguage(BaseModel):
    """A language of GET /v2/languages."""

    language: str = Field(examples=["DE"])
    name: str = Field(examples=["German"])
    supports_formality: bool | None = Field(default=None, description="Of targets; no model here has it.")


class FeatureStatus(BaseModel):
    """That a language has a feature."""

    status: Literal["stable"] = Field(default="stable", examples=["stable"])


class LanguageSupport(BaseModel):
    """A language of GET /v3/languages."""

    lang: str = Field(examples=["de"])
    name: str = Field(examples=["German"])
    status: Literal["stable"] = Field(default="stable", examples=["stable"])
    usable_as_source: bool = Field(examples=[True])
    usable_as_target: bool = Field(examples=[True])
    features: dict[str, FeatureStatus] = Field(examples=[{"glossary": {"status": "stable"}}])


class ResourceFeature(BaseModel):
    """A feature of a resource, and which languages of a pair must have it."""

    name: str = Field(examples=["glossary"])
    needs_source_support: bool | None = Field(default=None, examples=[True])
    needs_target_support: bool | None = Field(default=None, examples=[True])


class LanguageResource(BaseModel):
    """A part of the API that languages are asked for."""

    name: str = Field(examples=["translate_text"])
    features: list[ResourceFeature]


class DeepLTranslation(BaseModel):
    """One translated text."""

    detected_source_language: str = Field(examples=["DE"])
    text: str = Field(examples=["Good morning."])
    billed_characters: int = Field(examples=[13])
    model_type_used: str | None = Field(default=None, description="Where `model_type` was given.")


class DeepLTranslateReply(BaseModel):
    """The translations, in the order of the texts."""

    translations: list[DeepLTranslation]


class DeepLUsage(BaseModel):
    """Characters of the caller's quota."""

    character_count: int = Field(examples=[4711])
    character_limit: int = Field(examples=[500_000], description="1000000000000 where there is no limit.")


class DeepLError(BaseModel):
    """Every error of DeepL's API."""

    message: str
    detail: str | None = None


class LanguagePair(BaseModel):
    """A pair for which a glossary can be stored."""

    source_lang: str = Field(examples=["de"])
    target_lang: str = Field(examples=["en"])


class LanguagePairs(BaseModel):
    """Pairs for which glossaries can be stored."""

    supported_languages: list[LanguagePair]


class DictionaryFields(DeepLFields):
    """The terms of one language pair."""

    source_lang: Language = Field(examples=["de"])
    target_lang: Language = Field(examples=["en"])
    entries: str = Field(examples=["Bahnsteig\tplatform\nGleis\ttrack"], description="Terms, one pair on a line.")
    entries_format: Literal["tsv", "csv"] = "tsv"


class GlossaryRequest(DictionaryFields):
    """A new glossary of one language pair."""

    name: str = Field(examples=["Railway"])


class MultilingualGlossaryRequest(DeepLFields):
    """A new glossary of several language pairs."""

    name: str = Field(examples=["Railway"])
    dictionaries: Annotated[list[DictionaryFields], Field(fail_fast=True)]


class GlossaryChange(DeepLFields):
    """A glossary's new name, and terms that it gets."""

    name: str | None = Field(default=None, examples=["Trains"])
    dictionaries: Annotated[list[DictionaryFields], Field(fail_fast=True)] = Field(default=[])


class DeepLGlossary(BaseModel):
    """A glossary of one language pair."""

    glossary_id: str = Field(examples=["def3a26b-3e84-45b3-84ae-0c0aaf3525f7"])
    name: str = Field(examples=["Railway"])
    ready: bool = Field(examples=[True])
    source_lang: str = Field(examples=["de"])
    target_lang: str = Field(examples=["en"])
    creation_time: str = Field(examples=["2030-12-31T09:30:00.000000+00:00"])
    entry_count: int = Field(examples=[2])


class DeepLGlossaries(BaseModel):
    """The caller's glossaries of one language pair."""

    glossaries: list[DeepLGlossary]


class DictionaryInfo(LanguagePair):
    """The size of a dictionary."""

    entry_count: int = Field(examples=[2])


class MultilingualGlossary(BaseModel):
    """A glossary of any number of language pairs."""

    glossary_id: str = Field(examples=["def3a26b-3e84-45b3-84ae-0c0aaf3525f7"])
    name: str = Field(examples=["Railway"])
    dictionaries: list[DictionaryInfo]
    creation_time: str = Field(examples=["2030-12-31T09:30:00.000000+00:00"])


class MultilingualGlossaries(BaseModel):
    """The caller's glossaries."""

    glossaries: list[MultilingualGlossary]


class DictionaryEntries(LanguagePair):
    """The terms of one language pair."""

    entries: str = Field(examples=["Gleis\ttrack"])
    entries_format: Literal["tsv"] = Field(default="tsv", examples=["tsv"])


class GlossaryEntries(BaseModel):
    """The dictionary of a language pair, in a list of one."""

    dictionaries: list[DictionaryEntries]
