"""Runs ``extras.files.child`` and waits for it, for a bounded time."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog

from tandem.extras.files.bounds import Bounds, FileRefused
from tandem.extras.shared.processes import python_process

_log = structlog.get_logger("tandem.files")
_AT_ONCE = 2
_CHILD = "tandem.extras.files.child"
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # none of ours: files may be hostile
_INTERRUPTED = tuple(-getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))
_TOO_MUCH = "the file takes too much time or memory to read or write; split it, or save it again with its own program"


@dataclass(frozen=True, slots=True)
class Contents:
    """What reading a file found: characters to translate, in so many slices, which are in a file of JSON lines."""

    characters: int
    slices: int


class Sandbox:
    """Reads and writes files in processes of their own, two at a time."""

    def __init__(self, bounds: Bounds, seconds: float = 60.0) -> None:
        """
        Args:
            bounds: of a file.
            seconds: that reading or writing a file may take.
        """
        self._bounds, self._seconds = bounds, seconds
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def read(self, name: str, target: str, source: Path, slices: Path) -> Contents:
        """Cut a file of a format, to be translated into a language, into slices.

        Raises:
            FileRefused: the file cannot be translated.
            OSError: the disk is full, or the process was interrupted.
        """
        order = {"action": "read", "format": name, "target": target, "source": str(source), "slices": str(slices)}
        report = await self._run(order)
        return Contents(report["characters"], report["slices"])

    async def write(self, name: str, target: str, source: Path, translations: Path, result: Path) -> None:
        """Write a file again with its texts replaced by those of a JSON list.

        Raises:
            FileRefused: it cannot be written.
            OSError: the disk is full, or the process was interrupted.
        """
        paths = {"source": str(source), "translations": str(translations), "result": str(result)}
        await self._run({"action": "write", "format": name, "target": target, **paths})

    async def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        request = json.dumps(order | {"bounds": asdict(self._bounds)}).encode()
        async with self._slots, python_process(_CHILD, environment=_ENVIRONMENT) as child:
            try:
                async with asyncio.timeout(self._seconds):
                    answer, faults = await child.communicate(request)
            except TimeoutError as error:
                raise FileRefused("file_too_complex", _TOO_MUCH) from error
        report = _report(answer)
        if report is None and child.returncode in _INTERRUPTED:  # with the service, by systemd or Ctrl-C
            raise OSError(errno.EINTR, "its process was interrupted")
        if report is None or "too_much" in report:
            if child.returncode not in (0, -9, -24, -25):  # killed or over a limit is the file's doing
                _log.error("file_process_failed", code=child.returncode, cause=_cause(faults))
            raise FileRefused("file_too_complex", _TOO_MUCH)
        if "refused" in report:
            raise FileRefused(**report["refused"])
        if "full" in report:
            raise OSError(*report["full"])
        return report


def _report(answer: bytes) -> dict[str, Any] | None:
    try:
        report = json.loads(answer)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _cause(faults: bytes) -> str:
    """The kind of the error in a traceback; its message could quote the file."""
    lines = faults.decode("utf-8", "replace").strip().splitlines() or [""]
    return lines[-1].partition(":")[0][:100]
