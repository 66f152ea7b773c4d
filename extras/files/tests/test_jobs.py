"""Jobs: nothing accepted is lost, nobody waits behind somebody else's file, and what is over is deleted."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tandem.extras.documents.tests.documents import BOUNDS, segments
from tandem.extras.files import child
from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.formats import FORMATS
from tandem.extras.files.records import FileJob, FilesFull, TooManyFiles
from tandem.extras.files.sandbox import Sandbox
from tandem.extras.files.slices import Slice
from tandem.extras.files.tests.samples import SAMPLES
from tandem.extras.files.tests.working import ANNA, BEN, LINES, RecordingTranslator, copied, file_jobs
from tandem.models.bundle import Bundle
from tandem.models.errors import DataInUse
from tandem.service.callers import Caller
from tandem.service.engine import DecodingFailed, Draining, Overloaded
from tandem.service.errors import PairNotServed, StorageFull
from tests.service.support import Clock, until

pytestmark = pytest.mark.anyio


async def test_a_file_goes_through_the_model(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with file_jobs(bundles["de-en"], tmp_path, processes=True) as running:
        job = await running.accept(LINES, "brief.txt")
        assert (job.status, job.characters, job.progress) == ("queued", len(LINES) - 4, 0.0)
        done = await running.finished(job)
        assert (done.status, done.progress, done.error) == ("done", 1.0, None)
        assert running.result(done) == LINES
        assert running.files(done) == {"result"}  # the upload and the texts are gone
        assert done.bytes == len(LINES)
        assert running.store.next_slice(job.id) is None


@pytest.mark.parametrize("ending", SAMPLES)
async def test_a_file_of_every_type_goes_through_the_model(
    bundles: dict[str, Bundle], tmp_path: Path, ending: str
) -> None:
    content, texts = SAMPLES[ending]
    async with file_jobs(bundles["de-en"], tmp_path / "data", file_slice_characters=1000) as running:
        done = await running.finished(await running.accept(content, f"brief.{ending}"))
        assert (done.status, done.error) == ("done", None)
        result = running.result(done)
    shown = FORMATS[ending].result or ending
    assert done.result_name == f"brief.en.{shown}"
    again = [] if ending in ("po", "xliff") else texts  # every message of these has its translation now
    assert len(segments(tmp_path, shown, result)) == len(again)


@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_a_killed_process_loses_nothing(bundles: dict[str, Bundle], tmp_path: Path, kept: int) -> None:
    first, second = RecordingTranslator(), RecordingTranslator()
    first.block_after = kept
    async with file_jobs(bundles["de-en"], tmp_path, translate=first) as running:
        job = await running.accept(LINES)
        other = await running.accept(b"wort\n", caller=BEN)
        await until(lambda: len(first.seen) == kept)
        await running.crash()
    async with file_jobs(bundles["de-en"], tmp_path, translate=second) as running:
        assert (await running.finished(job)).status == (await running.finished(other)).status == "done"
        assert running.result(job) == LINES.upper()
    assert len(first.seen) == kept
    assert sorted(first.seen + second.seen) == sorted(["anna:one", "anna:three", "ben:wort"])


async def test_killed_while_the_result_is_written(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = RecordingTranslator()
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        folder_of = running.store.folder_of
        waiting = asyncio.Event()

        async def never(*_: Any) -> None:
            waiting.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(running.jobs._sandbox, "write", never)
        job = await running.accept(LINES)
        await waiting.wait()
        (folder_of(job.id) / "unfinished-0a1b2c3d").write_bytes(b"half a fi")
        await running.crash()
    orphan = tmp_path / "files" / "upload-without-a-job"
    orphan.mkdir()
    (orphan / "source").write_bytes(b"half")
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        assert (await running.finished(job)).status == "done"
        assert running.result(job) == LINES.upper()
        assert running.files(job) == {"result"}
    assert len(recorder.seen) == 2
    assert not orphan.exists()


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
async def test_a_signal_to_all_processes_of_a_service_fails_no_job(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """systemd and a terminal's Ctrl-C send it to the process that writes the result too."""
    program = tmp_path / "python"
    signalled = f'mkdir "{tmp_path}/signalled" 2>/dev/null && kill -s {name} $$'
    program.write_text(f'#!/bin/sh\n{signalled}\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o700)
    async with file_jobs(bundles["de-en"], tmp_path / "data", processes=True) as running:
        running.graphs.gate.clear()
        job = await running.accept(LINES)
        monkeypatch.setattr(sys, "executable", str(program))
        running.graphs.gate.set()
        done = await running.finished(job)
        assert (done.status, done.error) == ("done", None)
        assert running.result(done) == LINES
    assert (tmp_path / "signalled").exists()


async def test_a_shutdown_leaves_the_job_for_the_next_start(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        running.graphs.gate.clear()
        job = await running.accept(LINES)
        await until(running.graphs.entered.is_set)
        running.engine.dispatcher.close()
        with pytest.raises(Draining):
            await running.accept(LINES)
        running.graphs.gate.set()
        await asyncio.to_thread(running.engine.stop)  # lets the slice finish that was begun
        await until(lambda: (found := running.store.get(job.id)) is not None and 0 < found.done < found.characters)
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        assert (await running.finished(job)).status == "done"
        assert running.result(job) == LINES


async def test_a_full_disk_refuses_uploads_and_delays_results(
    bundles: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def no_room(*_: Any) -> None:
        raise full

    async with file_jobs(bundles["de-en"], tmp_path) as running:
        with monkeypatch.context() as filled:
            filled.setattr(child, "read", no_room)
            with pytest.raises(StorageFull, match=r"upload .No space left on device.; make room"):
                await running.accept(b"wo ist der bahnhof")
        assert [path.name for path in (tmp_path / "files").iterdir()] == ["lock"]
        attempts: list[OSError] = []
        written = child.write

        def at_last(order: dict[str, Any]) -> dict[str, Any]:
            if len(attempts) < 3:
                attempts.append(full)
                raise full
            return written(order)

        monkeypatch.setattr(child, "write", at_last)
        with capture_logs() as lines:
            job = await running.finished(await running.accept(b"wo ist der bahnhof"))
        assert (job.status, running.result(job), len(attempts)) == ("done", b"wo ist der bahnhof", 3)
        (waits,) = [line for line in lines if line["event"] == "file_waits"]  # once, however often it is tried
        assert waits["job"] == job.id[:8] and "No space left on device" in waits["cause"]


async def test_the_process_that_writes_a_file_says_that_the_disk_is_full(tmp_path: Path) -> None:
    source, translations = tmp_path / "source", tmp_path / "translations"
    source.write_bytes(b"eins")
    translations.write_text('["one"]')
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        await Sandbox(BOUNDS).write("txt", "en", source, translations, Path("/dev/full"))


async def test_callers_take_turns_and_their_files_do_not_overlap(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    recorder = RecordingTranslator()
    gate = asyncio.Event()

    async def held(job: FileJob, one: Slice) -> list[str]:
        await gate.wait()
        return await recorder(job, one)

    async with file_jobs(bundles["de-en"], tmp_path, translate=held) as running:
        jobs = [await running.accept(LINES), await running.accept(b"five\n"), await running.accept(LINES, caller=BEN)]
        gate.set()
        for job in jobs:
            assert (await running.finished(job)).status == "done"
    assert recorder.seen == ["anna:one", "ben:one", "anna:three", "ben:three", "anna:five"]


async def test_two_callers_at_the_same_time(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    together = asyncio.Barrier(2)

    async def meet(job: FileJob, one: Slice) -> list[str]:
        await together.wait()
        return await copied(job, one)

    async with file_jobs(bundles["de-en"], tmp_path, translate=meet, file_workers=2) as running:
        jobs = [await running.accept(b"eins\n"), await running.accept(b"zwei\n", caller=BEN)]
        assert [(await running.finished(job)).status for job in jobs] == ["done", "done"]


async def test_cancelling_leaves_the_running_batch(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        running.graphs.gate.clear()
        job = await running.accept(LINES)
        await until(running.graphs.entered.is_set)
        await running.jobs.remove(job)
        running.graphs.gate.set()
        await until(lambda: running.engine.dispatcher.sentences == (0, 0))
        assert running.engine.dispatcher.counters.cancelled > 0
        found = await running.finished(job)
        assert (found.status, found.bytes, found.download) == ("cancelled", 0, job.download)
        assert running.files(job) == set()
        await running.jobs.remove(found)
        assert running.store.get(job.id) is None
        assert (await running.finished(await running.accept(LINES))).status == "done"  # others go on


async def test_files_expire(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    clock = Clock()
    async with file_jobs(bundles["de-en"], tmp_path, clock=clock, file_keep_seconds=100) as running:
        done = await running.finished(await running.accept(LINES))
        assert done.expires == clock.now + 100
        clock.now += 99
        await running.jobs.sweep()
        assert running.files(done) == {"result"} and running.jobs.holdings.bytes == len(LINES)
        clock.now += 1
        await running.jobs.sweep()
        found = running.store.get(done.id)
        assert found is not None and (found.status, found.bytes) == ("expired", 0)
        assert not running.files(done) and running.jobs.counts == {"expired": 1}
        clock.now += 100
        await running.jobs.sweep()
        assert running.store.get(done.id) is None


async def test_refused_slices_are_tried_again(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    recorder = RecordingTranslator(*[Overloaded(10, 10, 0.0)] * 5, DecodingFailed("x"), TimeoutError())
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        done = await running.finished(await running.accept(b"wort\n"))
        assert (done.status, running.result(done)) == ("done", b"WORT\n")
    assert len(recorder.seen) == 8


@pytest.mark.parametrize(
    ("trouble", "code", "says", "attempts"),
    [
        (DecodingFailed("0a1b"), "decoding_failed", "the incident 0a1b was logged", 3),
        (TimeoutError(), "deadline", "the deadline passed", 3),
        (PairNotServed("this server does not translate de-en"), "pair_not_served", "does not translate de-en", 1),
        (RuntimeError("secret text"), "internal", "something went wrong on our side", 1),
    ],
)
async def test_a_poisoned_slice_fails_its_file_only(
    bundles: dict[str, Bundle], tmp_path: Path, trouble: Exception, code: str, says: str, attempts: int
) -> None:
    recorder = RecordingTranslator(*[trouble] * attempts)
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        with capture_logs() as logs:
            failed = await running.finished(await running.accept(LINES))
        assert (failed.status, failed.code) == ("failed", code)
        assert any(line.get("exc_info") for line in logs) == (code == "internal")
        assert failed.error and says in failed.error and "secret" not in failed.error
        assert running.files(failed) == set()
        assert (await running.finished(await running.accept(LINES))).status == "done"


async def test_a_crash_in_the_model(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    bundle = bundles["de-en"]
    async with file_jobs(bundle, tmp_path) as running:
        running.graphs.crash_step = bundle.source_vocabularies[0].encode("haus")[-1]
        with capture_logs():
            failed = await running.finished(await running.accept(b"das haus\n"))
        assert (failed.status, failed.code) == ("failed", "decoding_failed")
        assert (await running.finished(await running.accept(b"guten morgen\n"))).status == "done"


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"files_per_caller": 1}, TooManyFiles, "at most 1 unfinished files of yours .* this file would make 2"),
        ({"file_characters_per_caller": 10}, TooManyFiles, "at most 10 characters of unfinished files .* make 16"),
        ({"file_bytes_per_caller": 1024}, TooManyFiles, "at most 1024 bytes of files of yours .* make 2008"),
        ({"file_bytes_of_all": 1024}, FilesFull, "at most 1024 bytes of files of all callers .* make 2008"),
        ({"file_characters": 5}, FileRefused, "at most 5 characters to translate, but this one has 8"),
    ],
)
async def test_bounds_of_what_is_kept(
    bundles: dict[str, Bundle], tmp_path: Path, settings: dict[str, Any], error: type[Exception], says: str
) -> None:
    content = b"einszwei".ljust(1004)
    async with file_jobs(bundles["de-en"], tmp_path, **settings) as running:
        running.graphs.gate.clear()
        with pytest.raises(error, match=says):  # noqa: PT012
            await running.accept(content)
            await running.accept(content)
        kept = {folder.name for folder in (tmp_path / "files").iterdir() if folder.is_dir()}
        assert kept == {job.id for job in running.store.unfinished()}


async def test_the_language_of_a_file_is_detected_as_a_whole(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    recorder = RecordingTranslator()
    german = "Wo ist der Bahnhof?\nOK\nDas Haus ist groß, und der Garten dahinter ist noch viel größer.\n".encode()
    english = b"Where is the train station?\nThe house is big, and the garden behind it is even bigger.\n"
    async with file_jobs(bundles["de-en"], tmp_path, translate=recorder) as running:
        job = await running.accept(german, source="auto")
        assert job.source == "de" and job.confidence is not None and 0 < job.confidence <= 100
        assert (await running.finished(job)).status == "done"
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        same = await running.finished(await running.accept(english, source="auto"))
        assert (same.source, running.result(same)) == ("en", english)
        empty = await running.finished(await running.accept(b"12 + 3\n", source="auto"))
        assert (empty.source, empty.characters, running.result(empty)) == ("auto", 0, b"12 + 3\n")


async def test_two_servers_do_not_share_the_files(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with file_jobs(bundles["de-en"], tmp_path):
        with pytest.raises(DataInUse, match="another server works on the files"):
            async with file_jobs(bundles["de-en"], tmp_path):
                pass


async def test_only_the_owner_and_an_administrator_find_a_file(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    async with file_jobs(bundles["de-en"], tmp_path) as running:
        job = await running.accept(LINES)
        found = [await running.jobs.find(job.id, caller) for caller in (ANNA, BEN, Caller("root", admin=True))]
        assert [one and one.id for one in found] == [job.id, None, job.id]
        assert len(job.id) >= 32 and job.download and len(job.download) >= 32


async def test_reading_takes_bounded_time(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"wort")
    with pytest.raises(FileRefused, match="too much time or memory"):
        await Sandbox(BOUNDS, seconds=0.0).read("txt", "en", tmp_path / "source", tmp_path / "slices")
    found = await Sandbox(BOUNDS).read("txt", "en", tmp_path / "source", tmp_path / "slices")
    assert (found.characters, found.slices) == (4, 1)
