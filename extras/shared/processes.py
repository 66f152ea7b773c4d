"""Processes of our own beside the server, for what must not take its memory or its life with it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

_PIPE = asyncio.subprocess.PIPE


@asynccontextmanager
async def python_process(
    module: str, *arguments: str, environment: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A Python that runs a module which can be imported here, with pipes; killed where the block ends before it.

    Args:
        module: its name.
        arguments: that it is given.
        environment: all that it knows of ours, besides where modules are.
    """
    path = os.pathsep.join(part for part in sys.path if part)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=_PIPE,
        stdout=_PIPE,
        stderr=_PIPE,
        env={**environment, "PYTHONPATH": path, "PYTHONUTF8": "1"},
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await asyncio.shield(child.communicate())
