"""What the routes of files answer."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from tandem.service.api.replies import DetectedLanguage


class FileStatus(BaseModel):
    """A file that is translated in the background."""

    id: str = Field(
        examples=["q3Y0Yk1xV2d1bGZxT2pQd0xKcWVnS2Zh"],
        description="Unguessable; names the job in every request about it.",
    )
    name: str = Field(examples=["letter.docx"], description="Of the file that was sent.")
    status: Literal["queued", "running", "done", "failed", "cancelled", "expired"] = Field(examples=["done"])
    progress: float = Field(examples=[1.0], description="Share of the characters that are translated, 0..1.")
    source: str = Field(examples=["de"])
    target: str = Field(examples=["en"])
    model: str | None = None
    detectedLanguage: DetectedLanguage | None = Field(default=None, description="Where `source` was `auto`.")
    characters: int = Field(examples=[1840], description="To translate.")
    created: datetime = Field(examples=["2030-12-31T09:30:00Z"])
    finished: datetime | None = Field(default=None, examples=["2030-12-31T09:30:04.120000Z"])
    expires: datetime | None = Field(
        examples=["2031-01-01T09:30:04.120000Z"],
        default=None,
        description="When the files of a finished job are deleted.",
    )
    error: str | None = Field(default=None, description="Of a job that failed: a sentence for people.")
    code: str | None = Field(default=None, description="Of a job that failed: for machines.")
    result: str | None = Field(
        examples=["/files/q3Y0Yk1xV2d1bGZxT2pQd0xKcWVnS2Zh/result"],
        default=None,
        description="Path of the result, once it is there.",
    )
    result_name: str | None = Field(examples=["letter.en.docx"], default=None, description="The result's file name.")


class FileUrl(BaseModel):
    """Where a translated file can be fetched."""

    translatedFileUrl: str = Field(
        examples=["https://example.org/download_file/AbC…xyz.letter.en.docx"],
        description="Unguessable, and good without a key until the file expires.",
    )
