"""The page's files without a browser: how they are answered, and that they fit together."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tandem.service.http.routes import page

WEB = page.FOLDER
SCRIPTS = sorted(WEB.glob("*.js"))


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(page.router)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as found:
        yield found


pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/web/app.js", "text/javascript"),
        ("/web/style.css", "text/css"),
        ("/web/icon.svg", "image/svg"),
        ("/web/manifest.webmanifest", "application/manifest+json"),
    ],
)
async def test_files_are_kept_by_browsers_until_they_change(client: httpx.AsyncClient, path: str, kind: str) -> None:
    first = await client.get(path)
    assert first.status_code == 200
    assert first.headers["content-type"].startswith(kind)
    assert first.headers["cache-control"] == "no-cache"
    for known in (first.headers["etag"], f'"other", W/{first.headers["etag"]}'):
        again = await client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
    assert (await client.get(path, headers={"If-None-Match": '"other"'})).content == first.content


async def test_heads_have_no_body(client: httpx.AsyncClient) -> None:
    assert (await client.head("/")).headers["etag"] == (await client.get("/")).headers["etag"]


@pytest.mark.parametrize("name", ["none.js", "..%2Fapp.py", "%2e%2e", "index.html%00", "__init__.py"])
async def test_there_are_no_other_files(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/web/{name}")).status_code == 404


def text(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def test_what_files_name_is_there() -> None:
    named = set(re.findall(r'(?:href|src)="web/([^"]+)"', text("index.html")))
    for script in SCRIPTS:
        named |= set(re.findall(r'from "\./([^"]+)"', text(script.name)))
    assert named | {"index.html"} == {path.name for path in WEB.iterdir() if path.is_file()}


def test_elements_that_scripts_ask_for_are_there() -> None:
    ids = re.findall(r'\bid="([^"]+)"', text("index.html"))
    assert len(ids) == len(set(ids))
    for script in SCRIPTS:
        wanted = set(re.findall(r'byId\("([^"]+)"\)', text(script.name)))
        assert wanted <= set(ids), script.name
    referred = re.findall(r'(?:aria-\w+by|aria-controls|for)="([^"]+)"|<use href="#([^"]+)"', text("index.html"))
    assert {one or other for one, other in referred} <= set(ids)


def texts(language: str) -> list[tuple[str, list[str]]]:
    """Every text of the page in a language, with the places in it that are filled."""
    found = re.findall(r'^  (\w+):\s+"(.+)",$', text(f"texts-{language}.js"), re.MULTILINE)
    return [(key, sorted(set(re.findall(r"\{\w+\}", value)))) for key, value in found]


@pytest.mark.parametrize("language", ["de", "fr"])
def test_the_page_says_the_same_in_every_language(language: str) -> None:
    assert texts(language) == texts("en")


def test_every_text_is_named_once_and_used() -> None:
    known = [key for key, _ in texts("en")]
    assert len(known) == len(set(known))
    everything = "".join(text(script.name) for script in SCRIPTS if not script.name.startswith("texts-")) + text(
        "index.html"
    )
    asked = set(re.findall(r'\bt\("(\w+)"', everything)) | set(re.findall(r'data-t(?:-\w+)?="(\w+)"', everything))
    assert asked <= set(known)
    assert not [name for name in known if not re.search(rf'"{name}"', everything)]


def test_nothing_is_inline_and_nothing_comes_from_outside() -> None:
    """The policy would block it; and data never becomes markup."""
    for path in sorted(path for path in WEB.iterdir() if path.is_file()):
        content = text(path.name)
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", content
        ), path.name
        addresses = set(re.findall(r"https?://[^\s\"')]+", content))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
    page_text = text("index.html")
    assert not re.search(r"<style|\bstyle=|\bon\w+=|<script>|javascript:", page_text)


@pytest.mark.parametrize(
    "path", sorted(path for path in Path(WEB).iterdir() if path.is_file()), ids=lambda path: path.name
)
def test_files_stay_small(path: Path) -> None:
    assert len(text(path.name).splitlines()) <= 300
