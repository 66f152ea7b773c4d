"""What people and disks do to the files of jobs: the server starts, owners learn of it, and nobody else feels it."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tandem.extras.files import store
from tandem.extras.files.tests.working import BEN, LINES, RecordingTranslator, file_jobs, finished, sent
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.errors import StorageFull
from tandem.service.settings import Settings
from tests.service.support import PATIENCE, Clock, Served, assert_error, served, until

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
        assert not path.parent.exists()


async def test_a_result_that_cannot_be_read_now_is_not_given_up(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, size: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    done = await finished(service, await service.client.post("/files", **sent()))
    with monkeypatch.context() as patched, capture_logs() as lines:
        patched.setattr(store, "whole", refused)
        assert_error(await service.client.get(done["result"]), 503, "storage_unavailable")
    assert any(done["id"] in str(line.get("cause")) for line in lines)
    assert (await service.client.get(done["result"])).status_code == 200


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(LINES[:50])], ids=["missing", "half"])
async def test_a_damaged_upload_fails_its_job_before_more_of_it_is_translated(
    bundles: dict[str, Bundle], tmp_path: Path, damage: Damage
) -> None:
    first, second = RecordingTranslator(), RecordingTranslator()
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


async def test_a_cancelled_upload_is_not_called_damaged(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = RecordingTranslator()
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:

        def cancelled_meanwhile(path: Path, size: int) -> None:
            running.store.finish(path.parent.name, "cancelled", 0.0, 1.0)

        monkeypatch.setattr(store, "whole", cancelled_meanwhile)
        with capture_logs() as lines:
            job = await running.accept(b"wort\n")
            found = await running.jobs.wait(job, PATIENCE)
            await until(lambda: not running.jobs._runner._jobs)
        assert found is not None and found.status == "cancelled"
        assert not any(line["event"] == "upload_damaged" for line in lines)
    assert recorder.seen == []


async def test_a_stray_folder_hinders_neither_the_end_of_a_job_nor_a_start(
    bundles: dict[str, Bundle], tmp_path: Path
) -> None:
    recorder = RecordingTranslator()
    recorder.block_after = 0
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        done, cancelled, left = [await running.accept(b"wort\n") for _ in range(3)]
        for job in (done, cancelled, left):
            (running.store.folder_of(job.id) / "stray" / "deeper").mkdir(parents=True)
        await running.jobs.remove(cancelled)
        assert running.files(cancelled) == set()
        running.store.finish(left.id, "failed", 0.0, 1.0)
        await running.crash()
    recorder.block_after = None
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        assert running.files(left) == set()
        with capture_logs() as lines:
            assert (await running.finished(done)).status == "done"
        assert not any(line["event"] == "file_failed" for line in lines)


async def test_a_file_where_a_folder_was_can_be_deleted(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        done = await running.finished(await running.accept(b"wort\n"))
        a_file_for_its_folder(running.store.folder_of(done.id) / "result")
        await running.jobs.remove(done)
        assert not running.store.folder_of(done.id).exists()


async def test_what_cannot_be_deleted_is_logged(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(*_: object, **__: object) -> None:
        """As where another user owns the folder."""

    async with file_jobs(bundles["de-en"], tmp_path) as running:
        done = await running.finished(await running.accept(b"wort\n"))
        folder = running.store.folder_of(done.id)
        with monkeypatch.context() as patched, capture_logs() as lines:
            patched.setattr(shutil, "rmtree", kept)
            await running.jobs.remove(done)
        assert running.store.get(done.id) is None
        (told,) = [line for line in lines if line["event"] == "not_deleted"]
        assert told["path"] == str(folder)
    async with file_jobs(bundles["de-en"], tmp_path):
        assert not folder.exists()  # the next start tries again


async def test_a_start_deletes_what_a_kill_left_of_finished_jobs(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    clock = Clock()
    async with file_jobs(bundles["de-en"], tmp_path, clock=clock, file_keep_seconds=100) as running:
        expired = await running.finished(await running.accept(b"wort\n"))
        clock.now += 100
        await running.jobs.sweep()
        done = await running.finished(await running.accept(b"wort\n"))
        folders = [running.store.folder_of(job.id) for job in (expired, done)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        (folder / "source").write_bytes(b"wort\n")
    async with file_jobs(bundles["de-en"], tmp_path, clock=clock) as running:
        assert not folders[0].exists()
        assert running.files(done) == {"result"}
        assert running.result(done) == b"wort\n"


@pytest.mark.parametrize("ends", ["deleted", "expired"])
async def test_a_full_disk_keeps_no_files_that_are_to_go(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """Or it would stay full: their database can write nothing down either."""
    clock = Clock()
    async with file_jobs(bundles["de-en"], tmp_path, clock=clock, file_keep_seconds=100) as running:
        done = await running.finished(await running.accept(b"wort\n"))
        work = partial(running.jobs.remove, done) if ends == "deleted" else running.jobs.sweep
        connection = running.jobs._database.connection

        def full(*, readonly: bool = False) -> AbstractContextManager[sqlite3.Connection]:
            if not readonly:
                raise StorageFull("no room")
            return connection(readonly=True)

        clock.now += 100
        with monkeypatch.context() as patched:
            patched.setattr(running.jobs._database, "connection", full)
            with pytest.raises(StorageFull):
                await work()
        assert running.files(done) == set()
        await work()
        found = running.store.get(done.id)
        assert found is None if ends == "deleted" else found is not None and found.status == "expired"


async def test_whoever_waits_for_a_file_learns_of_its_end_though_its_texts_cannot_be_deleted(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(job: str) -> None:
        raise StorageFull("no room")

    recorder = RecordingTranslator()
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        with monkeypatch.context() as patched, capture_logs() as lines:
            patched.setattr(running.store, "shed", full)
            found = await running.jobs.wait(await running.accept(b"wort\n"), PATIENCE)
        assert found is not None and found.status == "done"
        assert [line["job"] for line in lines if line["event"] == "file_not_tidied"] == [found.id[:8]]
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        assert running.files(found) == {"result"}
    assert recorder.seen == ["anna:wort"]


async def test_an_emptied_database_does_not_cost_the_files(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    database = tmp_path / "jobs.db"
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        done = await running.finished(await running.accept(b"wort\n"))
    kept = database.read_bytes()
    database.write_bytes(b"")
    with pytest.raises(ConfigError, match=r"jobs\.db: is empty.*restore it from a backup, or move it away"):
        async with file_jobs(bundles["de-en"], tmp_path):
            pass
    database.write_bytes(kept)
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        assert running.result(done) == b"wort\n"
    database.unlink()
    async with file_jobs(bundles["de-en"], tmp_path):
        assert [path.name for path in (tmp_path / "files").iterdir()] == ["lock"]


async def test_a_first_start_that_was_cut_short_hinders_no_other(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    (tmp_path / "jobs.db").touch()
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        assert (await running.finished(await running.accept(b"wort\n"))).status == "done"
