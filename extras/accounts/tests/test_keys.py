"""The key store: what is kept of a key, and which keys hold."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.extras.accounts.keys import MIGRATIONS, CallerLimits, KeyStore, Snapshot
from tandem.extras.shared.database import Database
from tandem.models.errors import ConfigError
from tests.service.support import Clock

DAY = 86_400.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[KeyStore]:
    with closing(Database(tmp_path / "keys.db", MIGRATIONS)) as database:
        yield KeyStore(database, clock)


def valid(store: KeyStore, secret: str, now: float) -> bool:
    return store.snapshot().find(secret, now) is not None


def test_a_key_is_recognisable_random_and_kept_as_a_hash_only(store: KeyStore, tmp_path: Path) -> None:
    first, second = store.add("web", CallerLimits()), store.add("mastodon", CallerLimits())
    for key in (first, second):
        assert re.fullmatch(r"tandem_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", key.secret)
        assert key.secret not in repr(key)
    assert first.secret[16:] != second.secret[16:]
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert hashlib.sha256(first.secret.encode()).digest() in kept
    assert first.secret[16:].encode() not in kept


def test_a_key_is_found_with_its_name_and_limits(store: KeyStore, clock: Clock) -> None:
    secret = store.add("web", CallerLimits(60, 5000), admin=True).secret
    key = store.snapshot().find(secret, clock())
    assert key is not None
    assert (key.caller, key.admin, key.limits, key.state(clock())) == ("web", True, CallerLimits(60, 5000), "active")
    assert store.snapshot().limits_of("web") == CallerLimits(60, 5000)
    assert store.snapshot().limits_of("nobody") is None


@pytest.mark.parametrize("change", ["", "tandem_", "x", "tandem_00000000_" + "A" * 43, "\ud800", "ä" * 59])
def test_what_is_no_key_is_not_found(store: KeyStore, clock: Clock, change: str) -> None:
    store.add("web", CallerLimits())
    assert not valid(store, change, clock())


def test_every_character_of_a_key_counts(store: KeyStore, clock: Clock) -> None:
    secret = store.add("web", CallerLimits()).secret
    assert valid(store, secret, clock())
    for place in (0, 8, 16, 40, len(secret) - 1):
        other = "0" if secret[place] != "0" else "1"
        assert not valid(store, secret[:place] + other + secret[place + 1 :], clock())
    assert not valid(store, secret + "A", clock())
    assert not valid(store, secret + "\n", clock())


def test_a_key_expires(store: KeyStore, clock: Clock) -> None:
    secret = store.add("web", CallerLimits(), expires=clock() + DAY).secret
    snapshot = store.snapshot()
    assert snapshot.find(secret, clock() + DAY - 1)
    assert not snapshot.find(secret, clock() + DAY)
    clock.now += 2 * DAY
    assert [key.state(clock()) for key in store.all_keys()] == ["expired"]
    assert valid(store, store.add("web", CallerLimits()).secret, clock())  # the name is free again


def test_revoking_ends_all_keys_of_a_name(store: KeyStore, clock: Clock) -> None:
    secret, other = store.add("web", CallerLimits()).secret, store.add("app", CallerLimits()).secret
    further = store.rotate("web", overlap=DAY).secret
    assert store.revoke("web") == 2
    assert [valid(store, one, clock()) for one in (secret, further, other)] == [False, False, True]
    assert sorted(key.state(clock()) for key in store.all_keys()) == ["active", "revoked", "revoked"]
    with pytest.raises(ConfigError, match="no active key of 'web'"):
        store.revoke("web")


def test_rotating_leaves_the_old_key_for_a_while(store: KeyStore, clock: Clock) -> None:
    old = store.add("web", CallerLimits(60, 0), expires=clock() + 30 * DAY).secret
    new = store.rotate("web", overlap=DAY).secret
    assert valid(store, old, clock()) and valid(store, new, clock())
    assert not valid(store, old, clock() + DAY)
    assert valid(store, new, clock() + 31 * DAY)
    assert store.snapshot().limits_of("web") == CallerLimits(60, 0)
    store.rotate("web", overlap=2 * DAY)
    assert not valid(store, old, clock() + DAY)  # never longer than it had


def test_limits_change_for_all_keys_of_a_name(store: KeyStore) -> None:
    store.add("web", CallerLimits(60, 5000))
    assert store.set_limits("web", None, 7000) == CallerLimits(60, 7000)
    assert store.set_limits("web", 0, None) == CallerLimits(0, 7000)
    assert store.snapshot().limits_of("web") == CallerLimits(0, 7000)
    with pytest.raises(ConfigError, match="no active key"):
        store.set_limits("nobody", 1, 1)


@pytest.mark.parametrize("name", ["", "admin", "anonymous", "a b", "-a", "a/b", 'a"b', "ä", "a" * 65, "a\n"])
def test_names_that_would_confuse_are_refused(store: KeyStore, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be a key's name"):
        store.add(name, CallerLimits())


def test_a_name_that_is_taken_is_refused_and_says_how_to_go_on(store: KeyStore) -> None:
    store.add("web", CallerLimits())
    with pytest.raises(ConfigError, match="tandem keys rotate web"):
        store.add("web", CallerLimits())


def test_a_snapshot_is_read_again_only_after_a_change(store: KeyStore) -> None:
    secret = store.add("web", CallerLimits()).secret
    first = store.snapshot()
    assert store.snapshot(first) is first
    for change in (
        lambda: store.add("app", CallerLimits()),
        lambda: store.rotate("app", 0),
        lambda: store.set_limits("app", 1, 1),
        lambda: store.revoke("app"),
    ):
        change()
        assert store.snapshot(first) is not first
        first = store.snapshot(first)
    assert set(first.keys) == {secret[7:15]}


def test_an_unknown_identifier_is_compared_as_well(monkeypatch: pytest.MonkeyPatch, store: KeyStore) -> None:
    """What the time tells: nothing, as the same is done whether the identifier is known or not."""
    secret = store.add("web", CallerLimits()).secret
    snapshot = store.snapshot()
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("tandem.extras.accounts.keys.hmac.compare_digest", compare)
    snapshot.find(secret, 0.0)
    snapshot.find("tandem_00000000" + secret[15:], 0.0)
    snapshot.find("password", 0.0)
    assert [len(other) for _, other in compared] == [32, 32, 32]


def test_a_hash_of_zeros_is_no_way_in() -> None:
    """The hash that stands for an unknown key belongs to no record."""
    assert replace(Snapshot(0, {})).find("tandem_00000000_" + "A" * 43, 0.0) is None
