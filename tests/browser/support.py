"""A browser of the system, a server with the shipped bundles, and a page that is watched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, Route, expect, sync_playwright

from tests.shipped import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 30.0  # seconds after which a test that waits for something has failed
GERMAN = "Wo ist der nächste Bahnhof? Ich habe meinen Schlüssel im Zug vergessen."
KEY = "a-key-that-the-server-knows"
Handler = Callable[[Route], None]


def find_browser() -> str | None:
    """The system's Chromium or Chrome: the variable ``CHROMIUM``, else the first one on the path."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def browsing() -> Iterator[Browser]:
    """A headless browser."""
    executable = find_browser()
    assert executable is not None
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable)
        yield browser
        browser.close()


@contextmanager
def serving(data: Path, *arguments: str, **variables: str) -> Iterator[str]:
    """`tandem serve` with the shipped bundles on a free port; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bundles = [str(ROOT / "bundles" / name) for name in ("de-fr-en", "arxiv-title")]
    command = [sys.executable, "-m", "tandem", "serve", *bundles, "--port", str(port), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TANDEM_DATA": str(data), "TANDEM_WORKERS": "1"} | variables
    with (data / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_ready(process, address, data / "server.log")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    until = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{address}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"the server did not start: {log.read_text(encoding='utf-8')[-2000:]}")


@dataclass
class Visit:
    """A page under watch.

    Attributes:
        faults: what the browser complained about: errors in scripts, blocked by the policy, failed requests.
        foreign: requests to anywhere but the server.
        expected: statuses that the test provokes; the browser complains about them all the same.
    """

    page: Page
    address: str
    faults: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._requested)
        self.page.on("response", self._answered)

    def open(self, tab: str = "translate", **languages: str) -> Page:
        """Open a tab and wait until it is set up; languages are chosen where they are named."""
        if self.page.url != "about:blank":  # else only the fragment would change, and nothing be loaded
            self.page.goto("about:blank")
        self.page.goto(f"{self.address}/#{tab}")
        self.page.wait_for_selector("body[data-ready]")
        for name, code in languages.items():
            self.page.select_option(f"#{name}-language", code)
        return self.page

    def translate(self, text: str, source: str = "de") -> Page:
        """Open the page, have a text translated and wait for the result."""
        page = self.open(source=source)
        page.fill("#source-text", text)
        page.press("#source-text", "Control+Enter")
        page.wait_for_selector("#output .sentence")
        page.wait_for_selector("#output[aria-busy=false]")
        return page

    def mock(self, path: str, status: int = 200, body: Any = None, headers: dict[str, str] | None = None) -> None:
        """Answer requests to a path of the server."""
        if status >= 400:
            self.expected.add(status)
        self.route(path, lambda route: route.fulfill(status=status, json=body, headers=headers or {}))

    def route(self, path: str, handler: Handler) -> None:
        """Handle requests to a path of the server."""
        self.page.route(re.compile(re.escape(f"{self.address}/{path}") + r"(\?.*)?$"), handler)

    def check(self) -> None:
        """Raises AssertionError where the browser complained, or something outside was asked for."""
        assert not self.foreign
        assert not self.faults

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.faults.append(message.text)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((f"{self.address}/", f"blob:{self.address}/", "data:")):
            self.foreign.append(request.url)

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.faults.append(f"{response.status} {response.url}")


def error(code: str, message: str = "as the server says it", **more: Any) -> dict[str, Any]:
    """The body of an error."""
    return {"error": message, "code": code, "request_id": "0123456789abcdef", **more}


def texts_of(page: Page, selector: str) -> list[str]:
    """The texts of the elements that a selector finds."""
    return page.locator(selector).all_inner_texts()
