"""Files over HTTP: what breaks off goes on where it stopped, and nothing is taken that is not what it should be.

A partial file lies where the caller says, and the next call goes on with it (RFC 9110, sections 13.1.5 and 14.2:
``Range`` with ``If-Range``). urllib does it without a package more on a server, and takes proxies from ``https_proxy``
and its kin.
"""

from __future__ import annotations

import http
import http.client
import shutil
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from rich.progress import DownloadColumn, Progress

from tandem.models.command import console, installed_version, report
from tandem.models.errors import FULL, TandemError

_TIMEOUT = 60.0  # seconds of silence
_BLOCK = 1 << 18


class PullError(TandemError):
    """Something could not be fetched, or is not what it should be."""


class _OutOfRange(Exception):
    """The server has no more than is here."""


def download(url: str, part: Path, bound: int, remedy: str) -> None:
    """Bring what is at a URL to a partial file; what was there of it is gone on with.

    Args:
        url: http or https.
        part: the file.
        bound: bytes that it may have.
        remedy: what to do where it has more.

    Raises:
        PullError: the server refuses, cannot be reached or breaks off, or it is too much.
        OSError: of the disk.
    """
    try:
        with _opened(url, part) as response:
            _receive(response, part, bound, remedy, shown_url(url))
    except (http.client.HTTPException, OSError) as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise OSError(error.errno, error.strerror, str(part)) from error
        there = part.stat().st_size if part.is_file() else 0
        message = f"{shown_url(url)}: {_reason(error)}; the same command goes on from the {there} bytes that are here"
        raise PullError(message) from error


def download_text(url: str, bound: int) -> bytes:
    """What is at a URL, of at most so many bytes. Raises PullError where it cannot be had, or has more."""
    try:
        with _asked(url, _headers()) as response:
            content: bytes = response.read(bound + 1)
    except (http.client.HTTPException, OSError) as error:
        raise PullError(f"{shown_url(url)}: {_reason(error)}") from error
    if len(content) > bound:
        raise PullError(f"{shown_url(url)}: it may have {bound} bytes, but has more")
    return content


def _reason(error: Exception) -> object:
    if isinstance(error, http.client.IncompleteRead):
        return "the connection broke off"
    return getattr(error, "reason", None) or error


def _opened(url: str, part: Path) -> http.client.HTTPResponse:
    """The answer with what is still missing, or with all of it where the server has another file now.

    Raises:
        PullError: the server refuses.
        OSError: it cannot be reached.
    """
    headers = _headers()
    validator = _validator(part)
    if part.is_file() and validator.is_file():
        headers |= {"Range": f"bytes={part.stat().st_size}-", "If-Range": validator.read_text(encoding="latin-1")}
    try:
        return _asked(url, headers)
    except _OutOfRange:
        forget(part)  # another file of the same tag
        return _asked(url, _headers())


def _headers() -> dict[str, str]:
    return {"User-Agent": f"tandem/{installed_version()}", "Accept-Encoding": "identity"}


def _asked(url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    """The answer. Raises PullError where the server refuses, and OSError where it cannot be reached."""
    try:
        response: http.client.HTTPResponse = urlopen(Request(url, headers=headers), timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and "Range" in headers:
            raise _OutOfRange from error
        raise PullError(f"{shown_url(url)}: the server answers {error.code} {error.reason}") from error
    return response


def _receive(response: http.client.HTTPResponse, part: Path, bound: int, remedy: str, shown: str) -> None:
    """Write what comes to the partial file. Raises PullError where it is too much; what was written stays."""
    begun = 0
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        begun = part.stat().st_size
        if not (response.headers["Content-Range"] or "").startswith(f"bytes {begun}-"):
            raise PullError(f"{shown}: the server sent another range than the one from byte {begun} on")
    total = None if response.length is None else begun + response.length
    check_room(max(0, (total or 0) - begun), total or 0, part.parent, bound, remedy, shown)
    tag = response.headers["ETag"] or ""
    validator = tag if tag and not tag.startswith("W/") else response.headers["Last-Modified"] or ""
    _validator(part).write_text(validator, encoding="latin-1")
    if not validator:
        _validator(part).unlink()
    report(
        f"{shown}: {'?' if total is None else f'{total / 1e6:.1f}'} MB" + (f", from byte {begun} on" if begun else "")
    )
    size, shows = begun, console(error=True)
    with (
        part.open("ab" if begun else "wb") as file,
        Progress(
            *Progress.get_default_columns(), DownloadColumn(), console=shows, disable=not shows.is_terminal
        ) as bar,
    ):
        task = bar.add_task("", total=total, completed=begun)
        while block := response.read(_BLOCK):
            size += file.write(block)
            bar.update(task, completed=size)
            if size > bound:
                raise PullError(f"{shown}: more than {bound} bytes came; {remedy}")
    if total is not None and size < total:
        raise http.client.IncompleteRead(b"", total - size)


def check_room(needed: int, size: int, folder: Path, bound: int, remedy: str, what: str) -> None:
    """Raises PullError where something is larger than is allowed, or does not fit on the disk any more."""
    if size > bound:
        raise PullError(f"{what} has {size} bytes or more, but may have {bound}; {remedy}")
    if needed > (free := shutil.disk_usage(folder).free):
        raise PullError(f"{what} needs {needed} bytes more, but {folder.parent} has room for {free}")


def shown_url(source: str) -> str:
    """A URL without what may be secret in it."""
    parts = urlsplit(source)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.hostname else source


def _validator(part: Path) -> Path:
    return part.with_suffix(".etag")


def forget(part: Path) -> None:
    """Remove a partial file, and what is known of it."""
    for file in (part, _validator(part)):
        file.unlink(missing_ok=True)
