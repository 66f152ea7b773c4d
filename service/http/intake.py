"""Reads a request's fields from JSON, form, multipart or query string, strictly in UTF-8."""

from __future__ import annotations

import asyncio
import re
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from tandem.service.api.schemas import LIST_FIELDS, OBJECT_FIELDS, names_of, read_object
from tandem.service.http.error_replies import BadRequest, InvalidFields, invalid_fields, unsupported_media

T = TypeVar("T")
P = TypeVar("P")

_MAX_FIELDS = 100_000
IN_THREAD = 65_536
"""Bytes of JSON or of a form of either kind from which on checking or parsing it would hold up the others."""
_CHARSET = re.compile(r";\s*charset=[^;]*", re.I)
_REPEATED = ("q", "text", "translation", *LIST_FIELDS)
_TEXT_FIELDS = frozenset(("q", "text", "translation", "prefix"))
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_FLAG = TypeAdapter(bool)
_ANYWHERE = ("stream",)  # also read from the query string of a request with a JSON body


@dataclass(frozen=True, slots=True)
class JsonBounds:
    """What a JSON body may amount to besides its bytes, before a parser recurses into it or converts a number.

    Attributes:
        depth: levels to which its arrays and objects nest.
        number: characters of a number.
    """

    depth: int
    number: int

    def check(self, body: bytes) -> None:
        """Linear in the body's length, and next to nothing for one that holds little but a text.

        Raises:
            BadRequest: over a bound, with bound and value.
        """
        number = re.compile(rb"[0-9][-+.0-9eE]{%d}" % self.number)
        deep = body.count(b"[") + body.count(b"{") > self.depth
        if not deep and not number.search(body):
            return
        outside = _STRING.sub(b'""', body)
        if number.search(outside):
            message = f"a number in the JSON body may have at most {self.number} characters, but one has more"
            raise BadRequest(message, {"bound": self.number})
        depth = 0
        for match in _BRACKET.finditer(outside):
            depth += 1 if match[0] in b"[{" else -1
            if depth > self.depth:
                message = f"the JSON body may nest at most {self.depth} levels deep, but this one goes deeper"
                raise BadRequest(message, {"bound": self.depth})


async def read_fields(request: Request, model: type[T]) -> T:
    """Parse and validate a request.

    JSON is strict: no unknown fields, no conversions. Form and query values are strings, so numbers and booleans are
    converted, and unknown fields are ignored, because other clients send extras. A field that is null is absent, and
    so is an empty one that is no text.

    Raises:
        BadRequest: broken JSON or form, invalid UTF-8, lone surrogates.
        HttpError: 415, another content type or character set.
        InvalidFields: a field breaks its bounds.
    """
    content = await read_body(request)
    if isinstance(content, dict):
        known = names_of(model)
        given = {name: value for name, value in content.items() if name not in known or _is_given(name, value)}
        return validate(model, given | _flags(request, model), strict=True)
    return validate(model, _gather(content, model), strict=False)


async def read_body(request: Request) -> dict[str, Any] | list[tuple[str, str]]:
    """A JSON object, or the fields of the query string and of a form, in order.

    Raises:
        HttpError: as ``read_fields`` does.
    """
    kind = content_type(request)
    body = await request.body()
    query = request.scope["query_string"]
    json = kind == "application/json" or kind.endswith("+json")
    # Many clients name JSON with every request, also with those that have no body.
    if json and not body and not query and request.method not in ("GET", "HEAD", "DELETE"):
        raise BadRequest("the body is empty; send the fields as a JSON object, or in the query string")
    if json and body:
        return await _parsed(_json_object, body)
    pairs = _query_pairs(query)
    if kind == "application/x-www-form-urlencoded":
        pairs += await _parsed(_query_pairs, body)
    elif kind == "multipart/form-data":
        read = partial(_multipart_pairs, request, body)  # a coroutine's: in a thread it has a loop of its own
        pairs += await (asyncio.to_thread(lambda: asyncio.run(read())) if len(body) > IN_THREAD else read())
    elif body:
        raise unsupported_media(
            f"content type {kind[:80]!r} is not read here; send application/json, application/x-www-form-urlencoded "
            "or multipart/form-data"
        )
    return pairs


async def _parsed(parse: Callable[[bytes], P], body: bytes) -> P:
    """What a body says; a long one is parsed beside the event loop."""
    return await asyncio.to_thread(parse, body) if len(body) > IN_THREAD else parse(body)


