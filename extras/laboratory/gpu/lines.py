"""Lines of a proof, one after another in a process beside this one, none of which can take the others with it.

A line that fails leaves its reason, one that hangs is ended at its limit with all that it started, and after an error
that breaks the device for its process the next line gets a new one.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

_ENDS_WITHIN = 5.0  # seconds
_SHOWN = 1_500  # characters of a traceback

OK, FAILED, SKIPPED = "ok", "failed", "skipped"


class Missing(Exception):
    """A line cannot be run here; says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a line found.

    Attributes:
        summary: in one sentence.
        figures: by name, as JSON has them.
        met: whether it is what was to be proved.
    """

    summary: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    met: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        name: unlike that of every other.
        function: ``package.module:function``, which returns :class:`Found` or raises :class:`Missing`.
        arguments: of the function; they go to another process.
        planned: seconds that a large GPU is thought to need; with fewer left it does not begin.
        limit: seconds after which it is ended.
    """

    name: str
    function: str
    arguments: Mapping[str, Any]
    planned: float = 5.0
    limit: float = 60.0


def run_lines(lines: Iterable[Line], seconds: float) -> Iterator[dict[str, Any]]:
    """What became of each line, as it ends: ``line``, ``status``, ``seconds``, ``summary``, ``figures``.

    Args:
        lines: in order.
        seconds: for all of them; what would begin or end too late is left out, and says so.
    """
    deadline = time.monotonic() + seconds
    worker = _Worker()
    try:
        for line in lines:
            left = deadline - time.monotonic()
            if left < line.planned:
                yield _outcome(line, SKIPPED, 0.0, "no time was left")
            else:
                yield worker.run(line, left)
    finally:
        worker.end()


class _Worker:
    """The process that runs lines, started when it is needed."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Connection[Any, Any] | None = None

    def run(self, line: Line, left: float) -> dict[str, Any]:
        started, limit = time.monotonic(), min(line.limit, left)
        connection = self._connection or self._start()
        try:
            connection.send(line)
            if not connection.poll(limit):
                self.end()
                if left < line.limit:  # the time of all lines is over, which proves nothing of this one
                    return _outcome(line, SKIPPED, limit, f"no time was left after {limit:.0f} s")
                return _outcome(line, FAILED, limit, f"was ended after {limit:.0f} s")
            outcome, broken = connection.recv()
        except (EOFError, OSError):
            code = self.end()
            return _outcome(line, FAILED, time.monotonic() - started, f"its process ended with status {code}")
        if broken:
            self.end()
        found: dict[str, Any] = outcome
        return found

    def end(self) -> int | None:
        """End the process and all that it has started; its exit status, if it had ended by itself."""
        if self._process is None or self._connection is None:
            return None
        self._connection.close()
        self._process.join(0.1)
        code: int | None = self._process.exitcode
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal_group(self._process.pid, number)
            self._process.join(_ENDS_WITHIN)
        self._process = self._connection = None
        return code

    def _start(self) -> Connection[Any, Any]:
        context = multiprocessing.get_context("spawn")  # a fork would inherit what CUDA cannot share
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), name="lines")
        self._process.start()
        theirs.close()
        self._connection = ours
        return ours


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # nobody is left, or it had no time to become a leader
        return


def _serve(connection: Connection[Any, Any]) -> None:
    """Run what comes through the pipe, until it is closed."""
    os.setsid()  # what a line starts ends with it
    while True:
        try:
            line: Line = connection.recv()
        except EOFError:
            return
        connection.send(attempt(line))


def attempt(line: Line) -> tuple[dict[str, Any], bool]:
    """What became of a line run here, and whether the device is of no use to this process any more."""
    started = time.perf_counter()
    try:
        module, _, function = line.function.partition(":")
        run: Callable[..., Found] = getattr(import_module(module), function)
        found = run(**line.arguments)
        _wait_for_device()
    except Missing as missing:
        return _outcome(line, SKIPPED, time.perf_counter() - started, str(missing)), False
    except Exception as error:  # whatever a line meets must not end the others
        trace = traceback.format_exc()[-_SHOWN:]
        outcome = _outcome(line, FAILED, time.perf_counter() - started, f"{type(error).__name__}: {error}"[:_SHOWN])
        return outcome | {"traceback": trace}, _is_broken()
    status = OK if found.met else FAILED
    return _outcome(line, status, time.perf_counter() - started, found.summary, found.figures), False


def _outcome(
    line: Line, status: str, seconds: float, summary: str, figures: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "line": line.name,
        "status": status,
        "seconds": round(seconds, 2),
        "summary": summary,
        "figures": plain(figures or {}),
    }


def plain(value: Any) -> Any:
    """A value as JSON has it: what is not finite is none."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _wait_for_device() -> None:
    """An error of the device shows up here, in the line that made it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _is_broken() -> bool:
    try:
        _wait_for_device()
    except Exception:  # torch gives errors of the device several types
        return True
    return False
