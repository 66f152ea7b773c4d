"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="gpu", searches=dict.fromkeys(("cuda", "cpu"), "tandem.extras.gpu.routing:open_search"))
