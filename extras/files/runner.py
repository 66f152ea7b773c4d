"""Works on the jobs: slice by slice, callers in turn, each caller's jobs one after another."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.records import FileJob
from tandem.extras.files.sandbox import Sandbox
from tandem.extras.files.slices import Slice
from tandem.extras.files.store import JobStore
from tandem.models.folders import complete_file
from tandem.service.engine import DeadlinePassed, DecodingFailed, Draining, Overloaded, UnknownModel
from tandem.service.errors import StorageError

_log = structlog.get_logger("tandem.files")
_ATTEMPTS = 3  # at a slice that fails, not counting those that were refused for want of room
_REFUSALS = 1_000  # in a row, after which a slice counts as one that never gets room
_LONGEST_WAIT = 30.0
_MAY_PASS = (DeadlinePassed, DecodingFailed, TimeoutError, UnknownModel)  # may go well the next time
_DAMAGED = "the upload is missing or damaged on this server's disk; send it again"
_OVER, _STOP = -1.0, -2.0  # the job is over; the service is shutting down, and the job waits for its next start

Translate = Callable[[FileJob, Slice], Awaitable[list[str]]]
Finish = Callable[[str, str, tuple[str, str] | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a client is told of an error: a sentence, a code for machines, and whether it passes by itself."""

    message: str
    code: str
    passes: bool


Explain = Callable[[Exception], Explanation | None]
"""None stands for an error of which a client is told nothing."""


@dataclass(frozen=True, slots=True)
class JobActions:
    """What the runner does with a job besides reading and writing its file.

    Attributes:
        translate: a slice's texts; called with its job.
        finish: called with a job's id, its last status, and sentence and code where it failed.
        stopped: called when the shutdown of the service ends the work.
        explain: says of an error what the one who sent the file is told.
    """

    translate: Translate
    finish: Finish
    stopped: Callable[[], None]
    explain: Explain


@dataclass(slots=True)
class _Trouble:
    """Failures of a job's present slice."""

    failed: int = 0
    refused: int = 0
    cause: str = ""


