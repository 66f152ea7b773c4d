"""Requests and replies that browser extensions know, as pydantic models. Unknown fields are ignored: they send many.

Google: Cloud Translation Basic (v2), method translate. DeepLX: its free endpoint. Immersive Translate and KISS
Translator: the requests of their "custom" services, as their pages describe them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_MOST = 1_000  # texts; the server's own bound says less
Code = Annotated[str, Field(max_length=35, examples=["de"])]
Several = Annotated[list[str], Field(max_length=_MOST, fail_fast=True, examples=[["Wo ist der Bahnhof?"]])]


class BrowserRequest(BaseModel):
    """What they have in common."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class GoogleRequest(BrowserRequest):
    """Google's."""

    q: str | Several = Field(examples=["Wo ist der Bahnhof?"])
    target: Code
    source: Code = Field(default="", description="Empty = detected.")
    format: Literal["html", "text"] = Field(default="html", description="`html`, as Google has it by default.")
    key: str | None = Field(default=None, description="A key; also read from the query string of a JSON request.")


class GoogleQuery(GoogleRequest):
    """Google's in a query string, where `q` may stand several times."""

    q: Several


class GoogleTranslation(BaseModel):
    """One text's."""

    translatedText: str = Field(examples=["Where is the station?"])
    detectedSourceLanguage: str | None = Field(default=None, examples=["de"], description="Where none was given.")


class GoogleTranslations(BaseModel):
    """All of them."""

    translations: list[GoogleTranslation]


class GoogleReply(BaseModel):
    """Google wraps everything in `data`."""

    data: GoogleTranslations


class GoogleLanguage(BaseModel):
    """A language; its name where a `target` asks for names, which are English here."""

    language: str = Field(examples=["de"])
    name: str | None = Field(default=None, examples=["German"])


class GoogleLanguages(BaseModel):
    """Those that are translated from, or into."""

    languages: list[GoogleLanguage]


class GoogleLanguagesReply(BaseModel):
    """Google wraps everything in `data`."""

    data: GoogleLanguages


class DeepLXRequest(BrowserRequest):
    """DeepLX's."""

    text: str = Field(examples=["Wo ist der Bahnhof?"])
    source_lang: str = Field(default="auto", max_length=35, examples=["DE"])
    target_lang: Code
    tag_handling: str | None = Field(default=None, description="`html` or `xml`: markup is kept.")


class DeepLXReply(BaseModel):
    """The translation; `alternatives` is empty here."""

    code: int = 200
    id: int = Field(examples=[1_689_441_017], description="Of no meaning here.")
    data: str = Field(examples=["Where is the station?"])
    alternatives: list[str] = Field(examples=[["Where is the train station?"]])
    source_lang: str = Field(examples=["DE"])
    target_lang: str = Field(examples=["EN"])
    method: str = "Free"


class ImmersiveRequest(BrowserRequest):
    """Immersive Translate's."""

    text_list: Several
    source_lang: str = Field(default="auto", max_length=35, examples=["auto"])
    target_lang: Code


class ImmersiveTranslation(BaseModel):
    """One text's."""

    detected_source_lang: str = Field(examples=["de"])
    text: str = Field(examples=["Where is the station?"])


class ImmersiveReply(BaseModel):
    """In the request's order."""

    translations: list[ImmersiveTranslation]


class KissRequest(BrowserRequest):
    """KISS Translator's: one `text`, or several `texts`."""

    model_config = ConfigDict(extra="ignore", serialize_by_alias=True)

    text: str | None = Field(default=None, examples=["Wo ist der Bahnhof?"])
    texts: Several | None = None
    source: str = Field(default="auto", alias="from", max_length=35, examples=["auto"])
    target: Code = Field(alias="to")


class KissTranslation(BaseModel):
    """A text's translation, and the language that it was in."""

    text: str = Field(examples=["Where is the station?"])
    src: str = Field(examples=["de"])


class KissReply(BaseModel):
    """`text` and `src` for one text, `translations` for several."""

    text: str | None = None
    src: str | None = None
    translations: list[KissTranslation] | None = None
