"""What these tests share with the service's."""

from __future__ import annotations

from tests.conftest import anyio_backend
from tests.service.conftest import bundles, service

__all__ = ["anyio_backend", "bundles", "service"]
