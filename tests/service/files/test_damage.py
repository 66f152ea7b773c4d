"""What people and disks do to the files of jobs: the server starts, owners learn of it, and nobody else feels it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from models.bundle import Bundle
from service.files import jobs
from service.settings import Settings
from tests.service.files.working import BEN, LINES, Recorder, file_jobs, finished, sent
from tests.service.support import Served, assert_error, served, until

pytestmark = pytest.mark.anyio
Damage = Callable[[Path], object]


def a_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_file_for_its_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [Path.unlink, lambda path: path.write_bytes(b"wo ist"), a_folder_in_its_place, a_file_for_its_folder],
    ids=["missing", "half", "folder", "no-folder"],
)
async def test_a_damaged_result_is_told_and_can_be_deleted(
    bundles: dict[str, Bundle], tmp_path: Path, damage: Damage
) -> None:
    async with served(bundles, Settings(data=tmp_path)) as service:
        done, other = [await finished(service, await service.client.post("/files", **sent())) for _ in range(2)]
        path = tmp_path / "files" / done["id"] / "result"
        damage(path)
    async with served(bundles, Settings(data=tmp_path)) as service:
        with capture_logs() as lines:
            for _ in range(2):
                body = assert_error(await service.client.get(done["result"]), 410, "file_gone")
        assert "missing or damaged" in body["error"] and "send it again" in body["error"]
        (told,) = [line for line in lines if line["event"] == "result_damaged"]  # once, however often it is asked for
        assert told["path"] == str(path)
        assert (await service.client.get(other["result"])).content == b"wo ist der bahnhof heute\n"
        assert (await service.client.delete(f"/files/{done['id']}")).status_code == 204


async def test_a_result_that_cannot_be_read_now_is_not_given_up(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, size: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    done = await finished(service, await service.client.post("/files", **sent()))
    with monkeypatch.context() as patched, capture_logs() as lines:
        patched.setattr(jobs, "whole", refused)
        assert_error(await service.client.get(done["result"]), 503, "storage_unavailable")
    assert any(done["id"] in str(line.get("cause")) for line in lines)
    assert (await service.client.get(done["result"])).status_code == 200


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(LINES[:50])], ids=["missing", "half"])
async def test_a_damaged_upload_fails_its_job_before_more_of_it_is_translated(
    bundles: dict[str, Bundle], tmp_path: Path, damage: Damage
) -> None:
    first, second = Recorder(), Recorder()
    first.block_after = 1
    async with file_jobs(bundles["de-en"], tmp_path, translate=first) as running:
        job, other = await running.accept(LINES), await running.accept(b"wort\n", caller=BEN)
        await until(lambda: len(first.seen) == 1)
        await running.crash()
    path = tmp_path / "files" / job.id / "source"
    damage(path)
    async with file_jobs(bundles["de-en"], tmp_path, translate=second) as running:
        with capture_logs() as lines:
            failed, done = await running.finished(job), await running.finished(other)
        assert (failed.status, failed.code, done.status) == ("failed", "file_gone", "done")
        assert failed.error and "missing or damaged" in failed.error and "send it again" in failed.error
        (told,) = [line for line in lines if line["event"] == "upload_damaged"]
        assert told["path"] == str(path)
        assert running.files(failed) == set()
    assert second.seen == ["ben:wort"]
