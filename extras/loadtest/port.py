"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="loadtest",
    commands={"loadtest": ("tandem.extras.loadtest.command:loadtest", "Find out what load a service bears")},
    packages={"[loadtest]": ("aiohttp",)},
)
