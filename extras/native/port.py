"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="native",
    commands={"native": ("tandem.extras.native.building:native", "Build the operators that decode faster on the CPU")},
    operators="tandem.extras.native.library:open_operators",
)
