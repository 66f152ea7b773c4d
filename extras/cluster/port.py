"""What the core finds here: Ray builds the application itself (``tandem.extras.cluster.app:app``)."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="cluster", packages={"[ray]": ("ray",)})
