"""`tandem bench trace`: the way of one request through the code, from the application's edge and back."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from tandem.extras.laboratory.options import TraceOptions
from tandem.extras.laboratory.workload import check_servable, tandem_body, tandem_path
from tandem.extras.shared.report import console, say, table
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.app import create_app
from tandem.service.settings import Settings

PACKAGE = Path(__file__).absolute().parents[2]
FOLDERS = ("models", "service", "extras")
_WHOLE = 5.0  # seconds: a thread is left where it waits, and not in the middle of what it does
_JSON = {"content-type": "application/json"}
_INLINE = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")  # no functions of their own from Python 3.12 on


class CallRecorder:
    """Notes the calls of our functions in all threads that start after it was installed, while it is active.

    Attributes:
        calls: file (relative to the package), function, and name of the thread, in order.
    """

    def __init__(self) -> None:
        self.active = False
        self.calls: list[tuple[str, str, str]] = []
        self._folders = tuple(f"{PACKAGE / folder}/" for folder in FOLDERS)
        self._own = f"{Path(__file__).parent}/"  # what asks is no part of what is asked

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not self.active or event != "call" or code.co_name in _INLINE:
            return
        if code.co_filename.startswith(self._folders) and not code.co_filename.startswith(self._own):
            file = str(Path(code.co_filename).relative_to(PACKAGE))
            self.calls.append((file, code.co_qualname, threading.current_thread().name))

    def figures(self) -> dict[str, Any]:
        """Calls, distinct functions and their files; how often each kind of thread took over from another."""
        functions = sorted({call[:2] for call in self.calls})
        files = [
            {"file": file, "functions": len(list(own))}
            for file, own in itertools.groupby(functions, key=lambda call: call[0])
        ]
        threads = [thread for thread, _ in itertools.groupby(self.calls, key=lambda call: call[2])]
        stays = Counter(thread.rstrip("0123456789").rstrip("_-") for thread in threads)
        return {
            "calls": len(self.calls),
            "functions": len(functions),
            "files": len(files),
            "thread_changes": len(threads) - 1,
            "stays": dict(stays),
            "rows": files,
        }


def measure(options: TraceOptions) -> dict[str, Any]:
    """What :meth:`CallRecorder.figures` tells of one request, and its ``reply``.

    Raises:
        ConfigError: the bundle reads anything but one text, or the request is refused.
        BundleError: the bundle cannot be used.
    """
    bundle = Bundle.load(options.bundle)
    check_servable(bundle)
    settings = Settings(bundles=(options.bundle,), workers=1, cache_sentences=0, log_level="error")
    with redirect_stdout(sys.stderr):  # log lines: standard output is the result's
        return asyncio.run(traced(create_app(settings), tandem_path(bundle), tandem_body(bundle, options.text)))


async def traced(app: Any, path: str, body: bytes) -> dict[str, Any]:
    """Send a request twice to an application that is started here, and record the second time."""
    recorder, interval = CallRecorder(), sys.getswitchinterval()
    sys.setswitchinterval(_WHOLE)
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
        ):
            await client.post(path, content=body, headers=_JSON)
            recorder.active = True
            reply = await client.post(path, content=body, headers=_JSON)
            recorder.active = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.setswitchinterval(interval)
    if reply.status_code != 200:
        raise ConfigError(f"POST {path} must answer 200, but answered {reply.status_code}: {reply.text}")
    return {**recorder.figures(), "reply": reply.json()}


def show(result: Mapping[str, Any]) -> None:
    console().print(table("One request", {"file": "file", "functions": "functions"}, result["rows"]))
    say(
        f"{result['functions']} functions in {result['files']} files, {result['calls']} calls;"
        f" {result['thread_changes']} changes of thread, to"
        f" {', '.join(f'{thread} {count} times' for thread, count in result['stays'].items())}"
    )
