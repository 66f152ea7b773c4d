"""Who is calling, and what the call costs: the one place that routes ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import structlog

from tandem.extras.accounts import counters, keys
from tandem.extras.accounts.keys import PREFIX, CallerLimits, KeyStore
from tandem.extras.accounts.meter import Meter
from tandem.extras.accounts.settings import AccountSettings
from tandem.extras.shared.database import Database
from tandem.models.errors import ConfigError
from tandem.service.callers import ANONYMOUS, AdminKey, Caller, QuotaUsage, Receipt
from tandem.service.errors import AdminRequired, KeyInvalid, KeyMissing, StorageError
from tandem.service.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

KEYS_FILE = "keys.db"
LIMITS_FILE = "limits.db"

_log = structlog.get_logger("tandem.access")
_REFRESH = 1.0  # seconds after which a change of the keys by another process holds here
_LOOKS = 5  # at the store between two refreshes, for keys that are not known: whoever guesses keys causes no more
_PATIENCE = 0.1  # seconds that a look may take, some 0.2 ms as a rule: the event loop waits meanwhile
_THREADS = 2


class KeyedAccess:
    """Finds callers by their keys, and charges them.

    Keys are checked against a snapshot in memory, which follows the store within ``_REFRESH`` seconds; where the store
    cannot be read, the last one stays in use. Before a key of ours is refused as unknown, the store is looked at, in
    bounds: a key that was just made holds at once. Counting happens in threads.
    """

    def __init__(self, settings: Settings) -> None:
        """Open the stores in the data folder, or in memory where there is none.

        Args:
            settings: see ``Settings``; ``require_key``, ``admin_key`` and those about limits are read.

        Raises:
            ConfigError: a store cannot be opened, or keys are required and none could exist.
        """
        self._settings, self._own = settings, settings.part(AccountSettings)
        self._admin = AdminKey(settings.admin_key)
        if self._own.require_key and settings.data is None and not self._admin.is_set:
            raise ConfigError("require_key needs the setting data, the folder that 'tandem keys' keeps the keys in")
        self._anonymous = CallerLimits(self._own.anonymous_rate, self._own.anonymous_quota)
        self._databases = [open_keys(settings)]
        self.keys = KeyStore(self._databases[0])
        self._snapshot = self.keys.snapshot()
        self.meter = make_meter(settings, self._databases)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="tandem-access")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="tandem-keys")  # one refresh at a time
        self._looks = 0 if settings.data is None else _LOOKS  # no other process makes keys in memory
        self._follower: asyncio.Task[None] | None = None
        self._stale = False
        self._failures = 0

    def start(self) -> None:
        """Begin to follow changes that other processes make to the keys. Needs a running event loop."""
        if self._settings.data is not None:
            self._follower = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop following, and close the stores."""
        if self._follower is not None:
            self._follower.cancel()
            with suppress(asyncio.CancelledError):
                await self._follower
        self._looks = 0
        for threads in (self._threads, self._reader):
            await asyncio.to_thread(threads.shutdown)
        for database in self._databases:
            database.close()

    def refresh(self) -> None:
        """Take over changes of the key store now. Blocks."""
        try:
            self._snapshot = self.keys.snapshot(self._snapshot)
        except StorageError as error:
            if not self._stale:
                _log.error("keys_not_readable", cause=str(error), used="those known so far")
            self._stale = True
            self._failures += 1
        else:
            self._stale = False

    def take_over(self, keys: Path) -> int:
        """Know the keys of a copy of another server's, and say how many there are. Blocks. Raises ConfigError."""
        count = self.keys.take_over(keys)
        self.refresh()
        return count

    @property
    def store_failures(self) -> dict[str, int]:
        """Attempts to read the keys, and to count for limits, that have failed."""
        return {"keys": self._failures, "limits": self.meter.failures}

    @property
    def requires_key(self) -> bool:
        """Whether callers without a key are refused."""
        return self._own.require_key

    def caller(self, secret: str | None) -> Caller:
        """Whose key that is. Blocks as ``find`` does.

        Where no keys are required, what is no key of ours counts as none: clients of other services always send one.

        Raises:
            KeyMissing: keys are required, and there is none.
            KeyInvalid: the key is unknown, revoked or expired.
        """
        found = self.find(secret)
        if found is not None:
            return found
        if secret and (self._own.require_key or secret.startswith(PREFIX)):
            raise KeyInvalid
        if self._own.require_key:
            raise KeyMissing
        return Caller(ANONYMOUS)

    def admin(self, secret: str | None) -> Caller:
        """The administrator whose key that is.

        Raises:
            KeyMissing, KeyInvalid: there is none, or it is unknown, revoked or expired.
            AdminRequired: the key is no admin's, or there is no admin key at all.
        """
        found = self.find(secret)
        if not self._admin.is_set and not self._snapshot.has_admin:
            raise AdminRequired(
                "this route asks for an admin key, and this server has none; make one with 'tandem keys add NAME "
                "--admin' where the server keeps its data, or start it with TANDEM_ADMIN_KEY"
            )
        if not secret:
            raise KeyMissing
        if found is None:
            raise KeyInvalid
        if not found.admin:
            raise AdminRequired("this route asks for an admin key, and this one is not")
        return found

    async def charge(self, caller: Caller, characters: int, *, request: bool = True) -> Receipt:
        """Count a request of so many characters, before it is worked on.

        Args:
            caller: who pays.
            characters: 0 where they are not known yet.
            request: False where the request itself was counted before.

        Raises:
            RateLimited, QuotaExceeded: beyond a limit.
            LimitsUnavailable: the store of counters is down, and the settings say to refuse then.
        """
        limits = self.limits_of(caller.name)
        if caller.name == ANONYMOUS and limits == CallerLimits():
            return Receipt()  # open to everybody: there is nothing to count for
        if not (characters or (request and limits.rate)):
            return Receipt()
        return await self._in_thread(self.meter.charge, caller.name, limits, characters, request)

    async def refund(self, receipt: Receipt) -> None:
        """Give back what ``charge`` has counted, apart from the request itself."""
        if receipt.characters:
            await self._in_thread(self.meter.refund, receipt)

    @asynccontextmanager
    async def charged(self, caller: Caller, characters: int, *, request: bool = True) -> AsyncIterator[Receipt]:
        """Charge for what happens in this block; its characters are given back where it raises.

        A client that leaves (``CancelledError``) pays: its text was being worked on. ``request``: see ``charge``.

        Raises:
            RateLimited, QuotaExceeded, LimitsUnavailable: see ``charge``.
        """
        receipt = await self.charge(caller, characters, request=request)
        try:
            yield receipt
        except Exception:
            await self.refund(receipt)
            raise

    async def usage(self, caller: Caller) -> QuotaUsage:
        """This month's characters. Anonymous ones are counted only where they have a limit.

        Raises:
            LimitsUnavailable: see ``charge``.
        """
        quota = self.limits_of(caller.name).quota
        return QuotaUsage(await self._in_thread(self.meter.used, caller.name), quota or None)

    def limits_of(self, name: str) -> CallerLimits:
        if name == ANONYMOUS:
            return self._anonymous
        return self._snapshot.limits_of(name) or CallerLimits()

    def find(self, secret: str | None) -> Caller | None:
        """Who has that key; None where it is nobody's.

        Does not block, but for the ``_PATIENCE`` of a look at the store, of which there are few.
        """
        if not secret:
            return None
        if (admin := self._admin.find(secret)) is not None:
            return admin
        key = self._snapshot.find(secret, time.time())
        if key is None and secret.startswith(PREFIX) and self._looks:
            self._look()
            key = self._snapshot.find(secret, time.time())
        return None if key is None else Caller(key.caller, key.admin)

    def _look(self) -> None:
        """Take over changes of the key store now; where it does not answer at once, not until it was read again."""
        self._looks -= 1
        try:
            self._reader.submit(self.refresh).result(_PATIENCE)
        except TimeoutError:
            self._looks = 0

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_REFRESH)
            await loop.run_in_executor(self._reader, self.refresh)
            self._looks = _LOOKS

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))


def open_keys(settings: Settings) -> Database:
    """The database of the keys. Raises ConfigError where it cannot be opened."""
    return Database(settings.data and settings.data / KEYS_FILE, keys.MIGRATIONS)


def make_meter(settings: Settings, opened: list[Database]) -> Meter:
    """A meter with its store: the shared one of the settings, else SQLite; its database is added to ``opened``.

    Raises:
        ConfigError: the store cannot be opened.
    """
    own = settings.part(AccountSettings)
    if own.limits_url is not None:
        return Meter(counters.shared_counters(own.limits_url.get_secret_value()), own.limits_failure)
    opened.append(Database(settings.data and settings.data / LIMITS_FILE, counters.MIGRATIONS))
    return Meter(counters.SqliteCounters(opened[-1]), own.limits_failure)
