"""Reads a multipart request with a file: the file goes to disk in pieces and is never in memory as a whole.

Who sends it is found out, and the request counted, as early as the request tells.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import IO

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.disk import Upload
from tandem.extras.files.formats import FORMATS
from tandem.service.callers import Access, Caller
from tandem.service.errors import KeyMissing
from tandem.service.http.dependencies import counted_caller, key_before_body
from tandem.service.http.error_replies import BadRequest, HttpError, InvalidFields, unsupported_media
from tandem.service.http.intake import content_type

FORM_BYTES = 64 << 10
"""Bytes of a request besides the file, and of what may come before it."""
_MAX_FIELDS = 50
_FIELDS = {"source": 35, "target": 35, "model": 200}
"""Text fields, with the characters that each may have."""
_MAX_KEY = 512
_STEM_BYTES = 150
UNKNOWN_UPLOADS = 2
"""Files that may come in at a time before a key that is required."""
_BUSY = (
    f"at most {UNKNOWN_UPLOADS} files may come in at a time before their key; send the key as 'Authorization: Bearer "
    "KEY', or as the field api_key before the file, or try again later"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff/\\]")


class _Entry:
    """One upload on its way in; ``caller`` is None until it is known."""

    def __init__(
        self, access: Access, request: Request, unknown: asyncio.Semaphore | None, slots: AsyncExitStack
    ) -> None:
        self._access, self._request, self._unknown, self._slots = access, request, unknown, slots
        self._waits = False
        self.caller: Caller | None = None

    async def admit(self, api_key: str | None) -> Caller:
        """The caller, whose request is counted: once, however often this is asked.

        Args:
            api_key: of the field; not looked at where a key came before the body.

        Raises:
            KeyMissing, KeyInvalid, RateLimited, LimitsUnavailable: see ``Access``.
        """
        if self.caller is None:
            key = key_before_body(self._request) or api_key
            self.caller = await counted_caller(self._request, self._access, key)
        return self.caller

    async def file_begins(self, api_key: str | None) -> None:
        """To be called before more than the first piece of a file is taken; may be called again.

        Where no key came before the file and none is required, one may still follow: ``admit`` is asked at the end.

        Args:
            api_key: the field, if it came before the file.

        Raises:
            KeyMissing: a key is required, and had to come before the file.
            HttpError: it may follow, but as many files as may be are coming in already without one.
            KeyInvalid, RateLimited, LimitsUnavailable: see ``Access``.
        """
        if self.caller is not None or self._waits:
            return
        if api_key:
            await self.admit(api_key)
        elif self._access.requires_key:
            if self._unknown is None:
                raise KeyMissing("before the file")
            if self._unknown.locked():
                raise HttpError(503, "uploads_busy", _BUSY, {"bound": UNKNOWN_UPLOADS})
            await self._slots.enter_async_context(self._unknown)
        self._waits = True


@asynccontextmanager
async def read_upload(
    request: Request, access: Access, unknown: asyncio.Semaphore | None
) -> AsyncIterator[tuple[Upload, Caller]]:
    """A file as our own routes take it, and who sends it. Raises what ``read_form`` does, and InvalidFields."""
    async with read_form(request, access, unknown) as (form, caller):
        file, name, ending = sent_file(form)
        fields = {name: _field(form, name, most) for name, most in _FIELDS.items()}
        if not fields["target"]:
            raise InvalidFields.missing("target")
        yield Upload(name, ending, fields["source"] or "auto", fields["target"], fields["model"], file), caller


@asynccontextmanager
async def read_form(
    request: Request, access: Access, unknown: asyncio.Semaphore | None, key: str = "api_key"
) -> AsyncIterator[tuple[FormData, Caller]]:
    """A multipart request with one file, and who sends it; what it keeps on disk is gone afterwards.

    The caller is looked for, and the request counted, before the body is read, or once the file begins: who may not
    send a file has at most one piece of it taken in.

    Args:
        request: whose body nobody has begun to read.
        access: finds and charges callers.
        unknown: where a key that is required may come behind the file, as some clients send it: held by each file that
            comes in before its key. None = it may not.
        key: the field that may hold it.

    Raises:
        KeyMissing, KeyInvalid, RateLimited, LimitsUnavailable: see ``_Entry``.
        BadRequest: the body is no multipart form, or has more than one file.
        InvalidFields: the key is too long.
        HttpError: another content type or character set; too many files are coming in without a key.
    """
    async with AsyncExitStack() as slots:
        entry = _Entry(access, request, unknown, slots)
        if key_before_body(request):
            await entry.admit(None)
        if (kind := content_type(request)) != "multipart/form-data":
            message = f"content type {kind[:80]!r} is not read here; send the file as multipart/form-data"
            raise unsupported_media(message)
        form = await _Form(request, entry, key).parse()
        try:
            caller = await entry.admit(_field(form, key, _MAX_KEY))
        except BaseException:
            await form.close()
            raise
    try:
        yield form, caller
    finally:
        await form.close()


class _Form(MultiPartParser):
    """Starlette's parser, which asks at the gate before it takes a file in."""

    def __init__(self, request: Request, entry: _Entry, key: str) -> None:
        pieces = self._pieces(request, entry, key)
        super().__init__(request.headers, pieces, max_files=1, max_fields=_MAX_FIELDS, max_part_size=FORM_BYTES)
        self._before_file: list[tuple[str, str | UploadFile]] | None = None

    async def parse(self) -> FormData:
        """The form. Raises BadRequest, and what the gate raises."""
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

    async def _pieces(self, request: Request, entry: _Entry, key: str) -> AsyncGenerator[bytes, None]:
        taken = 0
        async with aclosing(request.stream()) as stream:
            async for piece in stream:
                yield piece
                taken += len(piece)
                if self._before_file is not None:
                    await entry.file_begins(_field(FormData(self._before_file), key, _MAX_KEY))
                elif taken > FORM_BYTES:
                    raise BadRequest(f"the file must begin within the first {FORM_BYTES} bytes of the body")


def sent_file(form: FormData, name: str | None = None) -> tuple[IO[bytes], str, str]:
    """The file of a form, its clean name, and the ending of that.

    Args:
        form: of ``read_form``.
        name: instead of the one that the file has.

    Raises:
        InvalidFields: there is none.
        FileRefused: of a type that is not translated, by its name.
    """
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise InvalidFields.missing("file")
    stem, ending = clean_name(name or file.filename or "")
    return file.file, f"{stem}.{ending}", ending


def _field(form: FormData, name: str, most: int) -> str | None:
    value = form.get(name)
    if not isinstance(value, str):
        return None
    if len(value) > most:
        raise InvalidFields.of(name, f"must have at most {most} characters", len(value))
    return value.strip() or None


def clean_name(name: str) -> tuple[str, str]:
    """A file name as sent, as stem and ending: no folders, no characters that steer a terminal, not too long.

    Raises:
        FileRefused: the ending is of no type that is translated.
    """
    base = unicodedata.normalize("NFC", re.split(r"[/\\]", name)[-1])
    stem, dot, ending = _CONTROL.sub("", base).rpartition(".")
    if not dot or ending.lower() not in FORMATS:
        what = f"files with the file extension {'.' + ending[:20]!r}" if dot else "files without a file extension"
        known = ", ".join(f".{known}" for known in sorted(FORMATS))
        message = f"{what} are not translated here; send one of {known}"
        raise FileRefused("unsupported_file", message, {"endings": sorted(FORMATS)})
    short = stem.encode()[:_STEM_BYTES].decode(errors="ignore").strip(" .")
    return short or "file", ending.lower()
