"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="tracking", trackers="tandem.extras.tracking.events:find_trackers")
