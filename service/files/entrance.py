"""Who sends an upload: found out, and the request counted, as early as the request tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.requests import Request

from service.access import Access, Caller, KeyMissing
from service.files.errors import UploadsBusy

UNKNOWN_UPLOADS = 2
"""Files that may come in at a time before a key that is required."""


class Entrance:
    """Lets uploads in, one ``Entry`` each. Belongs to one event loop."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._unknown = asyncio.Semaphore(UNKNOWN_UPLOADS)

    @asynccontextmanager
    async def enter(self, request: Request, key_may_follow: bool) -> AsyncIterator[Entry]:
        """An upload while its body is read. A key in the header or the query string is checked before that.

        Args:
            request: whose body nobody has begun to read.
            key_may_follow: whether a key that is required may come behind the file, as some clients send it.

        Raises:
            KeyInvalid, RateLimited, LimitsUnavailable: see ``Access``.
        """
        async with AsyncExitStack() as slots:
            entry = Entry(self._access, request, self._unknown if key_may_follow else None, slots)
            if self._access.key_before_body(request):
                await entry.admit(None)
            yield entry


class Entry:
    """One upload on its way in.

    Attributes:
        caller: None until it is known.
    """

    def __init__(
        self, access: Access, request: Request, unknown: asyncio.Semaphore | None, slots: AsyncExitStack
    ) -> None:
        self._access, self._request, self._unknown, self._slots = access, request, unknown, slots
        self._waits = False
        self.caller: Caller | None = None

    async def admit(self, api_key: str | None) -> Caller:
        """The caller, whose request is counted: once, however often this is asked.

        Args:
            api_key: of the field; not looked at where a key came before the body.

        Raises:
            KeyMissing, KeyInvalid, RateLimited, LimitsUnavailable: see ``Access``.
        """
        if self.caller is None:
            caller = self._access.caller(self._request, self._access.key_before_body(self._request) or api_key)
            await self._access.charge(caller, 0)
            self.caller = caller
        return self.caller

    async def file_begins(self, api_key: str | None) -> None:
        """To be called before more than the first piece of a file is taken; may be called again.

        Where no key came before the file and none is required, one may still follow: ``admit`` is asked at the end.

        Args:
            api_key: the field, if it came before the file.

        Raises:
            KeyMissing: a key is required, and had to come before the file.
            UploadsBusy: it may follow, but as many files as may be are coming in already without one.
            KeyInvalid, RateLimited, LimitsUnavailable: see ``Access``.
        """
        if self.caller is not None or self._waits:
            return
        if api_key:
            await self.admit(api_key)
        elif self._access.requires_key:
            if self._unknown is None:
                raise KeyMissing("before the file")
            if self._unknown.locked():
                raise UploadsBusy(UNKNOWN_UPLOADS)
            await self._slots.enter_async_context(self._unknown)
        self._waits = True
