"""What browser extensions' dialects bring to the HTTP side."""

from __future__ import annotations

from tandem.extras.dialects.browser.routes import router
from tandem.extras.dialects.browser.schemas import DeepLXRequest, GoogleRequest, ImmersiveRequest, KissRequest
from tandem.extras.dialects.browser.wording import deeplx_worded, google_worded
from tandem.service.http.parts import Dialect, HttpPart

_ABOUT = (
    "What browser extensions send: Google's form (v2), DeepLX's, Immersive Translate's and KISS Translator's. Errors of"
    " Google's form: `{error: {code, message, …}}`; of DeepLX's: `{code, message}`."
)

HTTP = HttpPart(
    routes=router.routes,
    dialect=Dialect(name="Google", prefixes=("/language/translate/",), worded=google_worded, keys=("bearer",)),
    decoding=("/language/translate/v2", "/deeplx/translate", "/imme", "/kiss"),
    tags=({"name": "browser", "description": _ABOUT},),
    models=(DeepLXRequest, GoogleRequest, ImmersiveRequest, KissRequest),
)
DEEPLX = HttpPart(dialect=Dialect(name="DeepLX", prefixes=("/deeplx/",), worded=deeplx_worded, keys=("bearer",)))
