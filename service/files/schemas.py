"""A file job as the routes show it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath
from typing import Literal

from pydantic import BaseModel, Field

from service.files.records import FileJob


class DetectedFileLanguage(BaseModel):
    """The language that a file was found to be in."""

    language: str
    confidence: float = Field(description="Per cent, 0..100.")


class FileStatus(BaseModel):
    """A file that is translated in the background."""

    id: str = Field(description="Unguessable; names the job in every request about it.")
    name: str = Field(description="Of the file that was sent.")
    status: Literal["queued", "running", "done", "failed", "cancelled", "expired"]
    progress: float = Field(description="Share of the characters that are translated, 0..1.")
    source: str
    target: str
    model: str | None = None
    detectedLanguage: DetectedFileLanguage | None = Field(default=None, description="Where `source` was `auto`.")
    characters: int = Field(description="To translate.")
    created: datetime
    finished: datetime | None = None
    expires: datetime | None = Field(default=None, description="When the files of a finished job are deleted.")
    error: str | None = Field(default=None, description="Of a job that failed: a sentence for people.")
    code: str | None = Field(default=None, description="Of a job that failed: for machines.")
    result: str | None = Field(default=None, description="Path of the result, once it is there.")
    result_name: str | None = Field(default=None, description="The result's file name.")

    @classmethod
    def of(cls, job: FileJob) -> FileStatus:
        """What a job looks like from outside."""
        done = job.status == "done"
        detected = None
        if job.confidence is not None:
            detected = DetectedFileLanguage(language=job.source, confidence=round(job.confidence, 2))
        return cls(
            id=job.id,
            name=job.name,
            status=job.status,  # type: ignore[arg-type]  # one of these, as the store writes them
            progress=round(job.progress, 4),
            source=job.source,
            target=job.target,
            model=job.model,
            detectedLanguage=detected,
            characters=job.characters,
            created=_when(job.created),
            finished=None if job.finished is None else _when(job.finished),
            expires=None if job.expires is None else _when(job.expires),
            error=job.error,
            code=job.code,
            result=f"/files/{job.id}/result" if done else None,
            result_name=result_name(job) if done else None,
        )


def result_name(job: FileJob) -> str:
    """The name of a job's result: ``letter.docx`` becomes ``letter.en.docx``."""
    path = PurePath(job.name)
    return f"{path.stem}.{job.target.lower()}{path.suffix}"


def _when(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
