"""DeepL's routes for documents, over our file jobs: the document's id is the job's, its key the name of the result."""

from __future__ import annotations

import secrets
import time
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from tandem.extras.dialects.deepl.document import deepl_body, deepl_errors, document_form
from tandem.extras.dialects.deepl.intake import fields_of_form
from tandem.extras.dialects.deepl.routes import keyed, note, traced
from tandem.extras.dialects.deepl.schemas import DocumentHandle, DocumentKey, DocumentRequest, DocumentStatus
from tandem.extras.dialects.deepl.translate import named_glossaries, no_glossary, not_supported, without_effect
from tandem.extras.files.disk import Upload
from tandem.extras.files.formats import FORMATS
from tandem.extras.files.jobs import FileJobs
from tandem.extras.files.records import OPEN, FileJob
from tandem.extras.files.routes import result_reply
from tandem.extras.files.serving import FilesDep
from tandem.extras.files.settings import FileSettings
from tandem.extras.files.uploads import FORM_BYTES, read_form, sent_file
from tandem.service.callers import Caller
from tandem.service.errors import GlossaryNotFound, LanguageNotServed, PairNotServed
from tandem.service.http.dependencies import PartsDep
from tandem.service.http.error_replies import HttpError, InvalidFields
from tandem.service.http.intake import validate
from tandem.service.http.parts import BodyBounds, HttpPart
from tandem.service.settings import Settings
from tandem.service.translation.requests import AUTO

_SOON = 1.0
"""Seconds that a status waits for a document that is nearly done: DeepL's clients ask again only after five."""

router = APIRouter(prefix="/v2/document", tags=["DeepL documents"], dependencies=[Depends(traced)])
Identifier = Annotated[str, Path(alias="document_id", max_length=64)]
Keyed = Annotated[tuple[Caller, DocumentKey], keyed(DocumentKey)]


@router.post("", responses=deepl_errors(400, 403, 408, 413, 429, 456, 503), openapi_extra=document_form())
async def upload(request: Request, parts: PartsDep, files: FilesDep, response: Response) -> DocumentHandle:
    """Have a document translated in the background; the formats are those of `POST /files`.

    Where a key is asked for, it must come before the file: in `Authorization`, or as a field `auth_key` ahead of it.
    """
    async with read_form(request, parts.access, None, "auth_key") as (form, caller):
        fields = validate(DocumentRequest, fields_of_form(form.multi_items(), DocumentRequest), strict=False)
        file, name, ending = sent_file(form, fields.filename)
        made, asked = FORMATS[ending].result or ending, fields.output_format
        if asked and asked.lower().removeprefix(".") != made:
            why = "as the document is" if made == ending else f"which is what a {ending} becomes"
            raise InvalidFields.of("output_format", f"must be {made}, {why}", asked)
        named = named_glossaries(fields)
        source = fields.source_lang or AUTO
        sent = Upload(name, ending, source, fields.target_lang, None, file, named, likeliest=True, differ=True)
        try:
            job = await files.jobs.accept(sent, caller)
        except (LanguageNotServed, PairNotServed) as error:
            raise not_supported(error, fields.target_lang) from error
        except GlossaryNotFound as error:
            raise no_glossary(error, named) from error
    taken = () if job.confidence is None else (f"source_lang: taken to be {job.source}, {job.confidence:.0f}% sure",)
    other = () if asked or made == ending else (f"output_format: the result is a {made}, which a {ending} becomes",)
    note(response, (*without_effect(fields), *taken, *other))
    return DocumentHandle(document_id=job.id, document_key=str(job.download))


@router.post(
    "/{document_id}",
    response_model_exclude_none=True,
    responses=deepl_errors(400, 403, 404, 429, 503),
    openapi_extra=deepl_body(DocumentKey),
)
async def status(given: Keyed, identifier: Identifier, files: FilesDep) -> DocumentStatus:
    """How far a document is."""
    caller, fields = given
    job = await _find(files.jobs, caller, identifier, fields.document_key)
    try:
        job = await files.jobs.wait(job, _SOON) or job
    except TimeoutError:
        job = await files.jobs.find(job.id, caller) or job
    return _status(job)


@router.post("/{document_id}/result", response_class=Response, responses=deepl_errors(400, 403, 404, 429, 503))
async def result(given: Keyed, identifier: Identifier, files: FilesDep) -> Response:
    """The translated document, as often as it is asked for, until its time is over."""
    caller, fields = given
    job = await _find(files.jobs, caller, identifier, fields.document_key)
    if job.status in OPEN:
        raise HttpError(503, "document_not_ready", "Document not ready: ask for its status until that is done")
    return await result_reply(files.jobs, job)


async def _find(jobs: FileJobs, caller: Caller, identifier: str, key: str) -> FileJob:
    """Raises HttpError where there is no such document of the caller's, or it has another key."""
    job = await jobs.find(identifier, caller)
    if job is None or job.download is None or not secrets.compare_digest(job.download.encode(), key.encode()):
        raise HttpError(404, "file_not_found", "there is no such document, or it is not yours, or its key is wrong")
    return job


def _status(job: FileJob) -> DocumentStatus:
    if job.status in OPEN:
        spent, done = max(0.0, time.time() - job.created), job.progress  # clocks may be set back
        left = round(spent * (1 - done) / done) if done else None
        return DocumentStatus(
            document_id=job.id, status="queued" if job.status == "queued" else "translating", seconds_remaining=left
        )
    if job.status == "done":
        return DocumentStatus(document_id=job.id, status="done", seconds_remaining=0, billed_characters=job.characters)
    message = job.error or f"the document is {job.status}"
    return DocumentStatus(document_id=job.id, status="error", error_message=message)


def _bounds(settings: Settings) -> BodyBounds:
    return BodyBounds(streamed={"/v2/document": settings.part(FileSettings).file_bytes + FORM_BYTES})


_ABOUT = "Documents, as DeepL's clients send and fetch them; see `files`."
HTTP = HttpPart(
    routes=router.routes,
    bodies=_bounds,
    tags=({"name": "DeepL documents", "description": _ABOUT},),
    models=(DocumentKey,),
)
