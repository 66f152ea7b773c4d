"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="files",
    settings="tandem.extras.files.settings:FileSettings",
    resources=("tandem.extras.files.serving:serving",),
    http={"tandem.extras.files.http:HTTP": ("markup",)},
)
