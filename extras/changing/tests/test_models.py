"""Bundles by alias: loaded, switched, rolled back and unloaded while the service answers."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import shutil
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from tandem.extras.changing.manager import ModelManager
from tandem.extras.changing.switches import Switches
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.app import create_app
from tandem.service.bundles.catalog import Models
from tandem.service.bundles.loading import at_start, list_bundles
from tandem.service.engine import Engine
from tandem.service.http.dependencies import Parts
from tandem.service.settings import Settings
from tests.conftest import anyio_backend
from tests.service.bundles.test_versions import Writer, configured, manager, settings, versions
from tests.service.support import PATIENCE, CopyGraphs, assert_error, copying, running

__all__ = ["anyio_backend", "configured", "manager", "versions"]
pytestmark = pytest.mark.anyio
ADMIN = {"Authorization": "Bearer " + "a" * 20}


@dataclass
class Opened:
    """Stands for the runtime: copying graphs, by the name of the version that they belong to."""

    graphs: dict[str, CopyGraphs] = field(default_factory=dict)
    crashing: set[str] = field(default_factory=set)
    delay: threading.Event = field(default_factory=threading.Event)

    def open(self, bundle: Bundle, *_: Any) -> CopyGraphs:
        assert self.delay.wait(PATIENCE)
        graphs = copying(bundle)
        graphs.crash_encode = 3 if bundle.manifest.name in self.crashing else -1  # EOS: every sentence
        self.graphs[bundle.manifest.name] = graphs
        return graphs


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    opened = Opened()
    opened.delay.set()
    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", opened.open)
    return opened


@dataclass
class Serving:
    """A running service and its administrator."""

    client: httpx.AsyncClient
    parts: Parts

    @property
    def engine(self) -> Engine:
        return self.parts.engine

    async def post(self, path: str, **options: Any) -> httpx.Response:
        return await self.client.post(path, headers=ADMIN, **options)

    async def delete(self, path: str) -> httpx.Response:
        return await self.client.delete(path, headers=ADMIN)

    async def translate(self, q: str = "das haus ist gross", **fields: Any) -> httpx.Response:
        return await self.client.post("/translate", json={"q": q, "source": "de", "target": "en", **fields})

    async def served(self) -> str:
        response = await self.translate(details=True)
        assert response.json()["translatedText"] == "das haus ist gross"
        return str(response.json()["model"])

    async def states(self) -> dict[str, str]:
        models = (await self.client.get("/models")).json()
        return {one["name"]: one["state"] + (" current" if one.get("current") else "") for one in models}

    async def state_becomes(self, expected: dict[str, str]) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.states() != expected:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(configured: Settings) -> AsyncIterator[Serving]:
    app: FastAPI = create_app(configured)
    async with running(app) as client:
        yield Serving(client, app.state.parts)


@pytest.fixture
async def service(manager: Writer, opened: Opened, configured: Settings) -> AsyncIterator[Serving]:
    """With one version, which the alias stands for."""
    manager("de-en@1")
    async with serving(configured) as running_service:
        yield running_service


async def test_a_version_is_loaded_and_the_alias_switched(service: Serving, manager: Writer) -> None:
    assert await service.served() == "de-en@1"
    manager("de-en@2")
    reply = await service.post("/models/de-en@2")
    assert reply.json() == {"alias": "de-en", "current": "de-en@2", "model": "de-en@2"}
    assert await service.served() == "de-en@2"
    assert (await service.translate(model="de-en@1", details=True)).json()["model"] == "de-en@1"
    assert (await service.translate(model="de-en", details=True)).json()["model"] == "de-en@2"
    assert await service.states() == {"de-en@1": "ready", "de-en@2": "ready current"}
    assert (await service.client.get("/languages")).json()[0]["targets"] == ["en"]
    assert (await service.client.get("/readyz")).status_code == 200


async def test_without_a_switch_a_version_answers_to_its_own_name_only(service: Serving, manager: Writer) -> None:
    manager("de-en@2")
    reply = await service.post("/models/de-en@2", params={"switch": "false"})
    assert reply.json() == {"alias": "de-en", "current": "de-en@1", "model": "de-en@2"}
    assert await service.served() == "de-en@1"
    assert (await service.translate(model="de-en@2", details=True)).json()["model"] == "de-en@2"


async def test_an_alias_loads_its_newest_version(manager: Writer, opened: Opened, configured: Settings) -> None:
    manager("de-en@2")
    async with serving(configured) as service:
        manager("de-en@10")
        manager("de-en@1")
        assert (await service.post("/models/de-en")).json()["current"] == "de-en@10"
        assert list(opened.graphs) == ["de-en@2", "de-en@10"]


async def test_rolling_back_and_forth(service: Serving, manager: Writer, opened: Opened) -> None:
    manager("de-en@2")
    await service.post("/models/de-en@2")
    assert (await service.post("/models/de-en/rollback")).json()["current"] == "de-en@1"
    assert await service.served() == "de-en@1"
    assert (await service.post("/models/de-en/rollback")).json()["current"] == "de-en@2"
    assert list(opened.graphs) == ["de-en@1", "de-en@2"]  # neither was opened again


async def test_rolling_back_without_a_switch_takes_the_older_version(
    manager: Writer, opened: Opened, configured: Settings
) -> None:
    for name in ("de-en@1", "de-en@2", "de-en@10"):
        manager(name)
    async with serving(configured) as service:
        assert await service.served() == "de-en@10"
        assert (await service.post("/models/de-en/rollback")).json()["current"] == "de-en@2"
        assert_error(await service.post("/models/nothing/rollback"), 404, "model_not_found")
    shutil.rmtree(configured.bundles[0] / "de-en@1")
    shutil.rmtree(configured.bundles[0] / "de-en@2")
    async with serving(configured) as service:
        body = assert_error(await service.post("/models/de-en/rollback"), 404, "model_not_found")
        assert body["error"] == "there is no version of de-en before de-en@10"


async def test_only_the_version_before_stays_loaded(service: Serving, manager: Writer) -> None:
    for name in ("de-en@2", "de-en@10"):
        manager(name)
        await service.post(f"/models/{name}")
    await service.state_becomes({"de-en@2": "ready", "de-en@10": "ready current"})
    assert (await service.translate(model="de-en@1")).status_code == 404


async def test_a_broken_bundle_leaves_the_old_one_serving(service: Serving, manager: Writer) -> None:
    broken = manager("de-en@2")
    sound = (broken / "weights.safetensors").read_bytes()
    (broken / "weights.safetensors").write_bytes(b"short")
    body = assert_error(await service.post("/models/de-en@2"), 422, "model_refused")
    assert "weights.safetensors was altered or truncated" in body["error"]
    assert str(broken) not in json.dumps(body)
    assert await service.served() == "de-en@1"
    failed = (await service.client.get("/models")).json()[1]
    assert (failed["name"], failed["state"]) == ("de-en@2", "failed")
    assert "altered or truncated" in failed["reason"]
    (broken / "weights.safetensors").write_bytes(sound)
    assert (await service.post("/models/de-en@2")).status_code == 200
    assert await service.states() == {"de-en@1": "ready", "de-en@2": "ready current"}


async def test_a_bundle_that_decodes_no_probe_is_refused(manager: Writer, opened: Opened, configured: Settings) -> None:
    manager("de-en@1")
    opened.crashing.add("de-en@2")
    async with serving(configured) as service:
        manager("de-en@2")
        body = assert_error(await service.post("/models/de-en@2"), 422, "model_refused")
        assert "it cannot decode a probe sentence: RuntimeError" in body["error"]
        assert await service.served() == "de-en@1"
        assert (await service.delete("/models/de-en@2")).json() == {
            "alias": "de-en",
            "current": "de-en@1",
            "unloaded": [],
        }
        assert await service.states() == {"de-en@1": "ready current"}


async def test_a_runtime_that_shows_its_path_does_not_show_it_to_clients(
    service: Serving, manager: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = manager("de-en@2")

    def fail(*_: Any) -> None:
        raise ConfigError(f"cannot read {path}/onnx/int8/step.onnx nor /srv/other.onnx, but onnx/x.onnx is fine")

    monkeypatch.setattr("tandem.service.bundles.loading.open_graphs", fail)
    body = assert_error(await service.post("/models/de-en@2"), 422, "model_refused")
    assert body["detail"]["reason"] == "cannot read de-en@2/onnx/int8/step.onnx nor …, but onnx/x.onnx is fine"


@pytest.mark.parametrize("name", ["..", "%2e%2e", "..%2fde-en@1", "de-en@3", "de-en@", "@1", "de-en@1@1", "a b", "~"])
async def test_names_lead_nowhere_else(service: Serving, name: str) -> None:
    response = await service.post(f"/models/{name}")
    assert response.status_code in (404, 405)
    assert_error(response, response.status_code, response.json()["code"])


async def test_links_that_lead_outside_are_refused(
    manager: Writer, opened: Opened, configured: Settings, tmp_path: Path
) -> None:
    manager("de-en@1")
    async with serving(configured) as service:
        outside = manager("de-en@2", "../elsewhere")
        os.symlink(outside, tmp_path / "bundles" / "de-en@2")
        body = assert_error(await service.post("/models/de-en@2"), 422, "model_refused")
        assert "a link that leads out of the configured folder" in body["error"]
    with pytest.raises(ConfigError, match="a link that leads out"):
        at_start(list_bundles(configured.bundles), configured)


async def test_changes_need_an_admin_key(manager: Writer, opened: Opened, configured: Settings, tmp_path: Path) -> None:
    manager("de-en@1")
    async with serving(configured) as service:
        for method, path in (
            ("POST", "/models/de-en@1"),
            ("POST", "/models/de-en/rollback"),
            ("DELETE", "/models/de-en"),
        ):
            assert_error(await service.client.request(method, path), 401, "key_missing")
            wrong = {"Authorization": "Bearer " + "b" * 20}
            assert_error(await service.client.request(method, path, headers=wrong), 403, "key_invalid")
        assert await service.served() == "de-en@1"
    async with serving(Settings(bundles=(tmp_path / "bundles",), shutdown_timeout=5)) as service:
        assert (await service.delete("/models/de-en")).status_code == 403


async def test_unloading_waits_for_what_runs(service: Serving, manager: Writer, opened: Opened) -> None:
    manager("de-en@2")
    begin = partial(asyncio.ensure_future, service.translate("das haus ist alt"))
    async with opened.graphs["de-en@1"].held(begin) as running_one:
        await service.post("/models/de-en@2")
        unloading = asyncio.ensure_future(service.delete("/models/de-en@1"))
        await service.state_becomes({"de-en@2": "ready current", "de-en@1": "draining"})
        assert (await service.translate(model="de-en@1")).status_code == 404
        assert_error(await service.post("/models/de-en@1"), 409, "model_in_use")
    assert (await running_one).json() == {"translatedText": "das haus ist alt"}
    assert (await unloading).json() == {"alias": "de-en", "current": "de-en@2", "unloaded": ["de-en@1"]}
    assert await service.states() == {"de-en@2": "ready current"}
    assert (await service.post("/models/de-en/rollback")).json()["current"] == "de-en@1"


async def test_what_an_alias_stands_for_is_unloaded_with_the_alias_only(service: Serving, manager: Writer) -> None:
    manager("de-en@2")
    await service.post("/models/de-en@2")
    body = assert_error(await service.delete("/models/de-en@2"), 409, "model_in_use")
    assert "de-en stands for de-en@2" in body["error"]
    assert (await service.delete("/models/de-en")).json() == {"alias": "de-en", "unloaded": ["de-en@1", "de-en@2"]}
    assert_error(await service.translate(), 404, "language_not_served")
    assert_error(await service.client.get("/readyz"), 503, "not_ready")
    assert_error(await service.delete("/models/de-en"), 404, "model_not_found")
    assert (await service.post("/models/de-en@1")).json()["current"] == "de-en@1"
    assert await service.served() == "de-en@1"


async def test_the_memory_of_an_unloaded_bundle_is_freed(
    manager: Writer, opened: Opened, configured: Settings, tmp_path: Path
) -> None:
    manager("de-en@1")
    async with serving(settings(tmp_path, cache_sentences=10, probe_interval=0)) as service:
        manager("de-en@2")
        await service.translate(alternatives=1, details=True)
        await service.post("/models/de-en@2")
        graphs = weakref.ref(opened.graphs.pop("de-en@1"))
        assert service.engine.dispatcher.last_finished("de-en@1") is not None
        await service.delete("/models/de-en@1")
        await service.translate()
        gc.collect()
        assert graphs() is None
        kept = [one for one in gc.get_objects() if type(one) is Bundle]
        assert {one.manifest.name for one in kept if one.path.is_relative_to(tmp_path)} == {"de-en@2"}
        assert service.engine.dispatcher.last_finished("de-en@1") is None
        assert list(service.engine.backends) == ["de-en@2"]


async def test_a_switch_survives_a_restart(manager: Writer, opened: Opened, tmp_path: Path) -> None:
    kept = settings(tmp_path, data=tmp_path / "data")
    manager("de-en@1")
    manager("de-en@2")
    async with serving(kept) as service:
        await service.post("/models/de-en@1")
    async with serving(kept) as service:
        assert await service.served() == "de-en@1"
        manager("de-en@10")
        assert (await service.post("/models/de-en/rollback")).json()["current"] == "de-en@2"
    async with serving(kept) as service:
        assert await service.served() == "de-en@2"
        await service.delete("/models/de-en")
    async with serving(kept) as service:
        assert await service.served() == "de-en@10"  # forgotten with the alias


async def test_what_cannot_be_kept_is_done_all_the_same(
    manager: Writer, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk must not keep bundles in memory that nobody can reach any more."""
    manager("de-en@1")
    manager("de-en@2")
    async with serving(settings(tmp_path, data=tmp_path / "data")) as service:
        await service.post("/models/de-en@1")

        def full(_: Switches) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Switches, "_write", full)
        with capture_logs() as lines:
            assert (await service.post("/models/de-en@2")).json()["current"] == "de-en@2"
            unloaded = await service.delete("/models/de-en")
        assert unloaded.json() == {"alias": "de-en", "unloaded": ["de-en@2", "de-en@1"]}
        assert [line["model"] for line in lines if line["event"] == "switch_not_kept"] == ["de-en", "de-en"]
        assert await service.states() == {}
        assert (await service.post("/models/de-en@1")).json()["current"] == "de-en@1"


