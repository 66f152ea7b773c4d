"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(name="starter", commands={"new": ("extras.starter.command:new", "Begin with text of your own")})
