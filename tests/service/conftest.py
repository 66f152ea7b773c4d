"""Tiny bundles, made once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from models.bundle import Bundle, Limits
from models.search import SearchOptions
from tests.service.support import Served, served, tiny_bundle


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder: Path = tmp_path_factory.mktemp("bundles")
    return {
        "de-en": tiny_bundle(folder),
        "titles": tiny_bundle(
            folder,
            "titles",
            task="summarize",
            source_languages=("en",),
            decoding=SearchOptions(beam_size=2, max_length=60),
            limits=Limits(max_source_tokens=60, max_target_tokens=60),
        ),
    }


@pytest.fixture
async def service(bundles: dict[str, Bundle]) -> AsyncIterator[Served]:
    async with served(bundles) as running:
        yield running
