"""DeepL's routes for texts: ``/v2/translate``, ``/v2/languages``, ``/v2/usage`` and ``/v2/glossary-language-pairs``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response

from tandem.extras.dialects.deepl.document import deepl_body, deepl_errors
from tandem.extras.dialects.deepl.intake import read_request
from tandem.extras.dialects.deepl.schemas import (
    DeepLFields,
    DeepLLanguage,
    DeepLTranslateReply,
    DeepLTranslateRequest,
    DeepLUsage,
    FeatureStatus,
    LanguagePair,
    LanguagePairs,
    LanguageResource,
    LanguagesRequest,
    LanguageSupport,
    Resource,
    ResourceFeature,
)
from tandem.extras.dialects.deepl.translate import NOTICE, translate
from tandem.service.callers import Caller
from tandem.service.http.dependencies import (
    Parts,
    PartsDep,
    RequestId,
    caller_of,
    counted_caller,
    note_priority,
    sender_of,
)
from tandem.service.http.error_replies import InvalidFields
from tandem.service.ports import extras
from tandem.service.text.languages import base_language, language_name
from tandem.service.translation.requests import priority_of

# DeepL's clients refuse these two as targets and ask for a variety. A model of the language serves either.
_VARIETIES = {
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
}
_GUESSED = "auto_detection"
_BOTH = {"needs_source_support": True, "needs_target_support": True}
_FEATURES: dict[Resource, tuple[ResourceFeature, ...]] = {
    "translate_text": (
        ResourceFeature(name="tag_handling", **_BOTH),
        ResourceFeature(name="glossary", **_BOTH),
        ResourceFeature(name=_GUESSED, needs_source_support=True),
    ),
    "translate_document": (
        ResourceFeature(name="glossary", **_BOTH),
        ResourceFeature(name=_GUESSED, needs_source_support=True),
    ),
    "glossary": (),
}
_NEEDED: Mapping[Resource, str] = {"translate_document": "files", "glossary": "accounts"}
"""Of parts of DeepL's API the extras without which they are not here."""
Fields = TypeVar("Fields", bound=DeepLFields)
_UNLIMITED = 1_000_000_000_000
"""DeepL's number for accounts without a limit."""
_MOST_SAID = 2_000  # characters


async def traced(response: Response, request_id: RequestId) -> None:
    """Every reply of DeepL's API names the request."""
    response.headers["X-Trace-ID"] = request_id


def note(response: Response, notices: Iterable[str]) -> None:
    """Tell the client what it should know besides the reply; nothing where there is nothing."""
    if said := "; ".join(notices):
        response.headers[NOTICE] = said[:_MOST_SAID]


def keyed(model: type[Fields], *, counted: bool = True) -> Any:
    """A dependency that reads a request's fields, and finds its caller. Raises what these two raise.

    Where ``counted`` is False, the route charges for the request itself.
    """

    async def read(request: Request, parts: PartsDep) -> tuple[Caller, Fields]:
        fields = await read_request(request, model)
        if not counted:
            return caller_of(request, parts.access, fields.auth_key), fields
        return await counted_caller(request, parts.access, fields.auth_key), fields

    return Depends(read)


async def key_only(given: Annotated[tuple[Caller, DeepLFields], keyed(DeepLFields)]) -> Caller:
    """The caller of a route that takes no fields but the key."""
    return given[0]


CallerDep = Annotated[Caller, Depends(key_only)]

router = APIRouter(tags=["DeepL"], dependencies=[Depends(traced)])


@router.post(
    "/v2/translate",
    response_model_exclude_none=True,
    responses=deepl_errors(400, 403, 408, 413, 429, 456, 500, 503, 529),
    openapi_extra=deepl_body(DeepLTranslateRequest),
)
async def translate_texts(
    request: Request,
    given: Annotated[tuple[Caller, DeepLTranslateRequest], keyed(DeepLTranslateRequest, counted=False)],
    parts: PartsDep,
    response: Response,
) -> DeepLTranslateReply:
    """Translate texts as DeepL does. What is asked for and has no effect here is named in `X-Tandem-Notice`."""
    caller, fields = given
    characters = sum(map(len, fields.text))
    note_priority(request, priority_of(characters, None, parts.settings.bulk_characters))
    async with parts.access.charged(caller, characters):
        reply, notices = await translate(fields, parts, caller.name, sender_of(request))
    note(response, notices)
    return reply


