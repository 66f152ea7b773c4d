"""Takes the address before anything else is done: what cannot listen should say so at once, in one line."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from tandem.models.errors import ConfigError, TandemError

_log = structlog.get_logger("tandem.server")
_OTHER_FILES = 500  # beside connections: bundles, databases, uploads and their processes
_ELSEWHERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class AddressTaken(TandemError):
    """Another program listens there."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that are bound to every address of a host; connections are refused until they are served.

    Args:
        host: an address or a name; ``0.0.0.0`` and ``::`` mean all of one family.
        port: 0 = any free one, the same for all addresses.

    Raises:
        AddressTaken: another program listens there.
        ConfigError: there is no such address on this machine, or it may not be used.
    """
    sockets: list[socket.socket] = []
    try:
        for family, address in _addresses(host, port):
            taken = address[1] or (sockets[0].getsockname()[1] if sockets else 0)
            try:
                sockets.append(_bound(family, (address[0], taken, *address[2:])))
            except OSError as error:
                # A name may stand for addresses of a family that this machine does not use.
                if error.errno not in _ELSEWHERE or not sockets:
                    raise
    except OSError as error:
        for one in sockets:
            one.close()
        raise _refusal(error, host, port) from error
    return sockets


def allow_files(connections: int) -> None:
    """Raise the limit of open files, which shells and systemd set low, to what so many connections need.

    Beyond it connections are reset, those of probes and Prometheus too, and nothing says why. Where the system allows
    less, the log has a warning.
    """
    try:
        import resource
    except ImportError:  # not on every system
        return
    needed = 2 * connections + _OTHER_FILES  # of twice as many, further ones are closed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):  # systems may have a further bound
        allowed = soft
    if allowed < needed:
        remedy = "raise the hard limit (ulimit -Hn, LimitNOFILE, nofile), or lower max_connections"
        _log.warning("few_open_files", allowed=allowed, needed=needed, remedy=remedy)


def duplicates(listening: Sequence[socket.socket]) -> list[socket.socket]:
    """The same sockets once more, as many as files may still be open: closing the first then closes nothing yet."""
    twice: list[socket.socket] = []
    with suppress(OSError):
        for one in listening:
            twice.append(socket.socket(fileno=os.dup(one.fileno())))
    return twice


def accept_waiting(listening: Sequence[socket.socket], at_most: int) -> list[socket.socket]:
    """The connections that the kernel has taken in and nobody has accepted yet. Never waits.

    Closing what listens would reset them, which a client cannot tell from a request that was lost.

    Args:
        listening: sockets that do not block.
        at_most: connections of each; who floods the service must not keep it from ending.
    """
    waiting: list[socket.socket] = []
    for one in listening:
        for _ in range(at_most):
            try:
                waiting.append(one.accept()[0])
            except ConnectionAbortedError:  # its client has left
                continue
            except OSError:  # none is left, or no more files may be open
                break
    return waiting


@contextmanager
def closing_all(sockets: list[socket.socket]) -> Iterator[list[socket.socket]]:
    """Close all of them at the end of the block."""
    try:
        yield sockets
    finally:
        for one in sockets:
            one.close()


class Tls:
    """What a server needs to answer HTTPS: TLS 1.2 or newer, as Python's defaults have it."""

    def __init__(self, certificate: Path | None, key: Path | None, handshake_seconds: float) -> None:
        """Read both files; a handshake must be done in some seconds.

        Raises:
            ConfigError: a file is missing, or they do not belong together.
        """
        if certificate is None or key is None:
            raise ConfigError("tls_certificate and tls_key go together, but only one of them is set")
        self._files = certificate, key
        self.handshake_seconds = handshake_seconds
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.set_alpn_protocols(["http/1.1"])
        self.read()

    def read(self) -> None:
        """Read both files again, for the connections to come. Raises ConfigError; then the former stay in use."""
        certificate, key = self._files
        spare = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)  # half of a pair must not get into the other one
        try:
            for context in (spare, self.context):
                context.load_cert_chain(certificate, key, password=_refused_password)
        except OSError as error:  # so are those of TLS
            reason = error.strerror or str(error)
            raise ConfigError(f"cannot use tls_certificate {certificate} with tls_key {key}: {reason}") from error


def _refused_password() -> str:
    """Instead of a question on the terminal, which nobody reads."""
    raise ConfigError("tls_key asks for a password; take it away with 'openssl pkey -in KEY -out PLAIN'")


def url_of(sockets: Sequence[socket.socket], scheme: str = "http") -> str:
    """Where the first of them listens, for people."""
    host, port = sockets[0].getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _addresses(host: str, port: int) -> list[tuple[int, tuple[str, int]]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))  # type: ignore[misc]


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)
    except OSError:
        one.close()
        raise
    return one


def _refusal(error: OSError, host: str, port: int) -> TandemError:
    where = f"cannot listen on {host} port {port}"
    if error.errno == errno.EADDRINUSE:
        return AddressTaken(f"{where}: another program does; stop it, or set another port (0 = any free one)")
    if error.errno == errno.EACCES:
        return ConfigError(f"{where}: it is not allowed to; ports below 1024 often need a privilege")
    reason = "there is no such host" if isinstance(error, socket.gaierror) else error.strerror or str(error)
    return ConfigError(f"{where}: {reason}; set host to an address of this machine")
