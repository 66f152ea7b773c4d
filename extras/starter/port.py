"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="starter", commands={"new": ("tandem.extras.starter.command:new", "Begin with text of your own")})
