"""Servers that listen: one open to everybody, one that asks for keys. Their models copy, in two directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from models.bundle import Bundle
from service.access.access import Access
from service.access.keys import CallerLimits
from service.files.bounds import Bounds
from service.settings import Settings
from tests.service.files.working import InProcess
from tests.service.http.live import Live, live
from tests.service.support import copying, make_engine, stop_minutes, tiny_bundle


@dataclass(frozen=True, slots=True)
class Keyed:
    """A server that asks for keys.

    Attributes:
        live: the server.
        good: a key without limits.
        slow: a key with one request a minute.
        poor: a key with 30 characters a month.
    """

    live: Live
    good: str
    slow: str
    poor: str


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
        files = running.app.state.parts.files
        files._sandbox = files._runner._sandbox = InProcess(Bounds.of(settings))
        yield running


@pytest.fixture(scope="module")
def keyed(both_ways: dict[str, Bundle], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    bundle = both_ways["de-en"]
    settings = Settings(shutdown_timeout=5, require_key=True, data=tmp_path_factory.mktemp("data"))
    with live(settings, make_engine((bundle, copying(bundle)))) as running:
        access: Access = running.app.state.parts.access
        stop_minutes(running.app)
        good = access.keys.add("good", CallerLimits())
        slow = access.keys.add("slow", CallerLimits(rate=1))
        poor = access.keys.add("poor", CallerLimits(quota=30))
        access.refresh()
        yield Keyed(running, good.secret, slow.secret, poor.secret)
