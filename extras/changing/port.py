"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="changing",
    resources=("tandem.extras.changing.running:managing",),
    http={"tandem.extras.changing.running:HTTP": ()},
    versions="tandem.extras.changing.switches:kept_switches",
)
