"""Spans of the work within a request, with counts and times and never a text; nothing where it is not traced.

What begins and exports a request's trace is an extra's (``service.http.parts.Tracing``); it sets the tracer that is
found here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tandem.service.engine import Decoded, Engine, Job
from tandem.service.engine.engine import Watch

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

P = ParamSpec("P")
T = TypeVar("T")

tracer_of_request: ContextVar[Tracer | None] = ContextVar("tandem_tracer", default=None)
"""Makes the spans of the request that is worked on; None = it is not traced."""


def span(name: str) -> AbstractContextManager[object]:
    """A span around what is done with it, where the request is traced."""
    tracer = tracer_of_request.get()
    return nullcontext() if tracer is None else tracer.start_as_current_span(name, record_exception=False)


def traced(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function whose runs are spans, where it is called for a request that is traced."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            with span(name):
                return function(*args, **kwargs)

        return wrapper

    return decorate


async def decode(
    engine: Engine, jobs: Sequence[Job], watch: Watch | None = None, *, begun: bool = False
) -> list[Decoded]:
    """As ``Engine.decode``; where the request is traced with the spans ``queue``, ``encode`` and ``decode``.

    Their times are those of the sentence that took longest, since the sentences of a request go through side by side.
    """
    tracer = tracer_of_request.get()
    if tracer is None or not jobs:
        return await engine.decode(jobs, watch, begun=begun)
    attributes: dict[str, str | int] = {"tandem.model": jobs[0].bundle, **_sources(jobs)}
    with tracer.start_as_current_span("engine", attributes=attributes, record_exception=False) as span:
        began = time.time_ns()
        decoded = await engine.decode(jobs, watch, begun=begun)
        targets = _targets(decoded)
        span.set_attributes(targets)
        slowest = max(decoded, key=lambda one: one.queue + one.encode + one.decode)
        for name, seconds in (("queue", slowest.queue), ("encode", slowest.encode), ("decode", slowest.decode)):
            counts = {"queue": {}, "encode": _sources(jobs), "decode": targets}[name]
            part = tracer.start_span(name, start_time=began, attributes=counts)
            began += int(seconds * 1e9)
            part.end(began)
    return decoded


def _sources(jobs: Sequence[Job]) -> dict[str, int]:
    return {"tandem.sentences": len(jobs), "tandem.source_tokens": sum(job.source_tokens for job in jobs)}


def _targets(decoded: Sequence[Decoded]) -> dict[str, int]:
    tokens = sum(len(one.hypotheses[0].tokens) for one in decoded if one.hypotheses)
    return {"tandem.target_tokens": tokens, "tandem.cached_sentences": sum(one.cached for one in decoded)}
