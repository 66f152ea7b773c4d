"""What these tests share with the service's."""

from __future__ import annotations

from tandem.extras.accounts.tests.keyed import keyed
from tests.conftest import anyio_backend
from tests.service.conftest import bundles, service
from tests.service.http.dialects.conftest import both_ways, server

__all__ = ["anyio_backend", "both_ways", "bundles", "keyed", "server", "service"]
