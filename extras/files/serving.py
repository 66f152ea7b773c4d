"""The file jobs of the running service, and what its routes are given of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from tandem.extras.files.errors import explain
from tandem.extras.files.jobs import FileJobs
from tandem.extras.files.metrics import FilesCollector
from tandem.extras.files.uploads import UNKNOWN_UPLOADS
from tandem.service.http.dependencies import Parts, PartsDep


@dataclass(frozen=True, slots=True)
class FileService:
    """What is open while the service runs.

    Attributes:
        jobs: those that are here.
        unknown_uploads: held by each file that comes in before its key.
    """

    jobs: FileJobs
    unknown_uploads: asyncio.Semaphore


@asynccontextmanager
async def serving(parts: Parts) -> AsyncIterator[FileService]:
    """The jobs, at work. Raises ConfigError or DataInUse where the data folder cannot be used."""
    stored = parts.glossaries, parts.memory
    jobs = await asyncio.to_thread(FileJobs, parts.settings, parts.texts, parts.engine, parts.access, *stored, explain)
    parts.metrics.register(FilesCollector(jobs))
    await jobs.start()
    try:
        yield FileService(jobs, asyncio.Semaphore(UNKNOWN_UPLOADS))
    finally:
        await jobs.close()


async def file_service(parts: PartsDep) -> FileService:
    """The running one."""
    return parts.resource(FileService)


FilesDep = Annotated[FileService, Depends(file_service)]
