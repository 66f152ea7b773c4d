"""What changes of the loaded models are refused for."""

from __future__ import annotations

from tandem.service.errors import ServiceError


class ModelInUse(ServiceError):
    """The loaded bundles do not allow that change now."""


class ModelRefused(ServiceError):
    """A bundle could not be loaded; what was served before still is."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} was not loaded, and nothing has changed: {reason}", {"model": name, "reason": reason})