class Runner:
    """Takes the next slice of the next caller's oldest job, so that a long file keeps nobody else waiting."""

    def __init__(self, store: JobStore, sandbox: Sandbox, actions: JobActions, wait: float = 1.0) -> None:
        """
        Args:
            store, sandbox: of the jobs.
            actions: what is done with them.
            wait: seconds before a refused slice is tried again; doubled each time.
        """
        self._store, self._sandbox, self._actions, self._wait = store, sandbox, actions, wait
        self._jobs: dict[str, deque[str]] = defaultdict(deque)  # by caller, the oldest first
        self._turns: asyncio.Queue[str] = asyncio.Queue()  # each caller with jobs once, unless a worker has it
        self._steps: dict[str, asyncio.Task[float]] = {}
        self._trouble: dict[str, _Trouble] = defaultdict(_Trouble)
        self._workers: list[asyncio.Task[None]] = []

    def start(self, workers: int) -> None:
        """Begin to work, on so many slices at a time."""
        self._workers = [asyncio.create_task(self._take_turns()) for _ in range(workers)]

    def add(self, job: FileJob) -> None:
        """Queue a job that is stored."""
        jobs = self._jobs[job.owner]
        jobs.append(job.id)
        if len(jobs) == 1:
            self._turns.put_nowait(job.owner)

    def cancel(self, job: str) -> None:
        """Break off the work on a job that is marked as finished; its sentences leave the running batch."""
        step = self._steps.get(job)
        if step is not None:
            step.cancel()

    async def close(self, seconds: float) -> None:
        """End the workers; slices that are being translated may finish, for so many seconds."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if self._steps:
            await asyncio.wait(self._steps.values(), timeout=seconds)
        steps = list(self._steps.values())
        for step in steps:
            step.cancel()
        await asyncio.gather(*steps, return_exceptions=True)

    async def _take_turns(self) -> None:
        while True:
            owner = await self._turns.get()
            jobs = self._jobs[owner]
            job = jobs[0]
            step = self._steps[job] = asyncio.create_task(self._step(job))
            try:
                await asyncio.wait((step,))  # a worker that is cancelled leaves its step to ``close``
            finally:
                step.add_done_callback(lambda _, job=job: self._steps.pop(job, None))  # type: ignore[misc]
            wait = _outcome(step)
            if wait == _STOP:
                self._actions.stopped()
                return
            if wait == _OVER:
                self._trouble.pop(jobs.popleft(), None)
            self._next_turn(owner, max(wait, 0.0))

    def _next_turn(self, owner: str, wait: float) -> None:
        if not self._jobs[owner]:
            del self._jobs[owner]
        elif wait:
            asyncio.get_running_loop().call_later(wait, self._turns.put_nowait, owner)
        else:
            self._turns.put_nowait(owner)

    async def _step(self, job: str) -> float:
        """One slice of a job, or its end. Returns seconds to wait before the next one, or ``_OVER`` or ``_STOP``."""
        try:
            return await self._advance(job)
        except Draining:
            return _STOP
        except Exception as error:
            wait = self._wait_after(job, error)
            if wait is None:
                await self._actions.finish(job, "failed", self._fault(error))
                return _OVER
            self._note_trouble(job, error)
            return wait

    def _note_trouble(self, job: str, error: Exception) -> None:
        """Say why a job gets no further, once; a full queue is no trouble, and the metrics show it."""
        trouble, cause = self._trouble[job], _cause_of(error)
        if cause != trouble.cause and not isinstance(error, Overloaded):
            trouble.cause = cause
            _log.warning("file_waits", job=job[:8], cause=cause)

    def _wait_after(self, job: str, error: Exception) -> float | None:
        """Seconds after which a slice that failed is tried again; None = not at all."""
        trouble = self._trouble[job]
        told = self._actions.explain(error)
        if isinstance(error, Overloaded | StorageError) or (told is not None and told.passes):
            trouble.refused += 1
            asked = error.retry_after if isinstance(error, Overloaded) else 0.0
            wait = min(_LONGEST_WAIT, max(asked, self._wait * 2 ** min(trouble.refused - 1, 10)))
            return wait if trouble.refused < _REFUSALS else None
        if isinstance(error, _MAY_PASS):
            trouble.failed += 1
            return self._wait * 2**trouble.failed if trouble.failed < _ATTEMPTS else None
        return None

    def _fault(self, error: Exception) -> tuple[str, str]:
        """A sentence for people and a code for machines."""
        if isinstance(error, FileRefused):
            return str(error), error.code
        told = self._actions.explain(error)
        if told is not None:
            return f"a part of the file could not be translated: {told.message}", told.code
        incident = secrets.token_hex(6)
        _log.error("file_failed", incident=incident, exc_info=error)
        return f"something went wrong on our side; the incident {incident} was logged", "internal"

    async def _advance(self, job: str) -> float:
        found = await asyncio.to_thread(self._store.begin, job)
        if found is None:
            return _OVER
        await self._require_upload(found)
        following = await asyncio.to_thread(self._store.next_slice, job)
        if following is None:
            await self._write(found)
            await self._actions.finish(job, "done", None)
            return _OVER
        number, one = following
        translations = await self._actions.translate(found, one)
        await asyncio.to_thread(self._store.keep_slice, job, number, translations)
        self._trouble.pop(job, None)
        return 0.0

    async def _require_upload(self, job: FileJob) -> None:
        """Before each slice, not only when all are translated: without the upload there will be no result."""
        source, found = await asyncio.to_thread(self._store.file, job, "source", "upload")
        if found is None:
            if await asyncio.to_thread(self._store.begin, job.id):  # not cancelled meanwhile
                _log.error("upload_damaged", job=job.id[:8], path=str(source))
            raise FileRefused("file_gone", _DAMAGED)

    async def _write(self, job: FileJob) -> None:
        """Write the result; it has its name only once it is whole and on disk."""
        folder = self._store.folder_of(job.id)
        attempt = secrets.token_hex(4)  # a process that outlived its server may still write under another name
        translations, unfinished = folder / f"translations-{attempt}", folder / f"unfinished-{attempt}"
        texts = await asyncio.to_thread(self._store.translations, job.id)
        try:
            await asyncio.to_thread(_prepare, texts, translations)
            await self._sandbox.write(job.format, job.target, folder / "source", translations, unfinished)
            await asyncio.to_thread(complete_file, unfinished, folder / "result")
        except OSError as error:
            raise StorageError.of(f"the result of the file {job.id} cannot be written", error) from error


def _outcome(step: asyncio.Task[float]) -> float:
    """What a step returned; a job that was cancelled is over."""
    if step.cancelled():
        return _OVER
    error = step.exception()
    if error is None:
        return step.result()
    _log.error("file_not_finished", cause=_cause_of(error))  # not even its failure could be written down
    return _LONGEST_WAIT


def _cause_of(error: BaseException) -> str:
    """What the log may say of an error: only our own messages quote no text."""
    return str(error) if isinstance(error, StorageError) else type(error).__name__


def _prepare(texts: list[str], translations: Path) -> None:
    translations.write_text(json.dumps(texts), encoding="utf-8")