def content_type(request: Request) -> str:
    """The media type of a body. Raises HttpError where it is compressed, or its characters are not UTF-8."""
    coding = request.headers.get("content-encoding", "identity").lower()
    if coding != "identity":
        raise unsupported_media(f"content encoding {coding[:40]!r} is not read here; send the body as it is")
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    charset = options.get(b"charset", b"utf-8").decode("latin-1").lower()
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise unsupported_media(f"character set {charset[:40]!r} is not read here; send UTF-8")
    return kind.decode("latin-1").lower()


def validate(model: type[T], fields: Mapping[str, Any], strict: bool) -> T:
    """A body of such fields. Raises InvalidFields."""
    try:
        return read_object(model, fields, strict=strict)
    except ValidationError as error:
        raise invalid_fields(error) from error


def _is_given(name: str, value: Any) -> bool:
    """Whether a field of JSON says anything: a choice that is left empty is none, as in a form."""
    return value is not None and (value != "" or name in _TEXT_FIELDS)


def _flags(request: Request, model: type[Any]) -> dict[str, bool]:
    """What may stand in the query string beside a JSON body."""
    given = dict(_query_pairs(request.scope["query_string"]))
    flags: dict[str, bool] = {}
    for name in _ANYWHERE:
        if given.get(name) and name in names_of(model):
            try:
                flags[name] = _FLAG.validate_python(given[name])
            except ValidationError as error:
                raise InvalidFields.of(name, "must be true or false", given[name]) from error
    return flags


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        content = _parse_json(_utf8(body.removeprefix(BOM_UTF8)))
    except ValueError as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise BadRequest("the body must be a JSON object")
    return content


def _parse_json(text: str) -> Any:
    """A JSON value, without ``NaN`` and the like. Raises ValueError, and BadRequest for half a character."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        if "hex escape" not in str(error):
            raise
        message = "the request has a lone surrogate (half of a \\ud8xx\\udcxx pair), which is no character"
        raise BadRequest(f"{message}: {error}") from error


def _utf8(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"the request is not valid UTF-8 at byte {error.start}") from error


def _query_pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(_utf8(raw), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except UnicodeDecodeError as error:
        raise BadRequest("the fields are not valid UTF-8") from error
    except ValueError as error:
        raise BadRequest(f"a form may have at most {_MAX_FIELDS} fields") from error


async def _multipart_pairs(request: Request, body: bytes) -> list[tuple[str, str]]:
    """The parts of a multipart body; a file counts as a field with its content."""
    _utf8(body)  # what is not UTF-8, Starlette's parser would take for Latin-1; so it would what is sent as us-ascii
    headers = Headers({"content-type": _CHARSET.sub("", request.headers["content-type"])})

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield body

    bounds = {"max_files": _MAX_FIELDS, "max_fields": _MAX_FIELDS, "max_part_size": len(body)}
    try:
        form = await MultiPartParser(headers, pieces(), **bounds).parse()
    except (MultiPartException, ValueError) as error:
        raise BadRequest("the body is not valid multipart/form-data") from error
    try:
        parts = form.multi_items()
        return [(name, part if isinstance(part, str) else _utf8(await part.read())) for name, part in parts]
    finally:
        await form.close()


def _gather(pairs: list[tuple[str, str]], model: type[Any]) -> dict[str, Any]:
    """Known fields only; a repeated text becomes a list, of anything else the last value counts.

    A field that is a list stays one where it is given once; like a text that may be a list it may be one JSON list.
    """
    known = names_of(model) | {"text"}
    texts: dict[str, list[str]] = {}
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in known and name in _REPEATED:
            texts.setdefault(name, []).append(value)
        elif name in known and (value or name in _TEXT_FIELDS):
            fields[name] = _nested(value) if name in OBJECT_FIELDS else value
    given: dict[str, Any] = {
        name: _list(values) if name in LIST_FIELDS else _one_or_several(values) for name, values in texts.items()
    }
    if "text" in given:
        given.setdefault("q", given.pop("text"))
    return {**fields, **{name: value for name, value in given.items() if name != "text"}}


def _one_or_several(values: list[str]) -> Any:
    """A text, or several: a repeated field's, or those of the JSON list that its only value is."""
    if len(values) > 1:
        return values
    nested = _nested(values[0]) if values[0].lstrip()[:1] == "[" else None
    several = isinstance(nested, list) and nested and all(isinstance(one, str) for one in nested)
    return nested if several else values[0]


def _list(values: list[str]) -> list[str]:
    """A repeated field's values, or those of the JSON list that its only value is; empty ones count as not given."""
    given = [value for value in values if value]
    nested = _nested(given[0]) if len(given) == 1 else None
    return nested if isinstance(nested, list) and all(isinstance(one, str) for one in nested) else given


def _nested(value: str) -> Any:
    """An object that a form holds as JSON; what is no JSON stays as it is, for the schema to refuse."""
    try:
        return _parse_json(value)
    except ValueError:
        return value
