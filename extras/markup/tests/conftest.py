"""What these tests share with the service's."""

from __future__ import annotations

from tests.conftest import anyio_backend
from tests.service.conftest import bundles, service
from tests.service.http.dialects.conftest import both_ways, server

__all__ = ["anyio_backend", "both_ways", "bundles", "server", "service"]
