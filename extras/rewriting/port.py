"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(name="rewriting", stages={"rewriting": "extras.rewriting.stage:Rewriting.of"})
