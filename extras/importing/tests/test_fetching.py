"""A server that fetches what the setting ``models`` names, and what it says meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tandem.extras.fetching import serving as fetching
from tandem.extras.fetching.sources import FetchOptions, fetch_bundle
from tandem.extras.importing.tests.published import Served
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.app import create_app
from tandem.service.settings import Settings
from tests.conftest import anyio_backend
from tests.service.support import PATIENCE

__all__ = ["anyio_backend"]
pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(bundles: Path, served: Served, models: str, **more: Any) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(
        bundles=(bundles,),
        workers=1,
        shutdown_timeout=5,
        models=models,
        models_registry=served.address,
        **more,
    )
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield client


async def until(client: httpx.AsyncClient, path: str, holds: Callable[[httpx.Response], bool]) -> httpx.Response:
    """The first answer of which something holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds(answer := await client.get(path)):
            await asyncio.sleep(0.05)
    return answer


async def test_what_is_missing_comes_while_the_server_runs(served: Served, tmp_path: Path) -> None:
    bundles = tmp_path / "none-yet"
    async with running(bundles, served, "firefox:en-de") as client:
        before = await client.get("/readyz")
        assert before.status_code == 503
        assert before.json()["detail"]["reasons"] == ["no bundle is loaded", "firefox:en-de is being fetched"]
        assert (await client.get("/health")).json() == {"status": "ok"}
        await until(client, "/readyz", lambda answer: answer.status_code == 200)
        (model,) = (await client.get("/models")).json()
        assert (model["name"], model["state"], model["licence"]) == ("en-de", "ready", "MPL-2.0")
        reply = await client.post("/translate", json={"q": "the house", "source": "en", "target": "de"})
        assert reply.status_code == 200 and isinstance(reply.json()["translatedText"], str)
    assert Bundle.load(bundles / "en-de", weights=True).manifest.origin is not None


async def test_what_is_there_is_not_asked_for_again(served: Served, tmp_path: Path) -> None:
    fetch_bundle("firefox:en-de", tmp_path / "bundles", FetchOptions(registry=str(served.root)))
    async with running(tmp_path / "bundles", served, "firefox:en-de") as client:
        assert (await client.get("/readyz")).status_code == 200
    assert not served.asked


async def test_one_that_fails_is_told_and_tried_again_while_others_are_served(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_FIRST_PAUSE", 0.5)  # each try is a process: the next shall find what is mended
    bundles = tmp_path / "bundles"
    fetch_bundle("firefox:en-de", bundles, FetchOptions(registry=str(served.root)))
    index = served.root / "db" / "models.json"
    content = index.read_text(encoding="utf-8")
    index.write_text("{}", encoding="utf-8")
    async with running(bundles, served, "firefox:en-de, firefox:en-pt/tiny") as client:
        assert (await client.get("/readyz")).json()["detail"]["reasons"] == ["firefox:en-pt/tiny is being fetched"]

        def failed(answer: httpx.Response) -> bool:
            return any(one["state"] == "failed" for one in answer.json())

        models = (await until(client, "/models", failed)).json()
        reasons = {one["name"]: one.get("reason", "") for one in models}
        assert "is tried again" in reasons["en-pt"] and str(tmp_path) not in reasons["en-pt"]
        assert (await client.get("/readyz")).status_code == 200, "what is there is served"
        index.write_text(content, encoding="utf-8")
        loaded = await until(client, "/models", lambda answer: all(one["state"] == "ready" for one in answer.json()))
        assert {one["name"] for one in loaded.json()} == {"en-de", "en-pt"}


async def test_the_server_ends_while_it_fetches(served: Served, tmp_path: Path) -> None:
    async with running(tmp_path / "bundles", served, "firefox:en-de") as client:
        assert (await client.get("/readyz")).status_code == 503
    assert not (tmp_path / "bundles" / "en-de").exists()


async def test_names_that_cannot_be_fetched_end_the_start(served: Served, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must begin with one of firefox:, hf:, but is 'en-de'"):
        async with running(tmp_path / "bundles", served, "en-de"):
            pass
    for name in ("xx", "../en-de", "en-"):  # not asked for ever more rarely, until somebody reads the log
        with pytest.raises(ConfigError, match=f"takes a pair of languages, such as firefox:en-de, but not '{name}'"):
            async with running(tmp_path / "bundles", served, f"firefox:{name}"):
                pass
    fetch_bundle("firefox:en-de", tmp_path, FetchOptions(registry=str(served.root)))
    with pytest.raises(ConfigError, match="is a bundle: the setting bundles must name the folder"):
        async with running(tmp_path / "en-de", served, "firefox:en-pt/tiny"):
            pass
