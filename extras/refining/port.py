"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="refining",
    commands={
        "ensemble": ("tandem.extras.refining.ensemble:ensemble", "Make one bundle of several"),
        "shortlist": ("tandem.extras.refining.shortlists:shortlist", "Give a bundle a lexical shortlist"),
    },
    dictionary="tandem.extras.shared.alignment:build_dictionary",
    selection="tandem.extras.refining.selection:training_selection",
)
