"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="extracts", extracts="tandem.extras.extracts.extracting:extract_text")
