"""What DeepL's dialect brings to the HTTP side, besides glossaries and documents, which bring their own part."""

from __future__ import annotations

from tandem.extras.dialects.deepl import routes
from tandem.extras.dialects.deepl.errors import worded
from tandem.extras.dialects.deepl.intake import MAX_BODY_BYTES
from tandem.extras.dialects.deepl.schemas import DeepLTranslateRequest
from tandem.extras.dialects.deepl.translate import NOTICE
from tandem.service.http.parts import BodyBounds, Dialect, HttpPart, KeyScheme
from tandem.service.settings import Settings


def _bounds(settings: Settings) -> BodyBounds:
    return BodyBounds(whole={"/v2/translate": min(MAX_BODY_BYTES, settings.max_body_bytes)})


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

HTTP = HttpPart(
    routes=routes.router.routes,
    dialect=Dialect(name="DeepL", prefixes=("/v2/", "/v3/"), worded=worded, keys=("deepl",)),
    decoding=("/v2/translate",),
    bodies=_bounds,
    exposed_headers=("X-Trace-ID", NOTICE),
    keys=(_KEY,),
    tags=({"name": "DeepL", "description": "DeepL's API, version 2, for its clients. Errors: `{message, detail?}`."},),
    models=(DeepLTranslateRequest,),
)
