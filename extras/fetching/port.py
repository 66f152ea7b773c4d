"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="fetching",
    commands={
        "pull": ("tandem.extras.fetching.pull:pull", "Fetch a bundle from a server or a folder, pinned by its SHA-256"),
        "models": (
            "tandem.extras.fetching.offers:models",
            "List the models that are here, and the public ones that `tandem pull` can bring",
        ),
        "bundles": ("tandem.extras.fetching.bundles:bundles", "Bundles of a server: list, check and remove them"),
    },
    settings="tandem.extras.fetching.settings:FetchingSettings",
    resources=("tandem.extras.fetching.serving:fetching",),
)
