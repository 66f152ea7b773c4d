"""Reads a multipart request with a file: the file goes to disk in pieces and is never in memory as a whole."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.errors import BadRequest, InvalidFields, UnsupportedMedia
from service.files.disk import sync_folder
from service.files.errors import UnknownFileType
from service.files.formats import FORMATS
from service.storage import StorageError

FORM_BYTES = 64 << 10
"""Bytes of a request besides the file."""
_MAX_FIELDS = 50
_FIELDS = {"source": 35, "target": 35, "model": 200, "api_key": 512}
"""Text fields, with the characters that each may have."""
_STEM_BYTES = 150
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff/\\]")


@dataclass(frozen=True, slots=True)
class Upload:
    """A request to translate a file.

    Attributes:
        name: of the file, without folders and control characters.
        format: see ``FORMATS``.
        source, target: language codes, or ``auto`` for the first.
        model: bundle to use; None = any.
        api_key: where the caller sends it as a field.
        file: its content, from the beginning on.
    """

    name: str
    format: str
    source: str
    target: str
    model: str | None
    api_key: str | None
    file: IO[bytes]

    async def save(self, path: Path) -> int:
        """Write the file and put it on disk. Returns its bytes.

        Raises:
            StorageError: it cannot be written.
        """
        try:
            return await asyncio.to_thread(_save, self.file, path)
        except OSError as error:
            raise StorageError(f"an upload cannot be kept ({type(error).__name__})") from error


@asynccontextmanager
async def read_upload(request: Request) -> AsyncIterator[Upload]:
    """The fields of a multipart request with one file; what it keeps on disk is gone afterwards.

    Raises:
        BadRequest: the body is no multipart form, or has more than one file.
        UnsupportedMedia: another content type.
        InvalidFields: a field is missing or too long.
        UnknownFileType: a file of a type that is not translated, by its name.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise UnsupportedMedia(f"content type {kind[:80]!r} is not read here; send the file as multipart/form-data")
    try:
        form = await request.form(max_files=1, max_fields=_MAX_FIELDS, max_part_size=FORM_BYTES)
    except HTTPException as error:
        message = f"the body must be multipart/form-data with one file and at most {_MAX_FIELDS} short fields"
        raise BadRequest(message) from error
    try:
        yield _upload(form)
    finally:
        await form.close()


def _upload(form: FormData) -> Upload:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise _missing("file")
    fields = {name: _field(form, name) for name in _FIELDS}
    if not fields["target"]:
        raise _missing("target")
    name, ending = clean_name(file.filename or "")
    return Upload(
        f"{name}.{ending}", ending, fields["source"] or "auto", fields["target"], fields["model"], fields["api_key"],
        file.file,
    )  # fmt: skip


def _field(form: FormData, name: str) -> str | None:
    value = form.get(name)
    if not isinstance(value, str):
        return None
    if len(value) > _FIELDS[name]:
        raise InvalidFields.of(name, f"must have at most {_FIELDS[name]} characters", len(value))
    return value.strip() or None


def _missing(name: str) -> InvalidFields:
    return InvalidFields(f"{name}: is required", [{"field": name, "message": "is required"}])


def clean_name(name: str) -> tuple[str, str]:
    """A file name as sent, as stem and ending: no folders, no characters that steer a terminal, not too long.

    Raises:
        UnknownFileType: the ending is of no type that is translated.
    """
    base = unicodedata.normalize("NFC", re.split(r"[/\\]", name)[-1])
    stem, dot, ending = _CONTROL.sub("", base).rpartition(".")
    if not dot or ending.lower() not in FORMATS:
        what = f"files ending in {'.' + ending[:20]!r}" if dot else "files without an ending"
        known = ", ".join(f".{known}" for known in sorted(FORMATS))
        raise UnknownFileType(f"{what} are not translated here; send one of {known}", {"endings": sorted(FORMATS)})
    short = stem.encode()[:_STEM_BYTES].decode(errors="ignore").strip(" .")
    return short or "file", ending.lower()


def _save(file: IO[bytes], path: Path) -> int:
    with path.open("xb") as kept:
        shutil.copyfileobj(file, kept, 1 << 18)
        kept.flush()
        os.fsync(kept.fileno())
        size = kept.tell()
    sync_folder(path.parent)
    return size
