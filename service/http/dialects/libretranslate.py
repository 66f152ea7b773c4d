"""The rest of LibreTranslate's API: what its clients and its page ask for beside the routes that are ours as well.

Differences of errors for its form clients are in ``service.http.dialects.error_bodies``.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from tandem.service.api.replies import Status
from tandem.service.bundles.catalog import ServedLanguage
from tandem.service.http.dependencies import PartsDep, key_before_body
from tandem.service.http.parts import http_parts
from tandem.service.text.languages import language_name

_TYPING_PAUSE = 500
"""Milliseconds that LibreTranslate's page waits after a key before it translates."""

router = APIRouter(tags=["LibreTranslate"])


class NamedLanguage(BaseModel):
    """A language's code and English name."""

    code: str = Field(examples=["en"])
    name: str = Field(examples=["English"])


class DefaultLanguages(BaseModel):
    """What a page shows at first."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(BaseModel):
    """What LibreTranslate's clients may know about a server."""

    charLimit: int = Field(examples=[20_000], description="Characters of a request.")
    summaryCharLimit: int = Field(examples=[100_000], description="Characters of a request for summaries.")
    frontendTimeout: int = Field(
        examples=[500], description="Milliseconds after the last key before a page translates."
    )
    apiKeys: bool = Field(examples=[False], description="Whether keys mean anything here.")
    keyRequired: bool = Field(examples=[False])
    suggestions: bool = Field(
        examples=[False], description="Whether POST /suggest works: with a key, so where one is required or was sent."
    )
    filesTranslation: bool = Field(examples=[True])
    supportedFilesFormat: list[str] = Field(
        examples=[[".docx", ".html", ".srt", ".txt"]], description="File name endings."
    )
    language: DefaultLanguages


@router.get("/frontend/settings")
async def frontend_settings(request: Request, parts: PartsDep) -> FrontendSettings:
    """Limits, and what is switched on."""
    settings, known = parts.settings, parts.access.find(key_before_body(request))
    endings = sorted(ending for part in http_parts() for ending in part.file_endings)
    return FrontendSettings(
        charLimit=settings.max_characters,
        summaryCharLimit=settings.max_summary_characters,
        frontendTimeout=_TYPING_PAUSE,
        apiKeys=settings.asks_for_keys,
        keyRequired=settings.asks_for_keys,
        suggestions=settings.asks_for_keys or known is not None,
        filesTranslation=bool(endings),
        supportedFilesFormat=[f".{ending}" for ending in endings],
        language=_defaults(parts.texts.catalog.languages()),
    )


@router.head("/health", include_in_schema=False)
@router.get("/health")
async def health() -> Status:
    """The process is alive; GET /readyz says whether it can translate."""
    return Status(status="ok")


def _defaults(served: list[ServedLanguage]) -> DefaultLanguages:
    """Detection, and the first language that anything is translated into."""
    targets = sorted({target for language in served for target in language.targets})
    names = {language.code: language.name for language in served}
    target = targets[0] if targets else "en"
    return DefaultLanguages(
        source=NamedLanguage(code="auto", name="Auto Detect"),
        target=NamedLanguage(code=target, name=names.get(target) or language_name(target)),
    )
