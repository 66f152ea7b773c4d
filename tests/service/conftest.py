"""Tiny bundles, made once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tandem.models.bundle import Bundle, Limits, Vocabularies, VocabularyFile
from tandem.models.search import SearchOptions
from tests.service.support import Served, served, tiny_bundle


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


@pytest.fixture(scope="session")
def many_sources(bundles: dict[str, Bundle], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """Those and bundles that read several texts at once: languages together, and a text with its translation."""
    folder: Path = tmp_path_factory.mktemp("many")
    file = VocabularyFile("source.model")
    three, two = Vocabularies((file,) * 3, file), Vocabularies((file,) * 2, file)
    together, pair = ("de", "fr", "cs"), ("en", "de")
    return {
        **bundles,
        "together": tiny_bundle(folder, "together", source_languages=together, vocabularies=three),
        "repair": tiny_bundle(
            folder, "repair", task="postedit", source_languages=pair, target_language="de", vocabularies=two
        ),
    }


@pytest.fixture
async def service(bundles: dict[str, Bundle]) -> AsyncIterator[Served]:
    async with served(bundles) as running:
        yield running
