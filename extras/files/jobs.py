"""Files translated in the background: what the routes ask for, and the loops that do it."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from tandem.extras.files.bounds import Bounds, FileRefused
from tandem.extras.files.disk import Upload, require_rows
from tandem.extras.files.records import MIGRATIONS, OPEN, FileJob, Holdings, check_room
from tandem.extras.files.runner import Explain, JobActions, Runner
from tandem.extras.files.sandbox import Contents, Sandbox
from tandem.extras.files.settings import FileSettings
from tandem.extras.files.slices import Slice, read_slices, sample_of
from tandem.extras.files.store import JobStore
from tandem.extras.shared.database import Database
from tandem.models.errors import ConfigError
from tandem.models.folders import hold
from tandem.service.callers import ANONYMOUS, Access, Caller, Memories, StoredGlossaries
from tandem.service.engine import Draining, Engine
from tandem.service.errors import StorageError
from tandem.service.settings import Settings
from tandem.service.translation.plans import guessed_route
from tandem.service.translation.requests import Context, TranslateTask
from tandem.service.translation.texts import TextService

JOBS_FILE = "jobs.db"

_log = structlog.get_logger("tandem.files")
_SLICE_TEXTS = 50
_MARKUP_CHARACTERS = 4_000  # of a text that cannot be cut: as predicted tokens it must fit into the engine's queue
_SWEEP = 60.0  # seconds between two looks for files whose time is over
_LAST_STEPS = 5.0
_GONE = "the file is gone: it was cancelled, or its time was over; send it again"
_DAMAGED = "the result is missing or damaged on this server's disk; delete the file here, and send it again"
_SAME_LANGUAGE = "Source and target language are equal: the file seems to be in the language asked for already"


class FileJobs:
    """Accepts, shows, cancels and deletes jobs. Needs ``start`` in a running event loop, and ``close``."""

    def __init__(
        self,
        settings: Settings,
        texts: TextService,
        engine: Engine,
        access: Access,
        glossaries: StoredGlossaries,
        memory: Memories,
        explain: Explain,
        clock: Callable[[], float] = time.time,
        retry_seconds: float = 1.0,
    ) -> None:
        """Open the store in the data folder, or in a temporary one.

        Args:
            settings: those that begin with ``file`` are read, and the limits of a request.
            texts: translates.
            engine: whose shutdown ends the work.
            access: charges callers.
            glossaries: stored ones, which uploads may name.
            memory: of translations; each caller's own answers its files.
            explain: says of an error what the one who sent the file is told.
            clock: seconds since 1970.
            retry_seconds: before a slice that was refused or failed is tried again; doubled each time.

        Raises:
            ConfigError: the folder or the database cannot be used.
            DataInUse: another process uses it.
        """
        self._settings = settings.part(FileSettings)
        self._texts, self._engine, self._access, self._clock = texts, engine, access, clock
        self._glossaries, self._memory = glossaries, memory
        self._temporary = settings.data is None
        self._data = settings.data or Path(tempfile.mkdtemp(prefix="tandem-files-"))
        folder = self._data / "files"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            require_rows(self._data / JOBS_FILE, folder)
            self._lock = hold(folder / "lock")
        except OSError as error:
            raise ConfigError(f"{folder}: files cannot be kept here ({error.strerror})") from error
        self._database = Database(self._data / JOBS_FILE, MIGRATIONS)
        self._store = JobStore(self._database, folder)
        self._sandbox = Sandbox(bounds_of(settings))
        actions = JobActions(self._translate, self._finish, self._stopped, explain)
        self._runner = Runner(self._store, self._sandbox, actions, retry_seconds)
        self._accepting = asyncio.Lock()
        self._waiting: set[tuple[str, asyncio.Event]] = set()  # for jobs, until they are finished
        self._damaged: set[str] = set()  # jobs whose damaged result was told of
        self._sweeper: asyncio.Task[None] | None = None
        self.counts: dict[str, int] = {}
        self.holdings, self.most_bytes = Holdings(0, 0, 0), self._settings.file_bytes_of_all

    async def start(self) -> None:
        """Take up the jobs that an earlier process left, and begin to work."""
        await asyncio.to_thread(self._recover)
        for job in await asyncio.to_thread(self._store.unfinished):
            self._runner.add(job)
        self._runner.start(self._settings.file_workers)
        self._sweeper = asyncio.create_task(self._keep_sweeping())

    async def close(self) -> None:
        """End the loops; jobs that are not finished wait for the next start."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        await self._runner.close(_LAST_STEPS)
        await asyncio.to_thread(self._put_away)

    async def accept(self, upload: Upload, caller: Caller) -> FileJob:
        """Keep a file and queue its translation. When this returns, not even a power cut loses the job.

        Its characters are charged here; the request itself was counted before.

        Raises:
            FileRefused: the file cannot be translated.
            TooManyFiles, FilesFull: there is no room for it.
            RateLimited, QuotaExceeded, LimitsUnavailable: the caller is over a limit, or cannot be counted.
            ServiceError: its languages or its model are not served, or a glossary is not there.
            Draining: the service is shutting down.
            StorageError: it cannot be kept.
        """
        if self._engine.dispatcher.draining:
            raise Draining
        await self._require_room(caller, 0, 0)
        try:
            job = await asyncio.to_thread(self._store.new_folder)
            try:
                accepted = await self._read(job, upload, caller)
            except BaseException:
                await asyncio.shield(asyncio.to_thread(self._store.delete, job))
                raise
        except OSError as error:
            raise StorageError.of("files/ cannot keep an upload", error) from error
        if accepted.status in OPEN:
            self._runner.add(accepted)
        await self._count()
        return accepted

    async def find(self, job: str, caller: Caller) -> FileJob | None:
        """A job of the caller's, or any job for an administrator."""
        found = await asyncio.to_thread(self._store.get, job)
        return found if found and (caller.admin or found.owner == caller.name) else None

    def is_shared(self, caller: Caller) -> bool:
        """Whether a caller is many people: everybody without a key. Such a caller's jobs are shown by id only."""
        return caller.name == ANONYMOUS

    async def listed(self, caller: Caller, limit: int) -> list[FileJob]:
        """The caller's newest jobs, the newest first."""
        return await asyncio.to_thread(self._store.of_owner, caller.name, limit)

    async def of_download(self, name: str) -> FileJob | None:
        """The job whose result has that unguessable name."""
        return await asyncio.to_thread(self._store.of_download, name)

    async def result(self, job: FileJob) -> tuple[Path, os.stat_result]:
        """Where the result of a finished job lies, and what the system says of it.

        Raises:
            FileRefused: it is gone, or damaged.
            StorageError: it cannot be read now.
        """
        if job.status != "done" or (job.expires or 0.0) <= self._clock():
            raise FileRefused("file_gone", _GONE)
        path, found = await asyncio.to_thread(self._store.file, job, "result", "result")
        if found is None:
            self._note_damage(job.id, path)
            raise FileRefused("file_gone", _DAMAGED)
        return path, found

    async def remove(self, job: FileJob) -> None:
        """Cancel a job that is not finished, and delete its files; delete a finished one altogether."""
        if job.status in OPEN and await self._close_job(job.id, "cancelled", None):
            self._runner.cancel(job.id)
        else:
            await asyncio.to_thread(self._store.delete, job.id)
        await self._count()

    async def wait(self, job: FileJob, seconds: float) -> FileJob | None:
        """A job once it is finished; None where it was deleted.

        Raises:
            TimeoutError: that takes too long.
            Draining: it will not be finished before the service shuts down.
        """
        ended = (job.id, asyncio.Event())
        self._waiting.add(ended)
        try:
            found = await asyncio.to_thread(self._store.get, job.id)
            if found is not None and found.status in OPEN:
                async with asyncio.timeout(seconds):
                    await ended[1].wait()
                found = await asyncio.to_thread(self._store.get, job.id)
            if found is not None and found.status in OPEN:
                raise Draining
            return found
        finally:
            self._waiting.discard(ended)

    @property
    def disk(self) -> tuple[int, int]:
        """Bytes of the disk that holds the data folder: free ones, and all. Raises OSError where the folder is gone."""
        usage = shutil.disk_usage(self._data)
        return usage.free, usage.total

    async def sweep(self) -> None:
        """Delete the files of jobs whose time is over."""
        keep = self._settings.file_keep_seconds
        expired = await asyncio.to_thread(self._store.expire, self._clock(), keep)
        if expired:
            _log.info("files_expired", jobs=expired)
        await self._count()

    async def _read(self, job: str, upload: Upload, caller: Caller) -> FileJob:
        folder = self._store.folder_of(job)
        size = await upload.save(folder / "source")
        await self._require_room(caller, size, 0)
        contents = await self._sandbox.read(upload.format, upload.target, folder / "source", folder / "slices")
        source, confidence = await self._language(upload, folder / "slices", contents, caller)
        if upload.glossaries:  # not only when the first slice is translated
            await asyncio.to_thread(self._glossaries.terms, caller.name, upload.glossaries, source, upload.target)
        made = FileJob(
            job, caller.name, upload.name, upload.format, source, upload.target, upload.model, "queued",
            self._clock(), contents.characters, size, confidence=confidence, download=secrets.token_hex(32).upper(),
            glossaries=",".join(upload.glossaries),
        )  # fmt: skip
        if upload.differ and confidence is not None and source == upload.target:
            return await asyncio.to_thread(self._add_failed, made)
        async with self._accepting:
            await self._require_room(caller, size, contents.characters)
            async with self._access.charged(caller, contents.characters, request=False):
                adding = asyncio.ensure_future(asyncio.to_thread(self._add, made, folder / "slices"))
                try:
                    await asyncio.shield(adding)
                except asyncio.CancelledError:
                    await asyncio.wait((adding,))  # or it would add the job after it was deleted
                    raise
        return made

    async def _language(
        self, upload: Upload, slices: Path, contents: Contents, caller: Caller
    ) -> tuple[str, float | None]:
        """The language of a file, and how sure that is where it was detected; checks that it is served."""
        source = upload.source
        if not contents.slices:
            return source, None
        if source.lower() == "auto":
            sample = await asyncio.to_thread(sample_of, slices)
            guesses = await self._texts.detect(sample, caller.name, every=True)
            task, catalog = TranslateTask(q=sample, target=upload.target, model=upload.model), self._texts.catalog
            route, guess = guessed_route(catalog, task, guesses, "the file", likeliest=upload.likeliest)
            return guess.language if route else upload.target, guess.confidence
        self._texts.catalog.translator(source, upload.target, upload.model)
        return source, None

    async def _require_room(self, caller: Caller, size: int, characters: int) -> None:
        """Raises TooManyFiles or FilesFull where a file of that size is too much."""
        own = await asyncio.to_thread(self._store.holdings, caller.name)
        everybody = await asyncio.to_thread(self._store.holdings)
        check_room(self._settings, own, everybody, size, characters)

    def _add(self, job: FileJob, slices: Path) -> None:
        self._store.add(job, read_slices(slices))
        slices.unlink()

    def _add_failed(self, job: FileJob) -> FileJob:
        """Keep a job that there is no use in beginning; nothing is charged for it."""
        failed = replace(
            job, status="failed", characters=0, bytes=0, finished=job.created,
            expires=job.created + self._settings.file_keep_seconds, error=_SAME_LANGUAGE, code="same_language",
        )  # fmt: skip
        self._store.add(failed, ())
        self._store.shed(failed.id)
        return failed

    async def _translate(self, job: FileJob, one: Slice) -> list[str]:
        if job.confidence is not None and job.source == job.target:
            return list(one.texts)  # it is in that language already
        await self._count()
        named = tuple(job.glossaries.split(",")) if job.glossaries else ()
        terms = self._glossaries.terms
        task = TranslateTask(
            q=one.texts,
            source=job.source,
            target=job.target,
            model=job.model,
            format="html" if one.markup else "text",
            priority="bulk",
        )
        context = Context(
            tag=f"file-{job.id[:8]}",
            caller=job.owner,
            recall=None if job.owner == ANONYMOUS else partial(self._memory.recall, job.owner),
            glossary=await asyncio.to_thread(terms, job.owner, named, job.source, job.target) if named else None,
        )
        return [written.text for written in (await self._texts.translate(task, context)).texts]

    async def _finish(self, job: str, status: str, fault: tuple[str, str] | None) -> None:
        await self._close_job(job, status, fault)
        await self._count()

    async def _close_job(self, job: str, status: str, fault: tuple[str, str] | None) -> bool:
        """Mark an unfinished job as finished. Returns whether it was unfinished."""
        now = self._clock()
        expires = now + self._settings.file_keep_seconds
        closed = await asyncio.to_thread(self._store.finish, job, status, now, expires, fault)
        if closed:
            _log.info("file_finished", job=job[:8], status=status, code=fault[1] if fault else None)
            await self._shed(job)
        for waited, ended in self._waiting:
            if waited == job:
                ended.set()
        return closed

    async def _shed(self, job: str) -> None:
        """What cannot be deleted now is deleted at the next start."""
        try:
            await asyncio.to_thread(self._store.shed, job)
        except StorageError as error:
            _log.error("file_not_tidied", job=job[:8], cause=str(error))

    def _note_damage(self, job: str, path: Path) -> None:
        """For those who run the server; once, however often the result is asked for."""
        if job not in self._damaged:
            self._damaged.add(job)
            _log.error("result_damaged", job=job[:8], path=str(path))

    def _stopped(self) -> None:
        """Nobody needs to wait any more."""
        for _, ended in self._waiting:
            ended.set()

    def _recover(self) -> None:
        self._store.requeue()
        self._store.tidy()

    def _put_away(self) -> None:
        with suppress(StorageError):
            self._store.requeue()
        self._database.close()
        self._lock.close()
        if self._temporary:
            shutil.rmtree(self._data, ignore_errors=True)

    async def _keep_sweeping(self) -> None:
        while True:
            try:
                await self.sweep()
            except StorageError as error:
                _log.error("files_not_swept", cause=str(error))
            await asyncio.sleep(_SWEEP)

    async def _count(self) -> None:
        """What the metrics show. It fails nothing: a job may be removed as the service ends, its store being closed."""
        try:
            self.counts = await asyncio.to_thread(self._store.counts)
            self.holdings = await asyncio.to_thread(self._store.holdings)
        except StorageError as error:
            _log.warning("files_not_counted", cause=str(error))


def bounds_of(settings: Settings) -> Bounds:
    """What one file may amount to; a slice of it must pass as a request."""
    own = settings.part(FileSettings)
    return Bounds(
        characters=own.file_characters,
        slice_characters=min(own.file_slice_characters, settings.max_characters),
        markup_characters=min(_MARKUP_CHARACTERS, settings.max_characters),
        slice_texts=min(_SLICE_TEXTS, settings.max_texts),
        unpacked_bytes=own.file_unpacked_bytes,
    )
