"""Slashes at the end of a path, and the prefix of a proxy."""

from __future__ import annotations

import pytest

from tests.service.support import Served, assert_error

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["/translate/", "/translate//"])
async def test_a_slash_at_the_end_says_nothing(service: Served, path: str) -> None:
    fields = {"q": "das haus", "source": "de", "target": "en"}
    reply = await service.client.post(path, json=fields)
    assert reply.json() == {"translatedText": "das haus"}
    assert (await service.client.get("/languages/")).json() == (await service.client.get("/languages")).json()


@pytest.mark.parametrize("path", ["/nowhere/", "/web/", "/docs/"])
async def test_what_is_not_there_is_not_there_with_one(service: Served, path: str) -> None:
    assert_error(await service.client.get(path), 404, "route_not_found")


@pytest.mark.parametrize(
    ("prefix", "server"),
    [("/mt", "/mt"), ("/a/b-c/", "/a/b-c"), ("", "/"), ("/", "/"), ("mt", "/"), ("//evil.example", "/"), ("/a b", "/")],
)
async def test_the_document_has_the_prefix_of_a_proxy(service: Served, prefix: str, server: str) -> None:
    document = (await service.client.get("/openapi.json", headers={"X-Forwarded-Prefix": prefix})).json()
    assert [one["url"] for one in document["servers"]] == [server]
    plain = (await service.client.get("/openapi.json")).json()
    assert plain["servers"][0]["url"] == "/" and plain["paths"] == document["paths"]
