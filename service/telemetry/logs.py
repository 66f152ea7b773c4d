"""Log lines: one JSON object each (or text for people), with the request's id. Never a text, never an address."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor

from tandem.service.settings import Settings

_CLOCK = "%Y-%m-%d %H:%M:%SZ"


def configure_logging(settings: Settings) -> None:
    """Set up structlog and the standard library's root logger alike. Called once, by the process's entry point."""
    json = settings.log_format == "json"
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True) if json else structlog.processors.TimeStamper(_CLOCK),
        structlog.processors.StackInfoRenderer(),
    ]
    # Tracebacks without local variables: those hold texts.
    plain = structlog.dev.plain_traceback
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=plain, pad_event_to=18, sort_keys=False
    )
    last: list[Processor] = [_readable, console]
    if json:
        tracebacks = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
        last = [tracebacks, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    # Its lines about starting and ending are said better by ours; what goes wrong in it is still logged.
    logging.getLogger("uvicorn.error").setLevel(max(root.level, logging.WARNING))
    logging.captureWarnings(True)
    threading.excepthook = _log_thread


def _log_thread(crash: threading.ExceptHookArgs) -> None:
    """A thread that ends with an exception says so in the log, and not in lines of its own shape."""
    if crash.exc_value is not None and not issubclass(crash.exc_type, SystemExit):
        name = crash.thread.name if crash.thread is not None else "unknown"
        where = (crash.exc_type, crash.exc_value, crash.exc_traceback)
        structlog.get_logger("tandem").error("thread_crashed", thread=name, exc_info=where)


def _readable(_: Any, __: str, line: EventDict) -> EventDict:
    """For people: names without the common prefix, and the id at the end, where it can be cut off."""
    line.pop("logger", None)
    seconds = line.get("seconds")
    if isinstance(seconds, float):
        line["seconds"] = f"{seconds:.3f}"
    ids = {name: line.pop(name) for name in ("caller", "request_id", "trace_id") if name in line}
    return {**line, **{name: value for name, value in ids.items() if value}}
