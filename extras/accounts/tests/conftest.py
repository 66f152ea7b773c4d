"""A service that asks for keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from extras.accounts.tests.guarded import guarded
from models.bundle import Bundle
from tests.service.support import Served


@pytest.fixture
async def service(bundles: dict[str, Bundle], tmp_path: Path) -> AsyncIterator[Served]:
    async with guarded(bundles, tmp_path) as running:
        yield running
