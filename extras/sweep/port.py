"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="sweep",
    commands={"sweep": ("tandem.extras.sweep.command:sweep", "Train a recipe with each combination of some values")},
    needs={"sweep": ("evaluation",)},
)
