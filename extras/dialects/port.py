"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="dialects",
    settings="tandem.extras.dialects.settings:DialectSettings",
    resources=("tandem.extras.dialects.mcp:serving",),
    http={
        "tandem.extras.dialects.deepl.port:HTTP": (),
        "tandem.extras.dialects.deepl.glossaries:HTTP": ("accounts",),
        "tandem.extras.dialects.deepl.documents:HTTP": ("files", "markup"),
        "tandem.extras.dialects.openai.port:HTTP": (),
        "tandem.extras.dialects.browser.port:HTTP": (),
        "tandem.extras.dialects.browser.port:DEEPLX": (),
        "tandem.extras.dialects.mcp:HTTP": (),
    },
)
