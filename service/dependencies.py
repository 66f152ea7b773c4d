"""What routes are given: the parts of the running service, and the request's id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from service.engine import Engine
from service.intake import read_fields
from service.metrics import Metrics
from service.readiness import Readiness
from service.schemas import PosteditRequest, SummarizeRequest, TranslateRequest
from service.texts import TextService


@dataclass(frozen=True, slots=True)
class Parts:
    """The running service; made by the app's lifespan."""

    engine: Engine
    texts: TextService
    readiness: Readiness
    metrics: Metrics


async def parts(request: Request) -> Parts:
    found: Parts = request.app.state.parts
    return found


async def request_id(request: Request) -> str:
    return str(request.state.request_id)


async def translate_request(request: Request) -> TranslateRequest:
    return await read_fields(request, TranslateRequest)


async def postedit_request(request: Request) -> PosteditRequest:
    return await read_fields(request, PosteditRequest)


async def summarize_request(request: Request) -> SummarizeRequest:
    return await read_fields(request, SummarizeRequest)


PartsDep = Annotated[Parts, Depends(parts)]
RequestId = Annotated[str, Depends(request_id)]
TranslateFields = Annotated[TranslateRequest, Depends(translate_request)]
PosteditFields = Annotated[PosteditRequest, Depends(postedit_request)]
SummarizeFields = Annotated[SummarizeRequest, Depends(summarize_request)]
