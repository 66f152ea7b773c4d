"""A server that listens and asks for keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tandem.extras.accounts.access import KeyedAccess
from tandem.extras.accounts.keys import CallerLimits
from tandem.extras.accounts.tests.guarded import stop_minutes
from tandem.models.bundle import Bundle
from tandem.service.settings import Settings
from tests.service.http.live import Live, live
from tests.service.support import copying, make_engine


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


@pytest.fixture(scope="module")
def keyed(both_ways: dict[str, Bundle], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    bundle = both_ways["de-en"]
    settings = Settings(shutdown_timeout=5, require_key=True, data=tmp_path_factory.mktemp("data"))
    with live(settings, make_engine((bundle, copying(bundle)))) as running:
        access: KeyedAccess = running.app.state.parts.access
        stop_minutes(running.app)
        good = access.keys.add("good", CallerLimits())
        slow = access.keys.add("slow", CallerLimits(rate=1))
        poor = access.keys.add("poor", CallerLimits(quota=30))
        access.refresh()
        yield Keyed(running, good.secret, slow.secret, poor.secret)
