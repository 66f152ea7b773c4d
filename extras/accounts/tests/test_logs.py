"""Log lines hold no text, no key and no client address, at any level, whatever route is asked and however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tandem.extras.accounts.tests.talkative import CRASHING
from tests.service.support import PATIENCE
from tests.shipped import ROOT

TEXT = "Zwetschgendatschi"
KEY = "tandem_deadbeef_" + "Kk7" * 14 + "K"
OTHER_KEY = "another-secret-of-a-client"
NEAR, FAR = "127.0.0.2", "203.0.113.77"
"""Where the client connects from, and where it says that it comes from."""
MARKS = (TEXT, KEY[16:], "Kk7Kk7", OTHER_KEY, NEAR, FAR)
HEADERS = {
    "Authorization": f"Bearer {KEY}",
    "X-Forwarded-For": FAR,
    "Forwarded": f"for={FAR}",
    "Referer": f"https://example.org/{TEXT}",
    "Cookie": f"session={OTHER_KEY}",
    "User-Agent": f"{TEXT}/1.0",
}
FIELDS: dict[str, Any] = {
    "q": TEXT, "text": [TEXT], "translation": TEXT, "source": "de", "target": "en", "target_lang": "EN", "name": TEXT,
    "source_lang": "DE", "entries": f"{TEXT}\t{TEXT}", "entries_format": "tsv",
}  # fmt: skip


class Program:
    """The running service and what it has logged."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tandem.extras.accounts.tests.talkative", str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._url = ""
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if '"listening"' in line:
                self._url = json.loads(line)["url"]
                self._listening.set()
        self._listening.set()

    @property
    def url(self) -> str:
        """Once it listens."""
        assert self._listening.wait(2 * PATIENCE)
        assert self._url, "".join(self.lines)
        return self._url

    def end(self) -> int:
        """Its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(2 * PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def close(self) -> None:
        """Whatever it was doing."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    running = Program(tmp_path)
    try:
        yield running
    finally:
        running.close()


def ask_everything(client: httpx.Client, *, briefly: bool = False) -> dict[int, int]:
    """Every route of the document, in every encoding it reads and some that it does not. Returns counts by status."""
    paths = client.get("/openapi.json").json()["paths"]
    files = {"file": (f"{TEXT}.txt", TEXT.encode()), **{name: (None, str(value)) for name, value in FIELDS.items()}}
    bodies: tuple[dict[str, Any], ...] = (
        {"json": FIELDS},
        {"json": {"q": TEXT, "source": "de", "target": "en", "api_key": OTHER_KEY}},
        {"json": {"q": TEXT}},
        {"json": {"text": [TEXT], "target_lang": "EN"}},
        {"json": {"q": [TEXT] * 2, "source": "auto", "target": "en", "stream": True, "details": True}},
        {"json": {"q": f"<p>{TEXT}</p>", "source": "de", "target": "en", "format": "html", "protect": [TEXT]}},
        {"json": {"q": TEXT, "source": TEXT, "target": TEXT, "model": TEXT, "glossary": {TEXT: TEXT}}},
        {"json": {"q": TEXT * 1000, "source": "de", "target": "en"}},
        {"json": {"q": f"{CRASHING} {TEXT}", "source": "de", "target": "en"}},
        {"data": FIELDS},
        {"files": files},
        {"params": {**FIELDS, "api_key": OTHER_KEY}},
        {"content": f'{{"q": "{TEXT}', "headers": {"Content-Type": "application/json"}},
        {"content": f"{TEXT}\xff".encode("latin-1"), "headers": {"Content-Type": "application/json"}},
        {"content": TEXT, "headers": {"Content-Type": "text/csv"}},
        {"content": f"--x\r\n{TEXT}", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
    )
    statuses: dict[int, int] = {}
    for path, operations in paths.items():
        for method in operations:
            for body in (
                bodies[: 2 if briefly else None] if method in ("post", "put", "patch") else ({}, {"params": FIELDS})
            ):
                response = client.request(method, re.sub(r"\{\w+\}", TEXT, path), **body)
                statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
    return statuses


def misbehave(url: str) -> None:
    """What no client library sends."""
    address = (httpx.URL(url).host, httpx.URL(url).port)
    name = f"X-Request-ID: {TEXT} {FAR}\r\n"
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\n{name}Content-Type: application/json\r\n"
    for message in (
        f"{TEXT}\r\n\r\n",
        f"GET /{TEXT} HTTP/1.1\r\nX: {'a' * 40_000}\r\n\r\n",
        f"{head}Content-Length: 10000\r\n\r\n{TEXT}",
        f"{head}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        f"{head}Transfer-Encoding: chunked\r\n\r\n{TEXT}",
    ):
        with socket.create_connection(address, PATIENCE, (NEAR, 0)) as connection, suppress(OSError):
            connection.sendall(message.encode())
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass


def test_no_line_says_who_sent_what(program: Program) -> None:
    transport = httpx.HTTPTransport(local_address=NEAR)
    with httpx.Client(transport=transport, base_url=program.url, headers=HEADERS, timeout=PATIENCE) as client:
        known = ask_everything(client, briefly=True)
        client.headers.pop("Authorization")
        anonymous = ask_everything(client)
        misbehave(program.url)
        metrics = client.get("/metrics").text
    assert program.end() == 0
    assert known[403] > 10  # the key is none of this server's
    assert min(anonymous.get(status, 0) for status in (200, 400, 404, 413, 415, 422, 500)) > 0
    lines = [json.loads(line) for line in program.lines]
    assert {"request", "listening", "stopped"} <= {line["event"] for line in lines}
    assert any(line["level"] == "error" for line in lines)
    for line in [*program.lines, *metrics.splitlines()]:
        for mark in MARKS:
            assert mark not in line, line[:2000]
            assert mark.lower() not in line.lower(), line[:2000]