@router.get("/v2/languages", response_model_exclude_none=True, responses=deepl_errors(400, 403, 429, 503))
async def languages(
    given: Annotated[tuple[Caller, LanguagesRequest], keyed(LanguagesRequest)],
    parts: PartsDep,
    type: Annotated[Literal["source", "target"] | None, Query(description="Also read from a form body.")] = None,
) -> list[DeepLLanguage]:
    """Languages that texts are translated from, or into; targets by variety where DeepL's clients insist on one."""
    served = parts.texts.catalog.languages()
    if given[1].type == "target":
        return _target_languages(target for language in served for target in language.targets)
    return _source_languages(language.code for language in served if language.targets)


@router.get("/v3/languages", responses=deepl_errors(400, 403, 429, 503))
async def languages_of_resource(
    parts: PartsDep,
    caller: CallerDep,
    resource: Annotated[Resource | None, Query(description="What the languages are asked for.")] = None,
    product: Annotated[str | None, Query(description="Was renamed to `resource`.", max_length=100)] = None,
) -> list[LanguageSupport]:
    """Languages with what can be done with each of them; none for a part of DeepL's API that is not here."""
    if resource is None:
        message = "is required; 'product' was renamed to 'resource'" if product else "is required"
        raise InvalidFields.missing("resource", message)
    if resource not in (offered := features_here()):
        return []
    spoken = {feature.name: FeatureStatus() for feature in offered[resource]}
    written = {name: status for name, status in spoken.items() if name != _GUESSED}
    pairs = served_pairs(parts)
    sources, targets = ({pair[side] for pair in pairs} for side in (0, 1))
    found = []
    for code in sorted(sources | targets):
        features = spoken if code in sources else written
        found.append(_language(code, language_name(code), features, source=code in sources, target=code in targets))
        for name, title in _VARIETIES.get(code, ()) if code in targets else ():
            found.append(_language(code + name[2:], title, written, source=False, target=True))
    return found


@router.get("/v3/languages/resources", response_model_exclude_none=True, responses=deepl_errors(400, 403, 429, 503))
async def resources(parts: PartsDep, caller: CallerDep) -> list[LanguageResource]:
    """The parts of DeepL's API that are here, and their features."""
    return [LanguageResource(name=name, features=list(features)) for name, features in features_here().items()]


@router.get("/v2/usage", responses=deepl_errors(400, 403, 429, 503))
async def usage(parts: PartsDep, caller: CallerDep) -> DeepLUsage:
    """Characters that the caller has had translated this month, and may have."""
    used = await parts.access.usage(caller)
    return DeepLUsage(character_count=used.count, character_limit=_UNLIMITED if used.limit is None else used.limit)


@router.get("/v2/glossary-language-pairs", responses=deepl_errors(400, 403, 429, 503))
async def glossary_language_pairs(parts: PartsDep, caller: CallerDep) -> LanguagePairs:
    """Pairs for which glossaries can be stored: those that are translated."""
    pairs = sorted(served_pairs(parts)) if "glossary" in features_here() else []
    return LanguagePairs(supported_languages=[LanguagePair(source_lang=s, target_lang=t) for s, t in pairs])


def features_here() -> dict[Resource, tuple[ResourceFeature, ...]]:
    """The parts of DeepL's API that are here, with their features."""
    here = {extra.name for extra in extras()}
    missing = {resource for resource, name in _NEEDED.items() if name not in here}
    return {
        resource: tuple(feature for feature in features if feature.name not in missing)
        for resource, features in _FEATURES.items()
        if resource not in missing
    }


def served_pairs(parts: Parts) -> set[tuple[str, str]]:
    """Pairs of languages that are translated, without varieties."""
    return {
        (base_language(language.code), base_language(target))
        for language in parts.texts.catalog.languages()
        for target in language.targets
    }


def _language(
    code: str, name: str, features: dict[str, FeatureStatus], *, source: bool, target: bool
) -> LanguageSupport:
    return LanguageSupport(lang=code, name=name, usable_as_source=source, usable_as_target=target, features=features)


def _source_languages(codes: Iterable[str]) -> list[DeepLLanguage]:
    """Source languages, each once, in order of their codes."""
    bases = sorted({base_language(code) for code in codes})
    return [DeepLLanguage(language=base.upper(), name=language_name(base)) for base in bases]


def _target_languages(codes: Iterable[str]) -> list[DeepLLanguage]:
    """Target languages, a language of which DeepL's clients want a variety by its varieties."""
    found: dict[str, str] = {}
    for code in sorted(set(codes)):
        for name, title in _VARIETIES.get(code.lower(), ((code.upper(), language_name(code)),)):
            found[name] = title
    return [DeepLLanguage(language=code, name=name, supports_formality=False) for code, name in sorted(found.items())]
