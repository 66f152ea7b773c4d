"""The fields that came with streams, glossaries and markup: read alike from every content type, and bounded."""

from __future__ import annotations

import json
from dataclasses import replace
from threading import get_ident
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import ValidationError
from starlette.requests import Request

from tandem.service.api.schemas import PosteditRequest, SummarizeRequest, TranslateRequest, read_object
from tandem.service.http import intake
from tandem.service.http.error_replies import BadRequest, HttpError, InvalidFields
from tandem.service.http.intake import read_fields, validate
from tandem.service.text.glossary import MAX_GLOSSARY, MAX_TERM
from tandem.service.translation.requests import MAX_PROTECT

pytestmark = pytest.mark.anyio

FIELDS: dict[str, Any] = {
    "q": ["Die Weiche.", "Das Gleis."],
    "target": "en",
    "format": "html",
    "glossary": {"Weiche": "turnout"},
    "protect": ["urls", "[draft]"],
    "alignments": True,
    "stream": True,
    "api_key": "secret",
}


def request(body: bytes = b"", kind: str = "", query: str = "") -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", kind.encode())] if kind else []
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": query.encode()}
    return Request(scope, receive)


def as_json(fields: Any, query: str = "") -> Request:
    return request(json.dumps(fields).encode(), "application/json", query)


def pairs(fields: dict[str, Any]) -> list[tuple[str, str]]:
    """As a form has them: lists repeated, objects as JSON."""
    found: list[tuple[str, str]] = []
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            found.append((name, json.dumps(one) if isinstance(one, dict | bool) else str(one)))
    return found


def as_form(fields: list[tuple[str, str]]) -> Request:
    return request(urlencode(fields).encode(), "application/x-www-form-urlencoded")


def as_multipart(fields: list[tuple[str, str]]) -> Request:
    parts = [f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    return request(("".join(parts) + "--x--\r\n").encode(), "multipart/form-data; boundary=x")


@pytest.mark.parametrize(
    "sent",
    [as_json(FIELDS), as_form(pairs(FIELDS)), as_multipart(pairs(FIELDS)), request(query=urlencode(pairs(FIELDS)))],
    ids=["json", "form", "multipart", "query"],
)
async def test_every_content_type_gives_the_same_fields(sent: Request) -> None:
    found = await read_fields(sent, TranslateRequest)
    assert found == replace(TranslateRequest(q="a", target="en"), **FIELDS)
    assert found.source == "auto" and found.wants_details


async def test_a_list_in_a_form_may_be_json_or_one_value() -> None:
    for value, expected in (
        ('["urls", "a, b"]', ["urls", "a, b"]),
        ("urls", ["urls"]),
        ("[draft]", ["[draft]"]),
        ("[1, 2]", ["[1, 2]"]),
        ("", []),
    ):
        found = await read_fields(as_form([("q", "a"), ("target", "en"), ("protect", value)]), TranslateRequest)
        assert found.protect == expected


async def test_only_the_flag_is_read_from_the_query_of_a_json_body() -> None:
    found = await read_fields(as_json({"q": "a", "target": "en"}, "stream=1&source=fr&other=x"), TranslateRequest)
    assert found.stream and found.source == "auto"
    assert (await read_fields(as_json({"q": "a"}, "stream=true"), SummarizeRequest)).stream
    postedit = await read_fields(as_json({"q": "a", "translation": "b"}, "stream=true"), PosteditRequest)
    assert not hasattr(postedit, "stream")


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"format": "xml"}, "format", ("text", "html")),
        ({"glossary": ["Weiche"]}, "glossary", ("object",)),
        ({"glossary": {"": "turnout"}}, "glossary", ("not be empty",)),
        ({"glossary": {"Weiche": ""}}, "glossary.Weiche", ("not be empty",)),
        ({"glossary": {"Weiche": "x" * (MAX_TERM + 1)}}, "glossary.Weiche", (str(MAX_TERM), str(MAX_TERM + 1))),
        ({"glossary": {"x" * (MAX_TERM + 1): "y"}}, "glossary", (str(MAX_TERM), str(MAX_TERM + 1))),
        (
            {"glossary": {str(number): "x" for number in range(MAX_GLOSSARY + 1)}},
            "glossary",
            (str(MAX_GLOSSARY), str(MAX_GLOSSARY + 1)),
        ),
        ({"protect": "urls"}, "protect", ("list",)),
        ({"protect": [""]}, "protect.0", ("not be empty",)),
        ({"protect": ["x"] * (MAX_PROTECT + 1)}, "protect", (str(MAX_PROTECT),)),
        ({"alignments": "yes"}, "alignments", ("true or false",)),
        ({"stream": 1}, "stream", ("true or false",)),
        ({"api_key": "k" * 513}, "api_key", ("512", "513")),
        ({"protection": []}, "protection", ("not a known field",)),
        ({"caller": "somebody"}, "caller", ("not a known field",)),  # of a request's context, as `recall` is
        ({"sampling": 3}, "sampling", ("must be an object",)),
        ({"sampling": {"heat": 1}}, "sampling.heat", ("not a known field",)),
    ],
)
async def test_a_bad_field_is_named_with_its_bound(changes: dict[str, Any], field: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidFields) as caught:
        await read_fields(as_json({"q": "a", "target": "en", **changes}), TranslateRequest)
    fault = caught.value.detail[0]
    assert fault["field"].startswith(field)
    for word in words:
        assert word in str(caught.value), str(caught.value)


async def test_an_object_in_a_form_that_is_no_json_is_refused() -> None:
    with pytest.raises(HttpError, match="glossary"):
        await read_fields(as_form([("q", "a"), ("target", "en"), ("glossary", "{Weiche: turnout")]), TranslateRequest)


