"""Who asks, and what the core wants to know and do about it: find out, charge, look up what a caller has stored.

An extra brings these (``Accounts``); without one every caller is anonymous, but for who has the admin key of the
settings, pays nothing and has stored nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from tandem.models.errors import ConfigError
from tandem.service.errors import AdminRequired, GlossaryNotFound, KeyInvalid, KeyMissing
from tandem.service.text.glossary import Glossary

ANONYMOUS = "anonymous"
"""The name of callers without a key."""
ADMIN = "admin"
"""The name of the caller with the admin key of the settings."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling.

    Attributes:
        name: of the key, for logs and metrics; ``anonymous`` without one.
        admin: may use the admin routes.
    """

    name: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was charged, so that it can be given back.

    Attributes:
        counter: of the month in which it was charged; empty where nothing was.
        characters: how many.
    """

    counter: str = ""
    characters: int = 0


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """Characters of this calendar month.

    Attributes:
        count: charged so far.
        limit: the quota; None without one.
    """

    count: int
    limit: int | None


class Access(Protocol):
    """Finds callers by their keys, and charges them."""

    @property
    def requires_key(self) -> bool:
        """Whether callers without a key are refused."""

    def caller(self, secret: str | None) -> Caller:
        """Whose key that is. Blocks for a tenth of a second at most.

        Raises:
            KeyMissing: keys are required, and there is none.
            KeyInvalid: the key is unknown, revoked or expired.
        """

    def admin(self, secret: str | None) -> Caller:
        """The administrator whose key that is.

        Raises:
            KeyMissing, KeyInvalid: there is none, or it is unknown, revoked or expired.
            AdminRequired: the key is no admin's, or there is no admin key at all.
        """

    def find(self, secret: str | None) -> Caller | None:
        """Who has that key; None where it is nobody's."""

    async def charge(self, caller: Caller, characters: int, *, request: bool = True) -> Receipt:
        """Count a request of so many characters, before it is worked on.

        Args:
            caller: who pays.
            characters: 0 where they are not known yet.
            request: False where the request itself was counted before.

        Raises:
            ServiceError: beyond a limit, or it cannot be counted now.
        """

    async def refund(self, receipt: Receipt) -> None:
        """Give back what ``charge`` has counted, apart from the request itself."""

    def charged(self, caller: Caller, characters: int, *, request: bool = True) -> AbstractAsyncContextManager[Receipt]:
        """Charge for what happens in this block; its characters are given back where it raises.

        A client that leaves (``CancelledError``) pays: its text was being worked on. Raises what ``charge`` does.
        """

    async def usage(self, caller: Caller) -> QuotaUsage:
        """This month's characters. Raises ServiceError where they cannot be counted now."""

    def take_over(self, keys: Path) -> int:
        """Know the keys of a copy of another server's, and say how many there are. Blocks. Raises ConfigError."""


class StoredGlossaries(Protocol):
    """Glossaries that requests name by their ids. Calls block."""

    def terms(self, owner: str, identifiers: Sequence[str], source: str, target: str) -> Glossary:
        """The terms of a language pair in several glossaries, ready to be found; of a term in several, the first one's.

        Raises:
            GlossaryNotFound: one of them is not there, or has no dictionary of that pair.
            InvalidOption: they have too many different words.
        """


class Memories(Protocol):
    """Translations that callers want for sentences. Calls block."""

    def recall(self, owner: str, source: str, target: str, texts: Collection[str]) -> Mapping[str, str]:
        """Of those texts that the owner's memory has, the translations; none where it cannot be read."""


class AdminKey:
    """The admin key of the settings; a SHA-256 of it is kept, and compared in constant time."""

    def __init__(self, key: SecretStr | None) -> None:
        self._digest = None if key is None else _digest_of(key.get_secret_value())

    @property
    def is_set(self) -> bool:
        """Whether there is one."""
        return self._digest is not None

    def find(self, secret: str) -> Caller | None:
        """The administrator; None where that is another key."""
        same = self._digest is not None and hmac.compare_digest(_digest_of(secret), self._digest)
        return Caller(ADMIN, admin=True) if same else None


class OpenAccess:
    """Knows the admin key of the settings, and no other: everybody is anonymous, and nothing is counted."""

    requires_key = False

    def __init__(self, admin_key: SecretStr | None = None) -> None:
        self._admin = AdminKey(admin_key)

    def caller(self, secret: str | None) -> Caller:
        """What is no key of ours counts as none: clients of other services always send one."""
        return self.find(secret) or Caller(ANONYMOUS)

    def admin(self, secret: str | None) -> Caller:
        """Raises AdminRequired where there is no admin key, and else KeyMissing and KeyInvalid."""
        if not self._admin.is_set:
            raise AdminRequired(
                "this route asks for an admin key, and this server has none; start it with TANDEM_ADMIN_KEY"
            )
        if not secret:
            raise KeyMissing
        found = self.find(secret)
        if found is None:
            raise KeyInvalid
        return found

    def find(self, secret: str | None) -> Caller | None:
        """Who has that key; None where it is nobody's."""
        return self._admin.find(secret) if secret else None

    async def charge(self, caller: Caller, characters: int, *, request: bool = True) -> Receipt:
        """Nothing."""
        return Receipt()

    async def refund(self, receipt: Receipt) -> None:
        """Nothing was charged."""

    @asynccontextmanager
    async def charged(self, caller: Caller, characters: int, *, request: bool = True) -> AsyncIterator[Receipt]:
        """Nothing."""
        yield Receipt()

    async def usage(self, caller: Caller) -> QuotaUsage:
        """Not counted."""
        return QuotaUsage(0, None)

    def take_over(self, keys: Path) -> int:
        """Raises ConfigError."""
        raise ConfigError(f"this server knows no keys, so that those of {keys} cannot be taken over")


class NoGlossaries:
    """None are stored."""

    def terms(self, owner: str, identifiers: Sequence[str], source: str, target: str) -> Glossary:
        """Raises GlossaryNotFound."""
        raise GlossaryNotFound("there is no such glossary: this server keeps none")


class NoMemory:
    """Nothing is remembered."""

    def recall(self, owner: str, source: str, target: str, texts: Collection[str]) -> Mapping[str, str]:
        """Nothing."""
        return {}


@dataclass(frozen=True, slots=True)
class Accounts:
    """What the core asks of who calls."""

    access: Access
    glossaries: StoredGlossaries = field(default_factory=NoGlossaries)
    memory: Memories = field(default_factory=NoMemory)


def _digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
