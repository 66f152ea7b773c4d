"""The text service in this process, for callers that wait: files, test sets, and programs that import Tandem.

A text goes the way of ``POST /translate`` (``translation.texts``), so that it becomes the same everywhere.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import structlog

from tandem.models.command import LARGEST_BEAM
from tandem.service.bundles.loading import OpenBundle
from tandem.service.engine import Decoded, DecodingFailed, Draining, Engine, EngineOptions, Job, SchedulerLimits
from tandem.service.translation.requests import NO_CONTEXT, Context, SummarizeTask, TranslateTask
from tandem.service.translation.results import DecodeResult
from tandem.service.translation.texts import TextService

T = TypeVar("T")

_YEAR = 3.2e7  # seconds
SENTENCES = 64
"""Of a batch on a CPU."""
_TOKENS, _JOINING = 128, 4_096  # for each sentence of a batch; those that join such a batch at once


@dataclass(slots=True, kw_only=True)
class LocalLimits:
    """Next to none: who calls is who waits. ``RequestLimits`` says what each is of."""

    max_characters: int = sys.maxsize
    max_summary_characters: int = sys.maxsize
    max_texts: int = sys.maxsize
    max_markup_depth: int = 200
    max_markup_elements: int = sys.maxsize
    max_beam_size: int = LARGEST_BEAM
    max_decoding_cost: int = sys.maxsize
    bulk_characters: int = sys.maxsize
    request_timeout: float = _YEAR
    summary_depth: int = 3
    text_threads: int = 1
    pivot: bool = True
    pivot_languages: tuple[str, ...] = ()
    rerank: Literal["never", "bulk", "always"] = "never"
    stages: Literal["bundle", "off"] = "bundle"
    fidelity: bool = True


class LocalService:
    """Answers requests in the calling thread's time. Thread-safe; ``close`` it, or use it in a ``with`` statement.

    Each of its answers raises what ``TextService`` raises, DeviceLost where a GPU does not work any more, and Draining
    where it is closed.

    Attributes:
        texts: the text service, for what needs no decoding.
        engine: its engine.
    """

    def __init__(
        self,
        opened: Iterable[OpenBundle],
        limits: LocalLimits | None = None,
        *,
        shortlist: bool = False,
        workers: int = 1,
        batch_sentences: int = SENTENCES,
    ) -> None:
        """
        Args:
            opened: what is to be served.
            limits: of a request; the defaults bound nothing but the beam.
            shortlist: whether bundles that have a lexical shortlist use it.
            workers: threads that decode.
            batch_sentences: of one batch; a GPU takes more.
        """
        limits_of_batches = SchedulerLimits(
            max_queue_tokens=1 << 60,
            max_join_tokens=max(_JOINING, batch_sentences * _JOINING // SENTENCES),
            max_batch_sentences=batch_sentences,
            max_batch_tokens=batch_sentences * _TOKENS,
        )
        self.engine = Engine(EngineOptions(workers=workers, limits=limits_of_batches))
        for one in opened:
            self.engine.add(one.bundle, one.graphs, one.backend, shortlist=shortlist)
        self.texts = TextService(self.engine, limits or LocalLimits())
        self._closed, self._closing = False, threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tandem-local", daemon=True)
        self.engine.start()
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def translate(self, request: TranslateTask, context: Context = NO_CONTEXT) -> DecodeResult:
        """Translate texts."""
        return self._wait(self.texts.translate(request, context))

    def summarize(self, request: SummarizeTask) -> DecodeResult:
        """Summarize texts."""
        return self._wait(self.texts.summarize(request))

    def decode(self, jobs: Sequence[Job]) -> list[Decoded]:
        """Decode sentences as they are given."""
        return self._wait(self.engine.decode(jobs))

    def close(self) -> None:
        """Let go of the bundles; what is being decoded is given up. A second call does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self.engine.stop(0.0)
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self.texts.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, answer: Coroutine[Any, Any, T]) -> T:
        with self._closing:  # what the loop is given before it is closed is given up, and nothing comes later
            if self._closed:
                answer.close()
                raise Draining
            future = asyncio.run_coroutine_threadsafe(answer, self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise Draining from error
        except DecodingFailed as error:
            lost = self.engine.dispatcher.lost
            if lost is None:
                raise
            raise lost from error
        except BaseException:  # such as Ctrl-C
            future.cancel()
            raise


def log_quietly() -> None:
    """For commands, whose standard output is their result: what is logged goes to loggers that nobody hears."""
    if not structlog.is_configured():
        factory, wrapper = structlog.stdlib.LoggerFactory(), structlog.stdlib.BoundLogger
        structlog.configure(logger_factory=factory, wrapper_class=wrapper)
        logging.getLogger("tandem").addHandler(logging.NullHandler())


async def _cancel_others() -> None:
    """Give up all that is being done in this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
