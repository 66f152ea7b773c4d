"""How the core finds what is here."""

from __future__ import annotations

import pytest

from tandem.extras.dialects.deepl.routes import features_here
from tandem.extras.dialects.openai.routes import router
from tandem.extras.dialects.port import EXTRA
from tandem.service.app import create_app
from tandem.service.http.parts import HttpPart, dialect_of, http_parts
from tandem.service.ports import extras, load
from tandem.service.settings import Settings


def test_what_the_port_names_is_there() -> None:
    here = {extra.name for extra in extras()}
    assert all(isinstance(load(place), HttpPart) for place, needed in EXTRA.http.items() if here.issuperset(needed))
    assert {route.path for route in router.routes} <= {route.path for route in create_app(Settings()).routes}  # type: ignore[attr-defined]


def test_dialects_are_told_by_their_paths() -> None:
    names = {path: getattr(dialect_of(path), "name", None) for path in ("/v1/models", "/v2/usage", "/v3/x", "/models")}
    assert names == {"/v1/models": "OpenAI", "/v2/usage": "DeepL", "/v3/x": "DeepL", "/models": None}
    here = {extra.name for extra in extras()}
    assert len(http_parts()) >= sum(here.issuperset(needed) for needed in EXTRA.http.values())


def test_keys_of_deepls_clients_are_described() -> None:
    document = create_app(Settings.model_construct()).openapi()
    assert set(document["components"]["securitySchemes"]) == {"bearer", "deepl"}
    security = {path: next(iter(document["paths"][path].values()))["security"] for path in ("/translate", "/v2/usage")}
    assert security == {"/translate": [{}, {"bearer": []}, {"deepl": []}], "/v2/usage": [{}, {"deepl": []}]}
    assert document["paths"]["/v1/models"]["get"]["security"] == [{}, {"bearer": []}]


def test_settings_are_found_by_name() -> None:
    assert Settings.model_fields["deepl_timeout"].default == 9.0


def test_what_other_extras_bring_is_not_offered_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = features_here()
    assert set(whole) == {"translate_text", "translate_document", "glossary"}
    monkeypatch.setattr("tandem.extras.dialects.deepl.routes.extras", lambda: (EXTRA,))
    (alone,) = features_here().items()
    assert alone[0] == "translate_text" and {one.name for one in alone[1]} == {"tag_handling", "auto_detection"}
