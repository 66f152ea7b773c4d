"""Keys of another server, which replicas take over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tandem.extras.accounts.access import open_keys
from tandem.extras.accounts.keys import CallerLimits, KeyStore
from tandem.extras.cluster.arguments import Arguments
from tandem.extras.cluster.tests.test_parts import Alone, translate, versions
from tandem.service.settings import Settings
from tests.service.support import running

__all__ = ["versions"]


def test_keys_of_another_server_are_taken_over(versions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_DATA", str(tmp_path / "data"))
    other = open_keys(Settings(data=tmp_path / "other"))
    secret = KeyStore(other).add("mastodon", CallerLimits()).secret
    other.close()
    replica = Alone(Arguments(settings={"bundles": str(versions), "require_key": True}))

    async def check() -> None:
        async with running(replica.service) as client:
            assert (await translate(client, secret)).status_code == 403
            await replica.reconfigure({"keys": str(tmp_path / "other" / "keys.db")})
            assert (await translate(client, secret)).status_code == 200

    asyncio.run(check())
    assert (tmp_path / "data" / "replica-0" / "keys.db").exists()
