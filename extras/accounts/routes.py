"""The caller's translation memory: ``GET /memory``, ``DELETE /memory/{id}``, and TMX in and out.

``POST /suggest`` adds to it and ``POST /translate`` answers from it.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Collection, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from tandem.extras.accounts.memory import Correction, TranslationMemory
from tandem.extras.accounts.schemas import MemoryImport, MemoryPage, RememberedSentence, Suggested, SuggestRequest
from tandem.extras.accounts.settings import AccountSettings
from tandem.extras.shared.tmx import TmxError, TmxPair, read_units, write_tmx
from tandem.models.command import installed_version
from tandem.service.callers import ANONYMOUS, Caller
from tandem.service.errors import InvalidOption, LanguageNotServed
from tandem.service.http.dependencies import Parts, PartsDep, caller_of, fields_of
from tandem.service.http.error_replies import BadRequest, HttpError
from tandem.service.http.openapi import error_responses, request_body
from tandem.service.http.parts import BodyBounds
from tandem.service.settings import Settings
from tandem.service.translation.requests import AUTO

_TMX = "application/x-tmx+xml"
_EXAMPLE = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">…</tmx>'
_ERRORS = (400, 401, 403, 429, 500, 503)
MAX_TMX_BYTES = 32 << 20


def body_bounds(settings: Settings) -> BodyBounds:
    """Of a TMX that is sent."""
    return BodyBounds(large=(re.compile(r"/memory\.tmx"), max(MAX_TMX_BYTES, settings.max_body_bytes)))


async def memory_caller(request: Request, parts: Parts, api_key: str | None = None) -> Caller:
    """Whose memory a request is about; the request is counted.

    Raises:
        HttpError: 403, it has no key.
        KeyMissing, KeyInvalid, RateLimited, LimitsUnavailable: see ``Access``.
    """
    caller = caller_of(request, parts.access, api_key)
    if caller.name == ANONYMOUS:
        message = "corrections are kept per key, and this request has none; send a key (`tandem keys add` makes them)"
        raise HttpError(403, "key_needed", message)
    await parts.access.charge(caller, 0)
    return caller


async def _caller(request: Request, parts: PartsDep) -> Caller:
    return await memory_caller(request, parts)


CallerDep = Annotated[Caller, Depends(_caller)]
Language = Annotated[str, Query(max_length=35)]

router = APIRouter(tags=["memory"], responses=error_responses(*_ERRORS))
suggestions = APIRouter(tags=["LibreTranslate"])


@router.get("/memory")
def entries(
    caller: CallerDep,
    parts: PartsDep,
    source: Language = "",
    target: Language = "",
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> MemoryPage:
    """The entries of the caller's memory, those that were changed last first; of one language pair, or of all."""
    found = parts.resource(TranslationMemory).entries(caller.name, source, target, offset, limit)
    listed = [RememberedSentence.model_validate(entry, from_attributes=True) for entry in found]
    return MemoryPage(entries=listed, total=parts.resource(TranslationMemory).count(caller.name, source, target))


@router.delete("/memory/{id}", status_code=204, responses=error_responses(404))
def delete(identifier: Annotated[str, Path(alias="id", max_length=64)], caller: CallerDep, parts: PartsDep) -> None:
    """Delete an entry."""
    parts.resource(TranslationMemory).delete(caller.name, identifier)


@router.get("/memory.tmx", response_class=Response, responses={200: {"content": {_TMX: {"example": _EXAMPLE}}}})
def export(caller: CallerDep, parts: PartsDep, source: Language = "", target: Language = "") -> Response:
    """The caller's memory as TMX 1.4, of one language pair or of all: other tools read it, and `tandem new` does."""
    found = parts.resource(TranslationMemory).entries(caller.name, source, target)
    pairs = ((TmxPair(one.source, one.target, one.text, one.translation), one.changed) for one in found)
    name = {"Content-Disposition": 'attachment; filename="memory.tmx"'}
    return Response("".join(write_tmx(pairs, installed_version())), media_type=_TMX, headers=name)


@router.post(
    "/memory.tmx",
    responses=error_responses(413),
    openapi_extra={
        "requestBody": {"required": True, "content": {_TMX: {"schema": {"type": "string", "examples": [_EXAMPLE]}}}}
    },
)
async def add(
    request: Request, caller: CallerDep, parts: PartsDep, source: Language = "", target: Language = ""
) -> MemoryImport:
    """Add a TMX to the caller's memory, all of it or, where something is refused, nothing.

    Each pair of texts becomes an entry as it is, with inline codes left out. `source` is the texts' language where the
    file names none; with `target` only the translations into that language are taken.
    """
    body = await request.body()
    return await asyncio.to_thread(_add, parts, caller.name, body, source, target)


@suggestions.post(
    "/suggest",
    tags=["memory"],
    responses=error_responses(400, 401, 403, 404, 413, 415, 422, 429, 500, 503),
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
        correction = Correction.of(source, fields.target, fields.q, fields.s)
        correction.check_languages(_served(parts))
        parts.resource(TranslationMemory).add(caller.name, correction.sentences())

    await asyncio.to_thread(store)
    return Suggested(success=True)


def _add(parts: Parts, owner: str, body: bytes, source: str, target: str) -> MemoryImport:
    bound = parts.settings.part(AccountSettings).max_memory_entries
    corrections, repeated, skipped = _read(body, source, target, bound, _served(parts))
    replaced = parts.resource(TranslationMemory).add(owner, corrections)
    return MemoryImport(stored=len(corrections), replaced=replaced, repeated=repeated, skipped=skipped)


def _read(
    body: bytes, source: str, target: str, bound: int, served: Sequence[str]
) -> tuple[Collection[Correction], int, int]:
    """The pairs of a TMX that can be entries, how many of these are repeated, how many cannot. Raises BadRequest.

    A unit without a pair counts as one that cannot.
    """
    corrections: dict[tuple[str, str, str], Correction] = {}
    repeated = skipped = 0
    try:
        for unit in read_units(io.BytesIO(body), source, target):
            skipped += not unit
            for pair in unit:
                correction = _correction(pair, served)
                if correction is None:
                    skipped += 1
                    continue
                key = correction.source, correction.target, correction.matched
                repeated += key in corrections
                corrections[key] = correction
                if len(corrections) > bound:
                    message = f"a TMX may hold at most {bound} pairs here, and this one has more"
                    raise BadRequest(message, {"bound": bound})
    except TmxError as error:
        raise BadRequest(str(error)) from error
    return corrections.values(), repeated, skipped


def _correction(pair: TmxPair, served: Sequence[str]) -> Correction | None:
    """What is to be stored of a pair; None where it cannot be."""
    try:
        correction = Correction.of(*pair)
        correction.check_languages(served)
    except (InvalidOption, LanguageNotServed):
        return None
    return correction


def _served(parts: Parts) -> list[str]:
    """The languages that models here read or write."""
    return [language.code for language in parts.texts.catalog.languages()]
