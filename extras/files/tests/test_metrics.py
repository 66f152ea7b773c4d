"""What files count to the metrics."""

from __future__ import annotations

import asyncio
import time

import pytest

from tandem.extras.files.serving import FileService
from tandem.extras.files.settings import FileSettings
from tandem.service.settings import Settings
from tests.deploy.promql import OF_EXTRAS
from tests.service.http.test_operations import metrics
from tests.service.support import PATIENCE, Served

pytestmark = pytest.mark.anyio
PAIR = {"source": "de", "target": "en"}


async def test_what_may_be_here_and_the_disk(service: Served) -> None:
    found = await metrics(service.client)
    assert 0 <= found["tandem_disk_free_bytes"] <= found["tandem_disk_bytes"]
    assert found["tandem_file_limit_bytes"] == Settings().part(FileSettings).file_bytes_of_all
    assert "tandem_file_oldest_timestamp_seconds" not in found


async def test_the_names_that_rules_and_dashboards_know(service: Served) -> None:
    text = (await service.client.get("/metrics")).text
    lines = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE tandem_")}
    ours = ("tandem_file_", "tandem_disk_")
    assert {name for name in lines if name.startswith(ours)} == {name for name in OF_EXTRAS if name.startswith(ours)}


async def test_the_oldest_unfinished_file_shows_until_it_is_done(service: Served) -> None:
    service.graphs.gate.clear()
    began = time.time()
    upload = {"file": ("a.txt", b"guten morgen", "text/plain")}
    answer = await service.client.post("/files", data=PAIR, files=upload)
    assert answer.status_code == 202
    assert await asyncio.to_thread(service.graphs.entered.wait, PATIENCE)
    accepted = (await metrics(service.client))["tandem_file_oldest_timestamp_seconds"]
    assert began <= accepted <= time.time()
    service.graphs.gate.set()
    while (await service.client.get(f"/files/{answer.json()['id']}")).json()["status"] != "done":
        await asyncio.sleep(0)
    await service.app.state.parts.resource(FileService).jobs.sweep()
    assert "tandem_file_oldest_timestamp_seconds" not in await metrics(service.client)


async def test_a_folder_that_is_gone_has_no_disk(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("tandem.extras.files.jobs.shutil.disk_usage", gone)
    found = await metrics(service.client)
    assert "tandem_disk_free_bytes" not in found and "tandem_file_bytes" in found
