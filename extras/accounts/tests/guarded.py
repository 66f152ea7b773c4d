"""The service with a key store, and what tests of it share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI

from tandem.extras.accounts.access import KeyedAccess, open_keys
from tandem.extras.accounts.counters import SqliteCounters
from tandem.extras.accounts.keys import CallerLimits, KeyStore
from tandem.models.bundle import Bundle
from tandem.service.callers import Caller
from tandem.service.http.dependencies import admin
from tandem.service.settings import Settings
from tests.service.support import Clock, Served, served

ADMIN_KEY = "an-admin-key-of-the-settings"
TEXT = "das haus ist gross"
TRANSLATE = {"q": TEXT, "source": "de", "target": "en"}


@asynccontextmanager
async def guarded(bundles: dict[str, Bundle], data: Path, **settings: Any) -> AsyncIterator[Served]:
    """The service with a key store in ``data``, and a route for administrators."""
    made = Settings(**{"require_key": True, "data": data, "shutdown_timeout": 5, **settings})
    async with served(bundles, made) as service:
        stop_minutes(service.app)
        add_admin_route(service.app)
        yield service


def stop_minutes(app: FastAPI) -> None:
    """No minute of a rate ends from here on: one that begins between two requests would let one more pass."""
    counters = app.state.parts.access.meter._storage
    if isinstance(counters, SqliteCounters):
        counters._clock = Clock()


def add_admin_route(app: FastAPI) -> None:
    @app.get("/secret-route")
    async def secret_route(caller: Annotated[Caller, Depends(admin)]) -> dict[str, str]:
        return {"caller": caller.name}


def access_of(service: Served) -> KeyedAccess:
    found: KeyedAccess = service.app.state.parts.access
    return found


def make_key(service: Served, name: str = "web", limits: CallerLimits | None = None, **options: Any) -> str:
    """Made by another process, so to speak: through a store of its own."""
    with closing(open_keys(service.app.state.parts.settings)) as database:
        secret = KeyStore(database).add(name, limits or CallerLimits(), **options).secret
    access_of(service).refresh()
    return secret


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
