"""Requests and replies about a translation memory, as pydantic models."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from annotated_types import doc
from pydantic import BaseModel, Field

from tandem.service.api.schemas import ApiKey, body_config
from tandem.service.translation.requests import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestRequest:
    """A translation that is to take the place of the model's."""

    __pydantic_config__ = body_config(q="Wo ist der Bahnhof?", s="Where's the station?", source="de", target="en") | {
        "extra": "ignore"
    }  # LibreTranslate has fields that are not read here

    q: Annotated[str, doc("The text.")]
    s: Annotated[str, doc("How it is to be translated.")]
    source: Annotated[Code, doc("Language code of `q`; `auto` = detected.")]
    target: Annotated[Code, doc("Language code of `s`.")]
    api_key: ApiKey = field(default=None, repr=False)


class RememberedSentence(BaseModel):
    """An entry of a translation memory."""

    id: str = Field(examples=["0b3f1c52-8d7e-4a35-9c2f-6f1f5a0c9d11"])
    source: str = Field(examples=["de"])
    target: str = Field(examples=["en"])
    text: str = Field(examples=["Wo ist der Bahnhof?"])
    translation: str = Field(examples=["Where is the station, please?"])
    changed: datetime = Field(examples=["2030-01-31T12:00:00Z"])


class MemoryPage(BaseModel):
    """Some entries, those that were changed last first, and how many there are in all."""

    entries: list[RememberedSentence]
    total: int = Field(examples=[1])


class MemoryImport(BaseModel):
    """What came of a TMX."""

    stored: int = Field(examples=[2], description="Pairs that are entries now.")
    replaced: int = Field(examples=[0], description="Of these, those that took the place of an entry.")
    repeated: int = Field(examples=[0], description="Pairs in whose place a later one of the same text was stored.")
    skipped: int = Field(
        examples=[0],
        description="Units that have no text in one of the languages, and pairs that were left out: empty, over 5,000 "
        "characters on a side, or in a language that is not known here.",
    )


class Suggested(BaseModel):
    """What was sent is stored."""

    success: bool = Field(examples=[True])
