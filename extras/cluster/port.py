"""What the core finds here: Ray builds the application itself (``extras.cluster.app:app``)."""

from __future__ import annotations

from service.ports import Extra

EXTRA = Extra(name="cluster", packages={"[ray]": ("ray",)})
