"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(
    name="dialects",
    settings="extras.dialects.settings:DialectSettings",
    resources=("extras.dialects.mcp:serving",),
    http={
        "extras.dialects.deepl.port:TEXTS": (),
        "extras.dialects.deepl.port:GLOSSARIES": (),
        "extras.dialects.deepl.port:DOCUMENTS": (),
        "extras.dialects.openai.port:HTTP": (),
        "extras.dialects.mcp:HTTP": (),
    },
)
