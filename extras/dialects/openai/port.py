"""What OpenAI's dialect brings to the HTTP side."""

from __future__ import annotations

from tandem.extras.dialects.openai.errors import worded
from tandem.extras.dialects.openai.routes import router
from tandem.extras.dialects.openai.schemas import ChatRequest
from tandem.service.http.parts import Dialect, HttpPart

_ABOUT = "OpenAI's API for chats, for its clients. Errors: `{error: {message, …}}`."

HTTP = HttpPart(
    routes=router.routes,
    dialect=Dialect(name="OpenAI", prefixes=("/v1/",), worded=worded, keys=("bearer",)),
    decoding=("/v1/chat/completions",),
    tags=({"name": "OpenAI", "description": _ABOUT},),
    models=(ChatRequest,),
)