async def test_a_changed_setting_beats_an_older_switch(manager: Writer, opened: Opened, tmp_path: Path) -> None:
    for name in ("de-en@1", "de-en@2", "de-en@10"):
        manager(name)
    data = {"data": tmp_path / "data"}
    async with serving(settings(tmp_path, versions=("de-en@2",), **data)) as service:
        assert await service.served() == "de-en@2"
        await service.post("/models/de-en@10")
    async with serving(settings(tmp_path, versions=("de-en@2",), **data)) as service:
        assert await service.served() == "de-en@10"
    async with serving(settings(tmp_path, versions=("de-en@1",), **data)) as service:
        assert await service.served() == "de-en@1"
    (tmp_path / "data" / "models.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"models.json cannot be read .* delete it"):
        at_start(list_bundles([tmp_path / "bundles"]), settings(tmp_path, **data))


async def test_a_changed_bundle_without_versions_is_taken_in(
    manager: Writer, opened: Opened, configured: Settings
) -> None:
    old = manager("de-en@1", "de-en")
    async with serving(configured) as service:
        assert (await service.post("/models/de-en")).json()["current"] == "de-en"
        shutil.rmtree(old)
        manager("de-en@2", "de-en")
        current = (await service.post("/models/de-en")).json()["current"]
        assert current.startswith("de-en@")
        assert await service.served() == current
        assert (await service.post("/models/de-en")).json()["current"] == current
        assert (await service.post("/models/de-en/rollback")).json()["current"] == "de-en"
        assert await service.served() == "de-en"
    async with serving(configured) as service:
        assert await service.served() == "de-en"


async def test_a_version_whose_folder_has_changed_is_not_mixed_up(
    manager: Writer, opened: Opened, configured: Settings
) -> None:
    old = manager("de-en@1")
    async with serving(configured) as service:
        shutil.rmtree(old)
        manager("de-en@2", "de-en@1")
        assert_error(await service.post("/models/de-en@1"), 409, "model_in_use")
        assert await service.served() == "de-en@1"


async def test_a_load_ends_though_its_client_leaves(service: Serving, manager: Writer, opened: Opened) -> None:
    manager("de-en@2")
    opened.delay.clear()
    loading = asyncio.ensure_future(service.parts.resource(ModelManager).load("de-en@2"))
    await service.state_becomes({"de-en@1": "ready current", "de-en@2": "loading"})
    loading.cancel()
    opened.delay.set()
    await service.state_becomes({"de-en@1": "ready", "de-en@2": "ready current"})


async def test_a_switch_while_a_request_looks_for_its_model_hides_none(
    manager: Writer, opened: Opened, configured: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version is added and switched to between the look at the models and the look at the aliases."""
    manager("de-en@1")
    async with serving(configured) as service:
        engine, catalog = service.engine, service.parts.texts.catalog
        look, bundle = catalog._models, engine.bundles["de-en@1"]
        later = replace(bundle, manifest=replace(bundle.manifest, name="de-en@2"))

        def slow() -> Models:
            models = look()
            if "de-en@2" not in engine.bundles:
                engine.add(later, copying(later))
                engine.point("de-en", "de-en@2")
                engine.hide("de-en@1")
            return models

        monkeypatch.setattr(catalog, "_models", slow)
        assert catalog.translator("de", "en", None).model.name == "de-en@2"


async def test_nothing_is_lost_while_versions_are_switched(
    manager: Writer, opened: Opened, configured: Settings
) -> None:
    """Clients ask all the time while an administrator loads, switches, rolls back and unloads."""
    for name in ("de-en@1", "de-en@2", "de-en@10"):
        manager(name)
    answers: list[tuple[str, httpx.Response]] = []
    stop = asyncio.Event()

    async with serving(configured) as service:

        async def ask(number: int) -> None:
            while not stop.is_set():
                text = f"wort {len(answers)} des hauses {number} " * (1 + len(answers) % 3) + "ende"
                answers.append((text, await service.translate(text, details=True)))

        clients = [asyncio.ensure_future(ask(number)) for number in range(4)]
        for _ in range(3):
            for name in ("de-en@1", "de-en@2", "de-en@10"):
                assert (await service.post(f"/models/{name}")).status_code == 200
                assert (await service.post("/models/de-en/rollback")).status_code == 200
            leaving = next(name for name in service.engine.bundles if name not in service.engine.aliases.values())
            assert (await service.delete(f"/models/{leaving}")).status_code == 200
        stop.set()
        await asyncio.gather(*clients)
        assert await asyncio.to_thread(service.engine.dispatcher.wait_until_idle, PATIENCE)
        failed = service.engine.dispatcher.counters.failed
    assert [(response.status_code, response.text) for _, response in answers if response.status_code != 200] == []
    assert all(response.json()["translatedText"] == text for text, response in answers)
    assert len({response.json()["model"] for _, response in answers}) >= 2
    assert failed == 0


def test_the_document_says_that_changes_take_an_admin_key_alone(configured: Settings) -> None:
    paths = create_app(configured).openapi()["paths"]
    for path, method in (
        ("/models/{name}", "post"),
        ("/models/{name}", "delete"),
        ("/models/{alias}/rollback", "post"),
    ):
        assert paths[path][method]["security"] == [{"bearer": []}]
    assert {"400", "422"} & paths["/models/{name}"]["post"]["responses"].keys()
