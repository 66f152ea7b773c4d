"""A server that listens, open to everybody. Its models copy, in two directions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.http.live import Live, live
from tests.service.support import copying, make_engine, tiny_bundle


@pytest.fixture(scope="session")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder: Path = tmp_path_factory.mktemp("both-ways")
    return {
        "de-en": tiny_bundle(folder, "de-en"),
        "en-de": tiny_bundle(folder, "en-de", source_languages=("en",), target_language="de"),
    }


@pytest.fixture(scope="module")
def server(both_ways: dict[str, Bundle]) -> Iterator[Live]:
    engine, settings = (
        make_engine(*((bundle, copying(bundle)) for bundle in both_ways.values())),
        Settings(shutdown_timeout=5),
    )
    with live(settings, engine) as running:
        yield running
