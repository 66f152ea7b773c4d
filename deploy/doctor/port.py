"""Whether the service's address can be listened on, and who has it otherwise."""

from __future__ import annotations

import errno
import http.client
import json
import socket
from dataclasses import dataclass
from typing import Literal

_SECONDS = 2.0  # for an answer from this machine
_REPLY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class PortFacts:
    """State of an address.

    Attributes:
        state: ``free``, ``service`` (a Tandem answers there), ``taken`` by something else, or ``unusable``.
        error: the system's words where it is not free.
    """

    host: str
    port: int
    state: Literal["free", "service", "taken", "unusable"]
    error: str = ""


def find_port(host: str, port: int) -> PortFacts:
    """Try to listen as `tandem serve` would; nothing stays open. Port 0 is always free."""
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in places:
            with socket.socket(family, kind, protocol) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return PortFacts(host, port, "service" if _is_service(host, port) else "taken", str(error.strerror))
        return PortFacts(host, port, "unusable", error.strerror or str(error))
    return PortFacts(host, port, "free")


def _is_service(host: str, port: int) -> bool:
    """Whether what listens there answers ``/healthz`` as this service does."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = http.client.HTTPConnection(here, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/healthz")
        reply = connection.getresponse()
        body = json.loads(reply.read(_REPLY_BYTES))
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return reply.status == 200 and body == {"status": "ok"} and "x-request-id" in reply.headers
