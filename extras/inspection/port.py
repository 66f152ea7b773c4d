"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="inspection",
    commands={
        "config": (
            "tandem.extras.inspection.command:config",
            "Show the settings as `tandem serve` would have them with the same flags",
        )
    },
)
