"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="alignment", aligner="tandem.extras.alignment.aligner:ALIGNER")
