"""What a request needs a thread for: FastAPI runs every route and dependency there that is no coroutine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.service.support import Served

ROUTES = [route for route in create_app(Settings.model_construct()).routes if isinstance(route, APIRoute)]
BLOCKING = re.compile(r"/memory|/v[23]/glossaries|/openapi\.json$")  # the database; a document that takes a while


def threaded(call: Callable[..., Any] | None) -> bool:
    return call is not None and not (iscoroutinefunction(call) or isasyncgenfunction(call))


def dependencies(dependant: Dependant) -> Iterator[Callable[..., Any]]:
    for one in dependant.dependencies:
        assert one.call is not None
        yield one.call
        yield from dependencies(one)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{min(route.methods)} {route.path}")
def test_only_what_blocks_runs_in_a_thread(route: APIRoute) -> None:
    assert not [call.__qualname__ for call in dependencies(route.dependant) if threaded(call)]
    assert not threaded(route.endpoint) or BLOCKING.match(route.path)


@pytest.mark.anyio
async def test_a_translation_is_answered_without_a_thread(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    async def run_sync(function: Callable[..., Any], *args: Any, **_options: Any) -> Any:
        ran.append(function)
        return function(*args)

    monkeypatch.setattr("anyio.to_thread.run_sync", run_sync)
    assert (await service.translate("Das Haus.")).status_code == 200
    assert not ran
    assert (await service.client.get("/openapi.json")).status_code == 200
    assert len(ran) == 1  # what is counted above is what FastAPI calls
