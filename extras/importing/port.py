"""What the core finds here."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(
    name="importing",
    commands={
        "import": ("extras.importing.command:import_model", "Make a bundle of a public model that you have downloaded"),
    },
    packages={"[hf]": ("huggingface_hub",)},
    sources={"firefox": "extras.importing.sources.firefox:FIREFOX", "hf": "extras.importing.sources.hub:HUB"},
    settings="extras.importing.settings:ImportingSettings",
    resources=("extras.importing.serving:fetching",),
    measurements={
        "imports": ("extras.importing.proof.options:ImportsOptions", "extras.importing.proof.command"),
        "students": ("extras.importing.proof.options:StudentsOptions", "extras.importing.proof.students"),
    },
)
