"""Settings of files."""

from __future__ import annotations

from pydantic import BaseModel, Field


class FileSettings(BaseModel):
    """How large files may be, how many of them, and for how long they are here."""

    file_bytes: int = Field(default=10 << 20, ge=1024, le=1 << 30, description="Bytes of a file to translate.")
    file_unpacked_bytes: int = Field(
        default=100 << 20, ge=1024, le=1 << 30, description="Bytes of what a document's archive holds, unpacked."
    )
    file_characters: int = Field(
        default=500_000, ge=1, le=100_000_000, description="Characters to translate of a file."
    )
    file_slice_characters: int = Field(
        default=1_500,
        ge=100,
        le=100_000,
        description="Characters of a file that are translated together; more is a little faster, and in others' way.",
    )
    file_workers: int = Field(default=2, ge=1, le=64, description="Slices of files that are translated at a time.")
    file_keep_seconds: float = Field(
        default=86_400.0,
        ge=1,
        le=31_536_000,
        description="Seconds after which the files of a finished job are deleted.",
    )
    files_per_caller: int = Field(
        default=10, ge=1, le=100_000, description="Unfinished files of a caller; all callers without a key are one."
    )
    file_characters_per_caller: int = Field(
        default=2_000_000, ge=1, description="Characters of a caller's unfinished files."
    )
    file_bytes_per_caller: int = Field(
        default=200 << 20, ge=1024, description="Bytes of a caller's files here, finished ones included."
    )
    file_bytes_of_all: int = Field(default=2 << 30, ge=1024, description="Bytes of all callers' files here.")
