"""``GET /openapi.json``, and ``GET /docs``: the document in a viewer that loads nothing from elsewhere.

The viewer is Swagger UI (Apache-2.0), whose files come from the package ``fastapi-offline``: small, typed, released
with each version of the viewer, and without a dependency but FastAPI. (``swagger-ui-bundle`` stayed at version 4,
``swagger-ui-py`` brings an editor of 20 MB.) Only its files are used: the page here has no script of its own in it, so
that a Content-Security-Policy can forbid those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, HTTPException, Request, Response

from service.http.routes.page import Asset, asset_of, read_asset

_VIEWER = Path(fastapi_offline.__file__).parent / "static"
_OWN = Path(__file__).resolve().parents[2] / "web" / "docs"

router = APIRouter(include_in_schema=False)


@cache
def files() -> Mapping[str, Asset]:
    """The page and what it loads, by name; read at the first call."""
    own = (_OWN / "docs.html", _OWN / "docs.js", _OWN / "docs.css")
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
    return files()["docs.html"].answer(request)


@router.api_route("/docs/{name}", methods=["GET", "HEAD"])
def docs_file(name: str, request: Request) -> Response:
    """A file of the page."""
    asset = files().get(name)
    if asset is None:
        raise HTTPException(404)
    return asset.answer(request)
