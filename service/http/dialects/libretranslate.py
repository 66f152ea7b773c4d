"""The rest of LibreTranslate's API: what its clients and its page ask for beside the routes that are ours as well.

Differences of errors for its form clients are in ``service.http.dialects.errors``.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from service.api.replies import Status
from service.api.schemas import SuggestRequest
from service.bundles.catalog import ServedLanguage
from service.http.credentials import key_before_body
from service.http.dependencies import PartsDep, fields_of
from service.http.openapi import error_responses, request_body
from service.http.ports import http_parts
from service.http.routes.memory import memory_caller
from service.storage.memory import Correction
from service.text.languages import language_name
from service.translation.requests import AUTO

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


class Suggested(BaseModel):
    """What was sent is stored."""

    success: bool = Field(examples=[True])


@router.get("/frontend/settings")
async def frontend_settings(request: Request, parts: PartsDep) -> FrontendSettings:
    """Limits, and what is switched on."""
    settings, known = parts.settings, parts.access.find(key_before_body(request))
    endings = sorted(ending for part in http_parts() for ending in part.file_endings)
    return FrontendSettings(
        charLimit=settings.max_characters,
        summaryCharLimit=settings.max_summary_characters,
        frontendTimeout=_TYPING_PAUSE,
        apiKeys=settings.require_key,
        keyRequired=settings.require_key,
        suggestions=settings.require_key or known is not None,
        filesTranslation=bool(endings),
        supportedFilesFormat=[f".{ending}" for ending in endings],
        language=_defaults(parts.texts.catalog.languages()),
    )


@router.post(
    "/suggest",
    tags=["memory"],
    responses=error_responses(400, 401, 403, 413, 415, 422, 429, 500, 503),
    openapi_extra=request_body(SuggestRequest),
)
async def suggest(
    request: Request, fields: Annotated[SuggestRequest, Depends(fields_of(SuggestRequest))], parts: PartsDep
) -> Suggested:
    """Store how a text is to be translated, in the translation memory of the caller's key, which is needed.

    Where text and translation have equally many sentences, each becomes an entry: translations are asked for sentence
    by sentence. One that is there already takes the new translation. Models learn nothing from it by themselves.
    """
    caller = await memory_caller(request, parts, fields.api_key)
    parts.texts.detector.check(fields.q)

    def store() -> None:
        source = parts.texts.detector.detect(fields.q)[0].language if fields.source.lower() == AUTO else fields.source
        parts.memory.add(caller.name, Correction.of(source, fields.target, fields.q, fields.s).sentences())

    await asyncio.to_thread(store)
    return Suggested(success=True)


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
