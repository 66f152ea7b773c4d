"""HTTP servers of a test's own, each in a thread and on a free port."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Writes no log."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class _Server(ThreadingHTTPServer):
    block_on_close = False
    daemon_threads = True
    request_queue_size = 64  # connections that wait to be accepted: with the usual 5 some are tried again after 1 s


@contextmanager
def listening(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a server that answers until the block ends, without a slash at the end."""
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The URL of a server that has GET requests answered so, until the block ends."""

    class Answering(Handler):
        def do_GET(self) -> None:
            answer(self)

    with listening(Answering) as url:
        yield url


def send_rest(request: BaseHTTPRequestHandler, content: bytes, first: int, *, tag: str, stop: int | None) -> None:
    """Answer with a file from a byte on, or all of it from 0; ``stop``: how many bytes come of those promised."""
    rest = content[first:]
    request.send_response(206 if first else 200)
    request.send_header("ETag", tag)
    request.send_header("Content-Length", str(len(rest)))
    if first:
        request.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
    request.end_headers()
    with suppress(ConnectionError):  # of who has read enough
        request.wfile.write(rest[:stop])
