"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(name="gpu", searches=dict.fromkeys(("cuda", "cpu"), "extras.gpu.routing:open_search"))
