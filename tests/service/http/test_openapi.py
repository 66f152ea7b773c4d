"""The OpenAPI document: whole, true to the code, and shown by a page that loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel, TypeAdapter

from tandem.service.api import examples
from tandem.service.api.replies import SentenceEvent, SummarizeReply, SummaryEvent, TranslateReply
from tandem.service.api.schemas import (
    OBJECT_FIELDS,
    DetectRequest,
    PosteditRequest,
    SummarizeRequest,
    TranslateRequest,
    adapter_of,
    names_of,
    read_object,
)
from tandem.service.app import create_app
from tandem.service.http.openapi import bodies, error_responses
from tandem.service.http.parts import dialect_of
from tandem.service.settings import Settings
from tests.service.support import Served

Document = dict[str, Any]
OWN_ERRORS = {"400", "401", "403", "404", "408", "413", "415", "422", "429", "500", "503", "504"}


@pytest.fixture(scope="module")
def document() -> Document:
    return create_app(Settings.model_construct(max_beam_size=7, max_texts=9, request_timeout=11.0)).openapi()


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


@pytest.mark.parametrize(
    ("events", "done"),
    [(examples.TRANSLATE_EVENTS, TranslateReply), (examples.SUMMARIZE_EVENTS, SummarizeReply)],
)
def test_example_events_are_what_is_streamed(events: str, done: type[BaseModel]) -> None:
    models: dict[str, type[BaseModel]] = {"sentence": SentenceEvent, "summary": SummaryEvent, "done": done}
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", events)
    assert "".join(f"event: {name}\ndata: {data}\n\n" for name, data in found) == events
    for name, data in found:
        models[name].model_validate_json(data, strict=True, extra="forbid")
    assert found[-1][0] == "done"


def test_every_text_route_has_all_of_its_errors_with_examples(document: Document) -> None:
    for path in ("/translate", "/postedit", "/summarize"):
        responses = document["paths"][path]["post"]["responses"]
        assert set(responses) - {"200"} == OWN_ERRORS
        for status in OWN_ERRORS:
            content = responses[status]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/ErrorBody"}
            assert all(content["example"][field] for field in ("error", "code", "request_id"))


def test_where_a_parameter_may_be_wrong_the_document_says_what_comes(document: Document) -> None:
    bounds = {"anyOf", "enum", "format", "maxLength", "maximum", "minLength", "minimum", "pattern"}
    wrong = {
        f"{method} {path}": set(operation["responses"])
        for method, path, operation in operations(document)
        if any(bounds & set(parameter["schema"]) for parameter in operation.get("parameters", ()))
    }
    assert wrong
    assert {name: statuses for name, statuses in wrong.items() if not statuses & {"400", "422"}} == {}


def test_replies_have_examples_and_headers(document: Document) -> None:
    for method, path, operation in operations(document):
        assert operation["tags"], path
        for status, response in operation["responses"].items():
            assert "X-Request-ID" in response["headers"], (method, path, status)
            assert ("Retry-After" in response["headers"]) == (status in ("429", "503", "529"))
    for path in ("/translate", "/summarize"):
        content = document["paths"][path]["post"]["responses"]["200"]["content"]
        assert content["application/json"]["example"] and "event: done" in content["text/event-stream"]["example"]


def test_every_json_reply_of_success_has_an_example_that_its_model_takes() -> None:
    app = create_app(Settings.model_construct())
    routes = [one for one in iter_route_contexts(app.routes) if isinstance(one.original_route, APIRoute)]
    given = {(method.lower(), one.path): one for one in routes for method in one.methods or ()}
    for method, path, operation in operations(app.openapi()):
        for status, response in operation["responses"].items():
            content = response.get("content", {}).get("application/json")
            if not status.startswith("2") or content is None:
                continue
            model = TypeAdapter(given[method, path].response_model)
            found = model.validate_python(content["example"], extra="forbid")
            assert model.dump_python(found, mode="json", exclude_unset=True) == content["example"], (method, path)


def test_every_body_has_examples_that_its_model_takes(document: Document) -> None:
    shown = set()
    for method, path, operation in operations(document):
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            if "$ref" in content["schema"]:
                name = content["schema"]["$ref"].rsplit("/", 1)[1].removesuffix("Form")
                (model,) = (model for model in bodies() if model.__name__ == name)
                for example in content["examples"].values():
                    found = read_object(model, example["value"], strict=dialect_of(path) is None)
                    said = {field: getattr(found, field) for field in names_of(model) & example["value"].keys()}
                    given = said if is_dataclass(model) else adapter_of(model).dump_python(found, exclude_unset=True)
                    assert given == example["value"], (method, path, kind)
                shown.add(name)
    assert len(shown) == len(bodies())


def test_bodies_are_described_for_every_content_type(document: Document) -> None:
    schemas = document["components"]["schemas"]
    requests = (TranslateRequest, PosteditRequest, SummarizeRequest, DetectRequest)
    for model in requests:
        path = f"/{model.__name__.removesuffix('Request').lower()}"
        body = document["paths"][path]["post"]["requestBody"]
        content = body["content"]
        assert set(content) == {"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}
        assert content["application/json"]["schema"] == {"$ref": f"#/components/schemas/{model.__name__}"}
        assert all(kind["examples"] for kind in content.values())
        fields = schemas[model.__name__]["properties"]
        assert set(fields) == names_of(model)
        assert all(field.get("description") for field in fields.values())
        assert schemas[model.__name__]["additionalProperties"] is False
        form = schemas[content["multipart/form-data"]["schema"]["$ref"].rsplit("/", 1)[1]]
        assert set(form["properties"]) == set(fields) and "additionalProperties" not in form
        objects = [name for name in OBJECT_FIELDS if name in fields]
        assert list(content["multipart/form-data"]["encoding"]) == objects
        assert all(f"`{name}`" in body["description"] for name in objects)
        assert not objects or "as JSON" in body["description"]
    others = schemas["TranslateRequest"]["properties"]["others"]["anyOf"][0]
    assert (others["type"], others["maxProperties"]) == ("object", 15)


def test_limits_of_the_settings_stand_in_the_document(document: Document) -> None:
    fields = document["components"]["schemas"]["TranslateRequest"]["properties"]
    bounds = {name: json.dumps(fields[name]) for name in ("q", "beam_size", "alternatives", "timeout")}
    assert '"maxItems": 9' in bounds["q"] and "20000 characters" in bounds["q"]
    assert '"maximum": 7' in bounds["beam_size"] and '"maximum": 6' in bounds["alternatives"]
    assert '"maximum": 11.0' in bounds["timeout"]


def test_keys_are_described(document: Document) -> None:
    schemes = list(document["components"]["securitySchemes"])
    assert schemes[0] == "bearer"
    security = {(method, path): operation["security"] for method, path, operation in operations(document)}
    assert security["post", "/translate"] == [{}, *({name: []} for name in schemes)]
    assert security["get", "/languages"] == security["get", "/healthz"] == []
    assert document["servers"] and document["info"]["version"]


def test_nothing_of_the_frameworks_own_errors_is_left(document: Document) -> None:
    assert "HTTPValidationError" not in json.dumps(document)
    named = {tag["name"] for tag in document["tags"]}
    assert {tag for _, _, operation in operations(document) for tag in operation["tags"]} <= named
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document))):
        place: Any = document
        for key in reference.split("/"):
            place = place[key]


def test_every_status_of_an_error_has_words() -> None:
    found = error_responses(*examples.ERRORS)
    assert set(found) == set(examples.ERRORS)


@pytest.mark.anyio
async def test_the_document_is_served(service: Served) -> None:
    response = await service.client.get("/openapi.json")
    assert response.status_code == 200
    assert set(response.json()["paths"]) >= {
        "/translate",
        "/summarize",
        "/postedit",
        "/detect",
        "/languages",
        "/models",
    }


@pytest.mark.anyio
async def test_the_viewer_loads_only_what_is_served_here(service: Served) -> None:
    page = await service.client.get("/docs")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    for name in loaded:
        assert "//" not in name
        if not name.startswith("data:"):
            file = await service.client.get(f"/{name}")
            assert file.status_code == 200 and len(file.content) > 10, name
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=", page.text)
    known = await service.client.get("/docs", headers={"if-none-match": page.headers["etag"]})
    assert known.status_code == 304 and not known.content
    assert (await service.client.get("/docs/other.js")).status_code == 404
    assert (await service.client.head("/docs")).status_code == 200
