"""Requests and replies about a translation memory, as pydantic models."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from service.api.schemas import ApiKey, example_of


class SuggestRequest(BaseModel):
    """A translation that is to take the place of the model's."""

    model_config = example_of(q="Wo ist der Bahnhof?", s="Where's the station?", source="de", target="en")

    q: str = Field(description="The text.")
    s: str = Field(description="How it is to be translated.")
    source: str = Field(max_length=35, description="Language code of `q`; `auto` = detected.")
    target: str = Field(max_length=35, description="Language code of `s`.")
    api_key: ApiKey = None


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
        examples=[0], description="Pairs that were left out: empty, or over 5,000 characters on a side."
    )


class Suggested(BaseModel):
    """What was sent is stored."""

    success: bool = Field(examples=[True])
