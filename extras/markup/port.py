"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="markup", markup="tandem.extras.markup.reading:READER")
