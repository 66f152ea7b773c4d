"""Files: ``/files`` of our own, ``POST /translate_file`` and ``GET /download_file/…`` as LibreTranslate has them."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import Field

from tandem.extras.files.formats import FORMATS
from tandem.extras.files.jobs import FileJobs
from tandem.extras.files.records import OPEN, FileJob
from tandem.extras.files.replies import FileStatus, FileUrl
from tandem.extras.files.serving import FilesDep
from tandem.extras.files.settings import FileSettings
from tandem.extras.files.uploads import FORM_BYTES, read_upload
from tandem.service.api.replies import DetectedLanguage
from tandem.service.callers import Access
from tandem.service.engine import Draining
from tandem.service.http.dependencies import PartsDep, counted_caller
from tandem.service.http.error_replies import HttpError
from tandem.service.http.openapi import error_responses
from tandem.service.http.parts import BodyBounds
from tandem.service.settings import Settings

router = APIRouter(tags=["files"])

_MOST_LISTED = 100
_SENT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The translated file.", "content": {"application/octet-stream": {}}}
}
_ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {
        "description": "Kept, and queued.",
        "headers": {"Location": {"schema": {"type": "string"}, "description": "Path of the job."}},
    }
}
_ID = Annotated[str, Path(max_length=64, description="Of the job, as `POST /files` returned it.")]


def body_bounds(settings: Settings) -> BodyBounds:
    """Of requests that send a file."""
    return BodyBounds(
        streamed=dict.fromkeys(("/files", "/translate_file"), settings.part(FileSettings).file_bytes + FORM_BYTES)
    )


def _form(needed: list[str]) -> dict[str, Any]:
    endings = ", ".join(f".{ending}" for ending in sorted(FORMATS))
    code = {"type": "string", "maxLength": 35}
    fields = {
        "file": {"type": "string", "format": "binary", "description": f"Its name ends in one of {endings}."},
        "source": {**code, "default": "auto", "description": "Language code; `auto` = detected, for the whole file."},
        "target": {**code, "description": "Language code to translate into."},
        "model": {"type": "string", "maxLength": 200, "description": "Model, by alias or name."},
        "api_key": {
            "type": "string",
            "maxLength": 512,
            "description": "Or `Authorization: Bearer …`. Before the file.",
        },
    }
    schema = {"type": "object", "required": needed, "properties": fields}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@router.post(
    "/files",
    status_code=202,
    response_model_exclude_none=True,
    responses=_ACCEPTED | error_responses(400, 401, 403, 404, 408, 413, 415, 422, 429, 503),
    openapi_extra=_form(["file", "target"]),
)
async def send_file(request: Request, parts: PartsDep, files: FilesDep, response: Response) -> FileStatus:
    """Have a file translated in the background. Formatting, layout, times of subtitles and the like stay.

    The answer comes once the file is read and kept: from then on a restart loses nothing. Ask for the job with
    `GET /files/{id}` until its status is `done`, and fetch the result. A caller's files are translated one after
    another; texts that somebody waits for go first.

    Where a key is asked for, it must come before the file: in `Authorization`, or as a field `api_key` ahead of it.
    Who has none, or a bad one, or is over a rate, is refused before the file is taken in. A refused file counts as a
    request too.
    """
    async with read_upload(request, parts.access, None) as (upload, caller):
        job = await files.jobs.accept(upload, caller)
    response.headers["Location"] = f"/files/{job.id}"
    return _status(job)


@router.get(
    "/files",
    response_model_exclude_none=True,
    responses=error_responses(401, 403, 422, 429, 503),
)
async def list_files(
    request: Request,
    parts: PartsDep,
    files: FilesDep,
    id: Annotated[
        list[Annotated[str, Field(max_length=64)]],
        Query(max_length=_MOST_LISTED, description="Only these; may be repeated."),
    ] = [],  # noqa: B006  # FastAPI copies it
) -> list[FileStatus]:
    """The caller's newest files, the newest first, at most 100.

    Callers without a key are many people: they see the files whose ids they name, and no others.
    """
    caller = await counted_caller(request, parts.access)
    if id:
        found = [await files.jobs.find(one, caller) for one in dict.fromkeys(id)]
        return [_status(job) for job in found if job is not None]
    if files.jobs.is_shared(caller):
        return []
    return [_status(job) for job in await files.jobs.listed(caller, _MOST_LISTED)]


@router.get(
    "/files/{id}",
    response_model_exclude_none=True,
    responses=error_responses(401, 403, 404, 422, 429, 503),
)
async def show_file(request: Request, parts: PartsDep, files: FilesDep, id: _ID) -> FileStatus:
    """How far a file is. Only who sent it, or an administrator, can ask."""
    return _status(await _find(request, parts.access, files.jobs, id))


@router.get(
    "/files/{id}/result",
    response_class=Response,
    responses=_SENT | error_responses(401, 403, 404, 409, 410, 422, 429, 503),
)
async def fetch_result(request: Request, parts: PartsDep, files: FilesDep, id: _ID) -> Response:
    """The translated file, as an attachment named like the one that was sent: `letter.docx` is `letter.en.docx`."""
    return await result_reply(files.jobs, await _find(request, parts.access, files.jobs, id))


@router.delete("/files/{id}", status_code=204, responses=error_responses(401, 403, 404, 422, 429, 503))
async def delete_file(request: Request, parts: PartsDep, files: FilesDep, id: _ID) -> None:
    """Cancel a file that is not finished, and delete what is kept of it; delete a finished one altogether.

    A cancelled file leaves the running batch within one step. Its status can still be asked for until it expires.
    """
    await files.jobs.remove(await _find(request, parts.access, files.jobs, id))


@router.post(
    "/translate_file",
    tags=["LibreTranslate"],
    responses=error_responses(400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503, 504),
    openapi_extra=_form(["file", "source", "target"]),
)
async def translate_file(request: Request, parts: PartsDep, files: FilesDep) -> FileUrl:
    """Translate a file and wait for it, as LibreTranslate does: for at most as long as a request may take.

    What takes longer is a 504 that names the job, which goes on: see `GET /files/{id}`. It is cancelled where the
    client leaves, or the service shuts down.

    Where a key is asked for, it should come before the file, as for `POST /files`. A field `api_key` behind the file
    is read too, but few such files may come in at a time; further ones get 503.
    """
    until = asyncio.get_running_loop().time() + parts.settings.request_timeout
    async with read_upload(request, parts.access, files.unknown_uploads) as (upload, caller):
        job = await files.jobs.accept(upload, caller)
    try:
        done = await files.jobs.wait(job, max(0.0, until - asyncio.get_running_loop().time()))
    except TimeoutError as error:
        seconds = f"{parts.settings.request_timeout:g} s"
        message = (
            f"the file was not finished within {seconds} and is still being translated as job {job.id}; ask for it "
            f"with GET /files/{job.id}"
        )
        raise HttpError(504, "deadline", message, {"id": job.id}) from error
    except (asyncio.CancelledError, Draining):
        await asyncio.shield(files.jobs.remove(job))
        raise
    if done is None or done.status != "done":
        message = (done.error if done else None) or "the file was deleted before it was finished"
        raise HttpError(500, "file_failed", message)
    name = quote(f"{done.download}.{done.result_name}", safe="")
    return FileUrl(translatedFileUrl=str(request.url_for("download_file", name=name)))


@router.get(
    "/download_file/{name}",
    tags=["LibreTranslate"],
    name="download_file",
    response_class=Response,
    responses=_SENT | error_responses(404, 410, 422, 503),
)
async def download_file(files: FilesDep, name: Annotated[str, Path(max_length=400)]) -> Response:
    """A translated file, to whoever knows its address, until it expires."""
    job = await files.jobs.of_download(name.partition(".")[0])
    if job is None:
        raise _not_found()
    return await result_reply(files.jobs, job)


async def _find(request: Request, access: Access, jobs: FileJobs, id: str) -> FileJob:
    job = await jobs.find(id, await counted_caller(request, access))
    if job is None:
        raise _not_found()
    return job


def _not_found() -> HttpError:
    """No job or result of that name, or none of the caller's: which of them is nobody's business."""
    return HttpError(404, "file_not_found", "there is no such file here, or it is not yours")


async def result_reply(jobs: FileJobs, job: FileJob) -> Response:
    """The result of a job as an attachment.

    Raises:
        HttpError: there is none, or none yet.
        FileRefused: it is gone, or damaged.
        StorageError: it cannot be read now.
    """
    if job.status in OPEN:
        message = f"the file is not translated yet, but {job.progress:.0%} of it; try again later"
        raise HttpError(409, "file_not_ready", message)
    if job.status == "failed":
        raise HttpError(409, "file_not_ready", f"the file could not be translated: {job.error}")
    path, stat = await jobs.result(job)
    headers = {"Content-Disposition": _disposition(job.result_name)}
    return FileResponse(path, headers=headers, media_type=FORMATS[job.format].media_type, stat_result=stat)


def _disposition(name: str) -> str:
    """A header that any client can read: the name in ASCII, and as it is in UTF-8."""
    plain = "".join(one if one.isascii() and (one.isalnum() or one in " ._-()+,") else "_" for one in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _status(job: FileJob) -> FileStatus:
    """What a job looks like from outside: its record without what is nobody else's business, and its result."""
    done, detected = job.status == "done", None
    if job.confidence is not None:
        detected = DetectedLanguage(language=job.source, confidence=round(job.confidence, 2))
    shown = {
        "progress": round(job.progress, 4),
        "detectedLanguage": detected,
        "result": f"/files/{job.id}/result" if done else None,
        "result_name": job.result_name if done else None,
    }
    return FileStatus.model_validate(asdict(job) | shown)
