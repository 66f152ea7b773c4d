"""``POST /language/translate/v2``, ``/deeplx/translate``, ``/imme`` and ``/kiss``."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel

from tandem.extras.dialects.browser.schemas import (
    DeepLXReply,
    DeepLXRequest,
    GoogleLanguage,
    GoogleLanguages,
    GoogleLanguagesReply,
    GoogleQuery,
    GoogleReply,
    GoogleRequest,
    GoogleTranslation,
    GoogleTranslations,
    ImmersiveReply,
    ImmersiveRequest,
    ImmersiveTranslation,
    KissReply,
    KissRequest,
    KissTranslation,
)
from tandem.extras.dialects.browser.wording import STATUSES, deeplx_worded, google_worded, worded_responses
from tandem.service.http.dependencies import (
    Parts,
    PartsDep,
    caller_of,
    context_of,
    counted_caller,
    fields_of,
    memory_of,
    note_priority,
    sender_of,
)
from tandem.service.http.error_replies import InvalidFields
from tandem.service.http.openapi import error_responses
from tandem.service.text.languages import language_name
from tandem.service.translation.requests import AUTO, TranslateTask, priority_of

_GOOGLE = worded_responses(google_worded)
_NUMBERS = 10**10
Fields = TypeVar("Fields", bound=BaseModel)

router = APIRouter(tags=["browser"])


class Answer(NamedTuple):
    """A text's translation, and the language that it is in."""

    text: str
    language: str


def read(model: type[Fields]) -> Any:
    """A dependency that reads a request's fields."""
    return Depends(fields_of(model))


def described(model: type[BaseModel]) -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads such a body."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/language/translate/v2",
    response_model_exclude_none=True,
    responses=_GOOGLE,
    openapi_extra=described(GoogleRequest),
)
async def google(
    request: Request, fields: Annotated[GoogleRequest, read(GoogleRequest)], parts: PartsDep
) -> GoogleReply:
    """Translate texts as Google's API (v2) does. The key may be in `key`, of the body or the query string."""
    key = fields.key or request.query_params.get("key")
    texts = [fields.q] if isinstance(fields.q, str) else fields.q
    html = fields.format == "html"
    answers = await answered(request, parts, texts, fields.source, fields.target, key, html=html)
    found = [
        GoogleTranslation(translatedText=one.text, detectedSourceLanguage=None if fields.source else one.language)
        for one in answers
    ]
    return GoogleReply(data=GoogleTranslations(translations=found))


@router.get("/language/translate/v2", response_model_exclude_none=True, responses=_GOOGLE)
async def google_in_the_address(
    request: Request, fields: Annotated[GoogleQuery, Query()], parts: PartsDep
) -> GoogleReply:
    """The same from the address, for a text that has room there."""
    return await google(request, fields, parts)


@router.get("/language/translate/v2/languages", response_model_exclude_none=True, responses=_GOOGLE)
async def google_languages(
    request: Request,
    parts: PartsDep,
    target: Annotated[str, Query(max_length=35, description="Where it is given, languages have names.")] = "",
    key: Annotated[str | None, Query(max_length=200)] = None,
) -> GoogleLanguagesReply:
    """Languages that are translated from, or into."""
    await counted_caller(request, parts.access, key)
    served = parts.texts.catalog.languages()
    codes = sorted({code for one in served for code in (one.code, *one.targets)})
    languages = [GoogleLanguage(language=code, name=language_name(code) if target else None) for code in codes]
    return GoogleLanguagesReply(data=GoogleLanguages(languages=languages))


@router.post("/deeplx/translate", responses=worded_responses(deeplx_worded), openapi_extra=described(DeepLXRequest))
async def deeplx(
    request: Request, fields: Annotated[DeepLXRequest, read(DeepLXRequest)], parts: PartsDep
) -> DeepLXReply:
    """Translate a text as DeepLX does. The key may be `token` in the query string."""
    html = fields.tag_handling in ("html", "xml")
    key = request.query_params.get("token")
    source, target = fields.source_lang, fields.target_lang
    (one,) = await answered(request, parts, [fields.text], source, target, key, html=html)
    return DeepLXReply(
        id=secrets.randbelow(_NUMBERS),
        data=one.text,
        alternatives=[],
        source_lang=one.language.upper(),
        target_lang=target.upper(),
    )


@router.post("/imme", responses=error_responses(*STATUSES), openapi_extra=described(ImmersiveRequest))
async def immersive(
    request: Request, fields: Annotated[ImmersiveRequest, read(ImmersiveRequest)], parts: PartsDep
) -> ImmersiveReply:
    """Translate texts for Immersive Translate's custom service. The key may be `token` in the query string."""
    key = request.query_params.get("token")
    answers = await answered(request, parts, fields.text_list, fields.source_lang, fields.target_lang, key)
    return ImmersiveReply(
        translations=[ImmersiveTranslation(detected_source_lang=one.language, text=one.text) for one in answers]
    )


@router.post(
    "/kiss",
    response_model_exclude_none=True,
    responses=error_responses(*STATUSES),
    openapi_extra=described(KissRequest),
)
async def kiss(request: Request, fields: Annotated[KissRequest, read(KissRequest)], parts: PartsDep) -> KissReply:
    """Translate a text or several for KISS Translator's custom service, whose key is a bearer token."""
    if fields.text is None and fields.texts is None:
        raise InvalidFields.missing("text", "is required, or `texts`")
    texts = fields.texts if fields.texts is not None else [fields.text or ""]
    answers = await answered(request, parts, texts, fields.source, fields.target, None)
    found = [KissTranslation(text=one.text, src=one.language) for one in answers]
    return (
        KissReply(translations=found) if fields.texts is not None else KissReply(text=found[0].text, src=found[0].src)
    )


async def answered(
    request: Request,
    parts: Parts,
    texts: Sequence[str],
    source: str,
    target: str,
    key: str | None,
    *,
    html: bool = False,
) -> list[Answer]:
    """The translations of texts; a page's pieces in languages that are not served are taken for the likeliest."""
    caller = caller_of(request, parts.access, key)
    characters = sum(map(len, texts))
    note_priority(request, priority_of(characters, None, parts.settings.bulk_characters))
    named = source.lower() or AUTO
    task = TranslateTask(q=list(texts), source=named, target=target, format="html" if html else "text")
    context = context_of(sender_of(request), recall=memory_of(parts, caller.name), likeliest=True)
    async with parts.access.charged(caller, characters):
        result = await parts.texts.translate(task, context)
    languages = [guess.language for guess in result.guesses] if named == AUTO else [source] * len(texts)
    return [Answer(one.text, code) for one, code in zip(result.texts, languages, strict=True)]
