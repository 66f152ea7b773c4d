"""File jobs around the copying model, with a clock and a patience of their own."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from tandem.extras.accounts.access import KeyedAccess
from tandem.extras.accounts.glossaries import Glossaries
from tandem.extras.accounts.memory import TranslationMemory
from tandem.extras.files import child
from tandem.extras.files.disk import Upload
from tandem.extras.files.errors import explain
from tandem.extras.files.jobs import FileJobs, bounds_of
from tandem.extras.files.records import FileJob
from tandem.extras.files.sandbox import Sandbox
from tandem.extras.files.serving import FileService
from tandem.extras.files.slices import Slice
from tandem.extras.files.store import JobStore
from tandem.models.bundle import Bundle
from tandem.service.callers import Caller
from tandem.service.engine import Engine
from tandem.service.settings import Settings
from tandem.service.translation.texts import TextService
from tests.service.support import PATIENCE, Clock, CopyGraphs, Served, copying, make_engine, until

ANNA, BEN = Caller("anna"), Caller("ben")
LINES = "".join(
    f"{word} wort guten morgen wie geht es dir heute\n" for word in ["one", "two", "three", "four"]
).encode()


@dataclass
class RunningJobs:
    """File jobs, and what they stand on."""

    jobs: FileJobs
    engine: Engine
    graphs: CopyGraphs
    data: Path

    @property
    def store(self) -> JobStore:
        return self.jobs._store

    async def accept(self, content: bytes, name: str = "a.txt", caller: Caller = ANNA, **fields: Any) -> FileJob:
        given = {"source": "de", "target": "en", "model": None, **fields}
        return await self.jobs.accept(Upload(name, name.rpartition(".")[2], **given, file=io.BytesIO(content)), caller)

    async def finished(self, job: FileJob) -> FileJob:
        found = await self.jobs.wait(job, PATIENCE)
        assert found is not None
        await until(lambda: self.files(found) <= {"result"})  # tidied up behind it
        return found

    def result(self, job: FileJob) -> bytes:
        return (self.store.folder_of(job.id) / "result").read_bytes()

    def files(self, job: FileJob) -> set[str]:
        folder = self.store.folder_of(job.id)
        return {file.name for file in folder.iterdir()} if folder.exists() else set()

    async def crash(self) -> None:
        """End as a process does that is killed: nothing is written any more, and the lock is free."""
        runner = self.jobs._runner
        tasks = [*runner._workers, *runner._steps.values(), self.jobs._sweeper]
        for task in tasks:
            assert task is not None
            task.cancel()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)
        self.jobs._database.close()
        self.jobs._lock.close()
        self.engine.stop(0.0)


Translate = Callable[[FileJob, Slice], Any]


class InProcess(Sandbox):
    """Does the child process's work here: quick, for tests of what is around it."""

    async def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        work = child.read if order["action"] == "read" else child.write
        return await asyncio.to_thread(work, order | {"bounds": asdict(self._bounds)})


@asynccontextmanager
async def file_jobs(
    bundle: Bundle,
    data: Path,
    *,
    clock: Clock | None = None,
    translate: Translate | None = None,
    processes: bool = False,
    **settings: Any,
) -> AsyncIterator[RunningJobs]:
    """Jobs that work; ``translate`` takes the place of the text service."""
    fields = {"file_slice_characters": 100, "file_workers": 1, "shutdown_timeout": 0.0, **settings}
    chosen, graphs = Settings(data=data, **fields), copying(bundle)
    engine = make_engine((bundle, graphs))
    texts, access, glossaries = TextService(engine, chosen), KeyedAccess(chosen), Glossaries(chosen)
    stored = glossaries, TranslationMemory(chosen)
    jobs = FileJobs(chosen, texts, engine, access, *stored, explain, clock or Clock(), retry_seconds=0.01)
    if translate is not None:
        jobs._runner._actions = replace(jobs._runner._actions, translate=translate)
    if not processes:
        jobs._sandbox = jobs._runner._sandbox = InProcess(bounds_of(chosen))
    engine.start()
    await jobs.start()
    try:
        yield RunningJobs(jobs, engine, graphs, data)
    finally:
        graphs.gate.set()
        await asyncio.to_thread(engine.stop, 0.0)
        if not jobs._lock.closed:
            await jobs.close()
        texts.close()
        await access.close()


def sent(content: bytes = b"wo ist der bahnhof heute\n", name: str = "a.txt", **fields: str) -> dict[str, Any]:
    """What a client sends to have a file translated."""
    return {"files": {"file": (name, content)}, "data": {"source": "de", "target": "en", **fields}}


async def finished(service: Served, reply: httpx.Response) -> dict[str, Any]:
    """The job that a reply describes, once it is finished."""
    assert reply.status_code == 202, reply.text
    jobs: FileJobs = service.app.state.parts.resource(FileService).jobs
    job = jobs._store.get(reply.json()["id"])
    assert job is not None and await jobs.wait(job, PATIENCE)
    shown = await service.client.get(f"/files/{job.id}", headers=reply.request.headers)
    return dict(shown.json())


async def copied(job: FileJob, one: Slice) -> list[str]:
    return [text.upper() for text in one.texts]


class RecordingTranslator:
    """Translates by upper case, writes down what, and does as it is told before."""

    def __init__(self, *troubles: Exception) -> None:
        self.seen: list[str] = []
        self.troubles = list(troubles)
        self.block_after: int | None = None

    async def __call__(self, job: FileJob, one: Slice) -> list[str]:
        if self.block_after is not None and len(self.seen) >= self.block_after:
            await asyncio.Event().wait()
        self.seen.append(f"{job.owner}:{one.texts[0].split()[0]}")
        if self.troubles:
            raise self.troubles.pop(0)
        return await copied(job, one)
