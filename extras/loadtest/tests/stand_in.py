"""A service that translates into capital letters, as load tests see it: a pair of languages, and texts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.deploy import listening


@dataclass
class StandIn:
    """What the service is to do, and what it was sent.

    Attributes:
        languages: reply to ``GET /languages``.
        rejections: requests for translations that are rejected first.
        reply: what is answered instead of a translation.
        status: of its answers to requests for translations that are not rejected.
        protocol: what is sent instead of any answer.
        sent: bodies of the requests for translations, in order of arrival.
        headers: of the last one.
        url: once it runs.
    """

    languages: Any = field(default_factory=lambda: [{"code": "de", "name": "German", "targets": ["en"]}])
    rejections: int = 0
    reply: bytes | None = None
    status: int = 200
    protocol: bytes = b""
    sent: list[dict[str, Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def translate(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        with self.lock:
            fields = json.loads(body)
            self.sent.append(fields)
            self.headers = headers
            if self.rejections:
                self.rejections -= 1
                return 503, b'{"code": "overloaded"}'
        q = fields["q"]
        answer = [text.upper() for text in q] if isinstance(q, list) else q.upper()
        return self.status, json.dumps({"translatedText": answer}).encode() if self.reply is None else self.reply


@contextmanager
def running(service: StandIn) -> Iterator[StandIn]:
    """The service in a thread, on a port of its own."""

    class Handler(listening.Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if service.protocol:
                self.wfile.write(service.protocol + b"\r\n")
                self.close_connection = True
            else:
                self._answer(200, json.dumps(service.languages).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._answer(*service.translate(body, headers))

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            if status == 503:
                self.send_header("retry-after", "1")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with listening.listening(Handler) as service.url:
        yield service
