"""The web page: ``GET /`` and the files that it needs, under ``/web/``; and the OpenAPI document with its viewer.

The files are few and small, so they are read once and answered from memory. Their ETags come from the contents, not
from the time of installation (as Starlette's ``StaticFiles`` would make them), so that every replica gives the same
ones. Browsers keep the files and ask each time whether they changed: nobody sees a half-new page after an upgrade.

The viewer, which loads nothing from elsewhere, is Swagger UI (Apache-2.0), whose files come from the package
``fastapi-offline``: small, typed, released with each version of the viewer, and without a dependency but FastAPI.
(``swagger-ui-bundle`` stayed at version 4, ``swagger-ui-py`` brings an editor of 20 MB.) Only its files are used: the
page here has no script of its own in it, so that a Content-Security-Policy can forbid those.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, HTTPException, Request, Response

FOLDER = Path(__file__).resolve().parents[2] / "web"
_VIEWER = Path(fastapi_offline.__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page with the headers that it is answered with."""

    content: bytes
    headers: Mapping[str, str]

    def answer(self, request: Request) -> Response:
        """The file, or 304 where the browser has this version of it already."""
        known = (tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(","))
        if self.headers["ETag"] in known:
            return Response(status_code=304, headers={name: self.headers[name] for name in ("ETag", "Cache-Control")})
        return Response(self.content, headers=dict(self.headers))


@cache
def assets() -> Mapping[str, Asset]:
    """The page's files by name; read at the first call."""
    return {path.name: read_asset(path) for path in sorted(FOLDER.iterdir()) if path.suffix in _TYPES}


def read_asset(path: Path) -> Asset:
    """A file as it is answered; its name says what it is."""
    return asset_of(path.read_bytes(), _TYPES[path.suffix])


def asset_of(content: bytes, kind: str) -> Asset:
    """Some content of a media type as it is answered."""
    tag = hashlib.sha256(content).hexdigest()[:32]
    return Asset(content, {"Content-Type": kind, "ETag": f'"{tag}"', "Cache-Control": "no-cache"})


@router.api_route("/", methods=["GET", "HEAD"])
def front_page(request: Request) -> Response:
    """The page."""
    return assets()["index.html"].answer(request)


@router.api_route("/web/{name}", methods=["GET", "HEAD"])
def page_file(name: str, request: Request) -> Response:
    """A style sheet, script or picture of the page."""
    asset = assets().get(name)
    if asset is None:
        raise HTTPException(404)
    return asset.answer(request)


@cache
def viewer_files() -> Mapping[str, Asset]:
    """The page and what it loads, by name; read at the first call."""
    own = (FOLDER / "docs" / name for name in ("docs.html", "docs.js", "docs.css"))
    viewer = (_VIEWER / "swagger-ui.css", _VIEWER / "swagger-ui-bundle.js")
    return {path.name: read_asset(path) for path in (*own, *viewer)}


@router.api_route("/openapi.json", methods=["GET", "HEAD"])
def document(request: Request) -> Response:
    """The OpenAPI document, made in a thread: it takes a while the first time, and FastAPI's own route would not."""
    content = json.dumps(request.app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()
    return asset_of(content, "application/json").answer(request)


@router.api_route("/docs", methods=["GET", "HEAD"])
def docs(request: Request) -> Response:
    """The page."""
    return viewer_files()["docs.html"].answer(request)


@router.api_route("/docs/{name}", methods=["GET", "HEAD"])
def docs_file(name: str, request: Request) -> Response:
    """A file of the page."""
    asset = viewer_files().get(name)
    if asset is None:
        raise HTTPException(404)
    return asset.answer(request)
