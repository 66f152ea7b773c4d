"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="fidelity",
    fidelity="tandem.extras.fidelity.checks:FIDELITY",
    measurements={"fidelity": ("tandem.extras.fidelity.options:FidelityOptions", "tandem.extras.fidelity.measuring")},
)
