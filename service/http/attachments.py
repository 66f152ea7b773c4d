"""Sends a file as an attachment, whatever its name is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_CHUNK = 1 << 18


class Attachment(Response):
    """A file's bytes, read in threads.

    (Starlette's ``FileResponse`` opens the file when the reply has begun, too late for an error where it is gone, and
    its ``StreamingResponse`` ends with an empty message: clients that leave at the last byte would count as gone.)
    """

    def __init__(self, path: Path, name: str, media_type: str) -> None:
        """Open the file. Blocks.

        Args:
            path: of the file.
            name: for the client to save it under.
            media_type: of its content.

        Raises:
            FileNotFoundError: it is not there.
        """
        self._file = path.open("rb")
        self._left = path.stat().st_size
        headers = {"Content-Length": str(self._left), "Content-Disposition": disposition(name)}
        super().__init__(None, headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            more = True
            while more:
                chunk = await asyncio.to_thread(self._file.read, _CHUNK)
                self._left -= len(chunk)
                more = self._left > 0 and bool(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": more})


def disposition(name: str) -> str:
    """A header that any client can read: the name in ASCII, and as it is in UTF-8."""
    plain = "".join(one if one.isascii() and (one.isalnum() or one in " ._-()+,") else "_" for one in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
