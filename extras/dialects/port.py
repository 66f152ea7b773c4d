"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(
    name="dialects",
    settings="extras.dialects.settings:DialectSettings",
    resources=("extras.dialects.mcp:serving",),
    http={
        "extras.dialects.deepl.port:HTTP": (),
        "extras.dialects.deepl.glossaries:HTTP": ("accounts",),
        "extras.dialects.deepl.documents:HTTP": ("files",),
        "extras.dialects.openai.port:HTTP": (),
        "extras.dialects.mcp:HTTP": (),
    },
)
