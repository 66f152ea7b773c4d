"""The service with a key store, and what tests of it share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI

from extras.accounts.access import Access, Caller, open_keys
from extras.accounts.keys import CallerLimits, KeyStore
from models.bundle import Bundle
from service.http.dependencies import admin
from service.settings import Settings
from tests.service.support import Served, served

ADMIN_KEY = "an-admin-key-of-the-settings"
TEXT = "das haus ist gross"
TRANSLATE = {"q": TEXT, "source": "de", "target": "en"}


@asynccontextmanager
async def guarded(bundles: dict[str, Bundle], data: Path, **settings: Any) -> AsyncIterator[Served]:
    """The service with a key store in ``data``, and a route for administrators."""
    made = Settings(**{"require_key": True, "data": data, "shutdown_timeout": 5, **settings})
    async with served(bundles, made) as service:
        add_admin_route(service.app)
        yield service


def add_admin_route(app: FastAPI) -> None:
    @app.get("/secret-route")
    async def secret_route(caller: Annotated[Caller, Depends(admin)]) -> dict[str, str]:
        return {"caller": caller.name}


def access_of(service: Served) -> Access:
    found: Access = service.app.state.parts.access
    return found


def make_key(service: Served, name: str = "web", limits: CallerLimits | None = None, **options: Any) -> str:
    """Made by another process, so to speak: through a store of its own."""
    with closing(open_keys(service.app.state.parts.settings)) as database:
        secret = KeyStore(database).add(name, limits or CallerLimits(), **options).secret
    access_of(service).refresh()
    return secret


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
