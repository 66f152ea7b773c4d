"""Reads a multipart request with a file: the file goes to disk in pieces and is never in memory as a whole."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from service.access import Caller
from service.files.disk import sync_folder
from service.files.entrance import Entrance, Entry
from service.files.errors import UnknownFileType
from service.files.formats import FORMATS
from service.http.errors import BadRequest, InvalidFields, UnsupportedMedia
from service.storage.database import StorageError

FORM_BYTES = 64 << 10
"""Bytes of a request besides the file, and of what may come before it."""
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
        file: its content, from the beginning on.
    """

    name: str
    format: str
    source: str
    target: str
    model: str | None
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
async def read_upload(
    request: Request, entrance: Entrance, key_may_follow: bool = False
) -> AsyncIterator[tuple[Upload, Caller]]:
    """The fields of a multipart request with one file, and who sends it; what it keeps on disk is gone afterwards.

    The caller is looked for, and the request counted, before the body is read, or once the file begins: who may not
    send a file has at most one piece of it taken in. See ``Entrance`` for ``key_may_follow``.

    Raises:
        KeyMissing, KeyInvalid, UploadsBusy, RateLimited, LimitsUnavailable: see ``Entry``.
        BadRequest: the body is no multipart form, or has more than one file.
        UnsupportedMedia: another content type or character set.
        InvalidFields: a field is missing or too long.
        UnknownFileType: a file of a type that is not translated, by its name.
    """
    async with entrance.enter(request, key_may_follow) as entry:
        _check_type(request)
        form = await _Form(request, entry).parse()
        try:
            caller = await entry.admit(_field(form, "api_key"))
        except BaseException:
            await form.close()
            raise
    try:
        yield _upload(form), caller
    finally:
        await form.close()


class _Form(MultiPartParser):
    """Starlette's parser, which asks at the entrance before it takes a file in."""

    def __init__(self, request: Request, entry: Entry) -> None:
        pieces = self._pieces(request, entry)
        super().__init__(request.headers, pieces, max_files=1, max_fields=_MAX_FIELDS, max_part_size=FORM_BYTES)
        self._before_file: list[tuple[str, str | UploadFile]] | None = None

    async def parse(self) -> FormData:
        """The form. Raises BadRequest, and what the entrance raises."""
        async with aclosing(self.stream):
            try:
                return await super().parse()
            except MultiPartException as error:
                message = f"the body must be multipart/form-data with one file and at most {_MAX_FIELDS} short fields"
                raise BadRequest(message) from error

    def on_headers_finished(self) -> None:
        """Called by the parser where a part's content begins."""
        super().on_headers_finished()
        if self._current_part.file is not None and self._before_file is None:
            self._before_file = list(self.items)

    async def _pieces(self, request: Request, entry: Entry) -> AsyncGenerator[bytes, None]:
        taken = 0
        async with aclosing(request.stream()) as stream:
            async for piece in stream:
                yield piece
                taken += len(piece)
                if self._before_file is not None:
                    await entry.file_begins(_field(FormData(self._before_file), "api_key"))
                elif taken > FORM_BYTES:
                    raise BadRequest(f"the file must begin within the first {FORM_BYTES} bytes of the body")


def _check_type(request: Request) -> None:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        given = kind.decode("latin-1")[:80]
        raise UnsupportedMedia(f"content type {given!r} is not read here; send the file as multipart/form-data")
    charset = options.get(b"charset", b"utf-8").decode("latin-1").lower()
    if charset not in ("utf-8", "utf8", "us-ascii"):  # others can make lone surrogates
        raise UnsupportedMedia(f"character set {charset[:40]!r} is not read here; send UTF-8")


def _upload(form: FormData) -> Upload:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise _missing("file")
    fields = {name: _field(form, name) for name in _FIELDS}
    if not fields["target"]:
        raise _missing("target")
    name, ending = clean_name(file.filename or "")
    return Upload(
        f"{name}.{ending}", ending, fields["source"] or "auto", fields["target"], fields["model"],
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
