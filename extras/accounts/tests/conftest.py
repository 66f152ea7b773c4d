"""A service that asks for keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tandem.extras.accounts.tests.guarded import guarded
from tandem.extras.accounts.tests.keyed import keyed
from tandem.models.bundle import Bundle
from tests.conftest import anyio_backend
from tests.service.conftest import bundles, many_sources
from tests.service.http.dialects.conftest import both_ways, server
from tests.service.support import Served

__all__ = ["anyio_backend", "both_ways", "bundles", "keyed", "many_sources", "server"]


@pytest.fixture
async def service(bundles: dict[str, Bundle], tmp_path: Path) -> AsyncIterator[Served]:
    async with guarded(bundles, tmp_path) as running:
        yield running
