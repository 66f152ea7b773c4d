"""What DeepL's dialect brings to the HTTP side: texts, glossaries, documents."""

from __future__ import annotations

from extras.dialects.deepl import documents, glossaries, routes
from extras.dialects.deepl.errors import worded
from extras.dialects.deepl.intake import GLOSSARY_PATHS, MAX_BODY_BYTES, MAX_GLOSSARY_BYTES
from extras.dialects.deepl.schemas import (
    DeepLTranslateRequest,
    DictionaryFields,
    DocumentKey,
    GlossaryChange,
    GlossaryRequest,
    MultilingualGlossaryRequest,
)
from extras.dialects.deepl.translate import NOTICE
from service.http.ports import BodyBounds, Dialect, HttpPart, KeyScheme
from service.http.uploads import FORM_BYTES
from service.settings import Settings


def _text_bounds(settings: Settings) -> BodyBounds:
    return BodyBounds(whole={"/v2/translate": min(MAX_BODY_BYTES, settings.max_body_bytes)})


def _glossary_bounds(settings: Settings) -> BodyBounds:
    return BodyBounds(large=(GLOSSARY_PATHS, max(MAX_GLOSSARY_BYTES, settings.max_body_bytes)))


def _document_bounds(settings: Settings) -> BodyBounds:
    return BodyBounds(streamed={"/v2/document": settings.file_bytes + FORM_BYTES})


_KEY = KeyScheme(
    name="deepl",
    scheme="DeepL-Auth-Key",
    described={
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`Authorization: DeepL-Auth-Key KEY`, as DeepL's clients send it.",
    },
)

TEXTS = HttpPart(
    routes=routes.router.routes,
    dialect=Dialect(name="DeepL", prefixes=("/v2/", "/v3/"), worded=worded, keys=("deepl",)),
    decoding=("/v2/translate",),
    bodies=_text_bounds,
    exposed_headers=("X-Trace-ID", NOTICE),
    keys=(_KEY,),
    tags=({"name": "DeepL", "description": "DeepL's API, version 2, for its clients. Errors: `{message, detail?}`."},),
    models=(DeepLTranslateRequest,),
)
GLOSSARIES = HttpPart(
    routes=glossaries.router.routes,
    bodies=_glossary_bounds,
    tags=(
        {"name": "DeepL glossaries", "description": "Glossaries that the server keeps, as DeepL's clients store them."},
    ),
    models=(GlossaryRequest, MultilingualGlossaryRequest, GlossaryChange, DictionaryFields),
)
DOCUMENTS = HttpPart(
    routes=documents.router.routes,
    bodies=_document_bounds,
    tags=(
        {"name": "DeepL documents", "description": "Documents, as DeepL's clients send and fetch them; see `files`."},
    ),
    models=(DocumentKey,),
)
