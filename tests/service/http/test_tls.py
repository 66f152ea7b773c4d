"""HTTPS without a proxy: certificates of files, read again when they are renewed."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme
import uvicorn
from structlog.testing import capture_logs

from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.service.app import create_app
from tandem.service.http.connections import ConnectionBounds, bounded_protocol
from tandem.service.http.listening import Tls, listen
from tandem.service.server import DrainingServer, tls_of
from tandem.service.settings import Settings
from tests.service.support import PATIENCE, CopyGraphs, make_engine

HANDSHAKE = 0.3  # seconds


def write_pair(folder: Path) -> trustme.CA:
    """A new certificate for localhost and its key in a folder's ``c.pem`` and ``k.pem``; who trusts its issuer."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(folder / "c.pem")
    issued.private_key_pem.write_to_path(folder / "k.pem")
    return authority


@dataclass
class Secure:
    """A server and the folder of its certificate."""

    folder: Path
    authority: trustme.CA
    port: int

    async def status(self, authority: trustme.CA) -> int:
        """Of a reply to a new client that trusts an authority."""
        context = ssl.create_default_context()
        authority.configure_trust(context)
        async with httpx.AsyncClient(verify=context, timeout=PATIENCE, trust_env=False) as client:
            return (await client.get(f"https://localhost:{self.port}/healthz")).status_code


@pytest.fixture
async def secure(bundles: dict[str, Bundle], tmp_path: Path) -> AsyncIterator[Secure]:
    authority = write_pair(tmp_path)
    engine = make_engine((bundles["de-en"], CopyGraphs(bundles["de-en"].target_vocabulary.size)))
    http = bounded_protocol(ConnectionBounds(100, 4096, PATIENCE, PATIENCE))
    config = uvicorn.Config(create_app(Settings(), engine), log_config=None, http=http, timeout_graceful_shutdown=5)
    server = DrainingServer(config, engine, PATIENCE, Tls(tmp_path / "c.pem", tmp_path / "k.pem", HANDSHAKE))
    sockets = listen("127.0.0.1", 0)
    serving = asyncio.ensure_future(server.serve(sockets))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield Secure(tmp_path, authority, sockets[0].getsockname()[1])
    finally:
        server.handle_exit(signal.SIGTERM, None)
        await serving


@pytest.mark.anyio
async def test_a_renewed_certificate_is_read_and_a_broken_one_is_not(secure: Secure) -> None:
    assert await secure.status(secure.authority) == 200
    renewed = write_pair(secure.folder)
    with pytest.raises(httpx.ConnectError):
        await secure.status(renewed)  # not before the signal
    os.kill(os.getpid(), signal.SIGHUP)
    await asyncio.sleep(0.05)
    assert await secure.status(renewed) == 200
    (secure.folder / "k.pem").write_text("nothing")
    with capture_logs() as logs:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.05)
    assert [line["event"] for line in logs] == ["certificate_not_read"]
    assert await secure.status(renewed) == 200


@pytest.mark.anyio
@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"])
async def test_who_makes_no_handshake_gets_no_reply(secure: Secure, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", secure.port)
    writer.write(sent)
    async with asyncio.timeout(PATIENCE):
        assert b"HTTP" not in await reader.read()
    writer.close()


def _lock(folder: Path) -> None:
    from cryptography.hazmat.primitives import serialization as pem

    key = pem.load_pem_private_key((folder / "k.pem").read_bytes(), None)
    hidden = pem.BestAvailableEncryption(b"secret")
    (folder / "k.pem").write_bytes(key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, hidden))


@pytest.mark.parametrize(
    ("spoil", "names", "reason"),
    [
        (lambda folder: None, ("c.pem", None), "tls_certificate and tls_key go together"),
        (lambda folder: (folder / "k.pem").unlink(), ("c.pem", "k.pem"), "No such file"),
        (lambda folder: trustme.CA().private_key_pem.write_to_path(folder / "k.pem"), ("c.pem", "k.pem"), "MISMATCH"),
        (_lock, ("c.pem", "k.pem"), "asks for a password"),
    ],
)
def test_a_pair_that_is_none_is_refused(
    spoil: Callable[[Path], object], names: tuple[str, str | None], reason: str, tmp_path: Path
) -> None:
    write_pair(tmp_path)
    spoil(tmp_path)
    certificate, key = (name and tmp_path / name for name in names)
    with pytest.raises(ConfigError, match=reason):
        tls_of(Settings(tls_certificate=certificate or None, tls_key=key or None))
