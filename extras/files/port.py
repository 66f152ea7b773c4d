"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(
    name="files",
    settings="extras.files.settings:FileSettings",
    resources=("extras.files.serving:serving",),
    http={"extras.files.http:HTTP": ()},
)