async def test_keys_are_not_shown() -> None:
    found = await read_fields(as_json(FIELDS), TranslateRequest)
    assert found.api_key == "secret" and "secret" not in repr(found)
    with pytest.raises(ValidationError):
        read_object(TranslateRequest, {"q": "a", "target": "en", "api_key": 7}, strict=True)


@pytest.mark.parametrize("charset", ["", "; charset=us-ascii", "; charset=UTF-8"])
async def test_a_multipart_form_is_utf_8_and_nothing_else(charset: str) -> None:
    parts = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = (parts.format("q", "Grüße") + parts.format("target", "en") + "--x--\r\n").encode()
    kind = f"multipart/form-data{charset}; boundary=x"
    assert (await read_fields(request(body, kind), TranslateRequest)).q == "Grüße"
    with pytest.raises(BadRequest, match="not valid UTF-8"):
        await read_fields(request(body.decode().encode("latin-1"), kind), TranslateRequest)


async def test_a_file_in_a_form_is_a_field_with_its_content() -> None:
    part = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    body = part.format("q", '; filename="a.txt"', "Grüße") + part.format("target", "", "en") + "--x--\r\n"
    found = await read_fields(request(body.encode(), "multipart/form-data; boundary=x"), TranslateRequest)
    assert (found.q, found.target) == ("Grüße", "en")


async def test_a_long_form_is_parsed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def parse(raw: bytes) -> list[tuple[str, str]]:
        threads.append(get_ident())
        return [("q", "x"), ("target", "en")]

    monkeypatch.setattr(intake, "_query_pairs", parse)
    await read_fields(request(b"%41" * 30_000, "application/x-www-form-urlencoded"), TranslateRequest)
    assert threads[0] == get_ident() != threads[1]  # of the query string, which is short, and of the body


async def test_so_is_a_long_form_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    parse = intake._multipart_pairs

    async def noted(*given: Any) -> list[tuple[str, str]]:
        threads.append(get_ident())
        return await parse(*given)

    monkeypatch.setattr(intake, "_multipart_pairs", noted)
    part = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    text = "Grüße " * 300_000  # kept on disk by the parser, which waits for that
    body = part.format("q", '; filename="a.txt"', text) + part.format("target", "", "en") + "--x--\r\n"
    found = await read_fields(request(body.encode(), "multipart/form-data; boundary=x"), TranslateRequest)
    assert (found.q, found.target) == (text, "en") and threads[0] != get_ident()
    await read_fields(as_multipart([("q", "a"), ("target", "en")]), TranslateRequest)
    assert threads[1] == get_ident()


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (TranslateRequest, {"q": [1] * 900, "target": "en"}),
        (PosteditRequest, {"q": "a", "translation": [1] * 900, "target": "en"}),
        (SummarizeRequest, {"q": [1] * 900}),
    ],
)
def test_a_list_is_checked_up_to_its_first_fault(model: type[Any], fields: dict[str, Any]) -> None:
    """A megabyte of them would hold up the event loop for seconds."""
    with pytest.raises(InvalidFields) as refused:
        validate(model, fields, strict=False)
    assert len(refused.value.detail) <= 2  # what may be a text or a list is refused as either


async def test_null_is_absent_and_an_empty_body_is_none() -> None:
    nulls = {"format": None, "alternatives": None, "glossary": None, "api_key": None}
    with_nulls = await read_fields(as_json({"q": "Hallo", "target": "en", **nulls}), TranslateRequest)
    assert with_nulls == await read_fields(as_json({"q": "Hallo", "target": "en"}), TranslateRequest)
    with pytest.raises(InvalidFields):
        await read_fields(as_json({"q": "Hallo", "target": "en", "unknown": None}), TranslateRequest)
    with pytest.raises(InvalidFields):
        await read_fields(as_json({"q": None, "target": "en"}), TranslateRequest)
    for method in ("GET", "POST"):
        empty = request(b"", "application/json", "q=Hallo&target=en")
        empty.scope["method"] = method
        assert (await read_fields(empty, TranslateRequest)).q == "Hallo"
    with pytest.raises(InvalidFields) as refused:
        await read_fields(request(b"", "application/json", "source=de"), TranslateRequest)
    assert [(fault["field"], fault["message"]) for fault in refused.value.detail] == [
        ("q", "is required"),
        ("target", "is required"),
    ]
    with pytest.raises(BadRequest, match="the body is empty; send the fields"):
        await read_fields(request(b"", "application/json"), TranslateRequest)


async def test_an_empty_choice_is_none_and_an_empty_text_is_a_text() -> None:
    choices = {"source": "", "model": "", "format": "", "priority": "", "api_key": "", "timeout": "", "sampling": ""}
    found = await read_fields(as_json({"q": "", "target": "en", **choices}), TranslateRequest)
    assert found == await read_fields(as_json({"q": "", "target": "en"}), TranslateRequest)
    assert found.source == "auto" and found.q == ""
    with pytest.raises(InvalidFields, match="target: is required"):
        await read_fields(as_json({"q": "Hallo", "target": ""}), TranslateRequest)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (['["Guten Tag", "Danke"]'], ["Guten Tag", "Danke"]),
        ([' [ "Guten Tag" ]'], ["Guten Tag"]),
        (["Guten Tag", '["Danke"]'], ["Guten Tag", '["Danke"]']),
        (["[draft] Guten Tag"], "[draft] Guten Tag"),
        (["[1, 2]"], "[1, 2]"),
        (["[]"], "[]"),
    ],
)
async def test_texts_of_a_form_may_be_one_json_list(values: list[str], expected: Any) -> None:
    fields = await read_fields(as_form([*(("q", value) for value in values), ("target", "en")]), TranslateRequest)
    assert fields.q == expected
