"""The web page: ``GET /`` and the files that it needs, under ``/web/``; and the OpenAPI document with its viewer.

The viewer, which loads nothing from elsewhere, is Swagger UI (Apache-2.0), whose files come from the package
``fastapi-offline``: small, typed, released with each version of the viewer, and without a dependency but FastAPI.
(``swagger-ui-bundle`` stayed at version 4, ``swagger-ui-py`` brings an editor of 20 MB.) Only its files are used: the
page here has no script of its own in it, so that a Content-Security-Policy can forbid those.
"""

from __future__ import annotations

import json
import mimetypes
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).resolve().parents[2] / "web"
_METHODS = ["GET", "HEAD"]
mimetypes.add_type("text/javascript", ".js")  # systems say otherwise
mimetypes.add_type("application/manifest+json", ".webmanifest")

router = APIRouter(include_in_schema=False)


class _PageFiles(StaticFiles):
    """Browsers keep the files and ask each time whether they changed: nobody sees a half-new page after an upgrade."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, or 304 where the browser has this version of it already."""
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


_page = _PageFiles(directory=FOLDER)
_viewer = _PageFiles(directory=FOLDER / "docs", packages=[("fastapi_offline", "static")])


@router.api_route("/", methods=_METHODS)
async def front_page(request: Request) -> Response:
    """The page."""
    return await _page.get_response("index.html", request.scope)


@router.api_route("/web/{name}", methods=_METHODS)
async def page_file(name: str, request: Request) -> Response:
    """A style sheet, script or picture of the page."""
    return await _page.get_response(name, request.scope)


@router.api_route("/openapi.json", methods=_METHODS)
def document(request: Request) -> Response:
    """The OpenAPI document, made in a thread: it takes a while the first time, and FastAPI's own route would not."""
    described = request.app.openapi()
    if prefix := request.scope.get("root_path"):  # of a proxy
        described = described | {"servers": [{**described["servers"][0], "url": prefix}]}
    content = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    return Response(content, media_type="application/json")


@router.api_route("/docs", methods=_METHODS)
async def docs(request: Request) -> Response:
    """The viewer's page."""
    return await _viewer.get_response("docs.html", request.scope)


@router.api_route("/docs/{name}", methods=_METHODS)
async def docs_file(name: str, request: Request) -> Response:
    """A file of the viewer."""
    return await _viewer.get_response(name, request.scope)
