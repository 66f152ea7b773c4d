"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="augmentation", augmentation="tandem.extras.augmentation.rewriters:open_augmentation")
