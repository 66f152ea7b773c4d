"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="proofs",
    commands={"verify": ("tandem.extras.proofs.verify:verify", "Prove a bundle")},
    measurements={
        "imports": ("tandem.extras.proofs.options:ImportsOptions", "tandem.extras.proofs.import_proof"),
        "engines": ("tandem.extras.proofs.options:EnginesOptions", "tandem.extras.proofs.engines"),
        "students": ("tandem.extras.proofs.options:StudentsOptions", "tandem.extras.proofs.student_proof"),
    },
)
