"""The reference pages are what the code says of itself, and whole."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

from docs.reference import OF_LIBRARIES, OF_THE_IMAGE, PAGES, ROOT, openapi_document, pages
from tandem.extras.dialects.deepl.schemas import (
    DeepLTranslateRequest,
    DictionaryFields,
    DocumentKey,
    GlossaryChange,
    GlossaryRequest,
    MultilingualGlossaryRequest,
)
from tandem.service.api.schemas import DetectRequest, PosteditRequest, SummarizeRequest, TranslateRequest, adapter_of
from tandem.service.settings import Settings

API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
BODIES: dict[str, type[Any]] = {
    "POST /translate": TranslateRequest,
    "POST /postedit": PosteditRequest,
    "POST /summarize": SummarizeRequest,
    "POST /detect": DetectRequest,
    "POST /v2/translate": DeepLTranslateRequest,
    "POST /v2/document/{document_id}": DocumentKey,
    "POST /v2/document/{document_id}/result": DocumentKey,
    "POST /v2/glossaries": GlossaryRequest,
    "POST /v3/glossaries": MultilingualGlossaryRequest,
    "PATCH /v3/glossaries/{glossary_id}": GlossaryChange,
    "PUT /v3/glossaries/{glossary_id}/dictionaries": DictionaryFields,
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_match_the_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_MAX_BEAM_SIZE", "3")  # of which the pages know nothing
    (text,) = pages(names=(name,)).values()
    assert "written by python -m docs.reference" in text
    assert (ROOT / name).read_text(encoding="utf-8") == text, "run python -m docs.reference"


def test_a_page_that_does_not_match_is_mended_within_its_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Before.\n<!-- written by python -m docs.reference: settings -->\nSTALE\n<!-- until here -->\nAfter.\n"
    )
    (text,) = pages(tmp_path, ("page.md",)).values()
    assert "STALE" not in text and "| `max_texts` | `TANDEM_MAX_TEXTS` | `--max-texts` | `100` |" in text
    assert text.startswith("Before.\n") and text.endswith("\n<!-- until here -->\nAfter.\n")
    page.write_text(text.replace("settings -->", "nothing -->"))
    with pytest.raises(KeyError, match="nothing"):
        pages(tmp_path, ("page.md",))


def test_every_route_field_and_error_is_on_the_page() -> None:
    document = openapi_document()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert f"| `{method.upper()} {path}` |" in API
            for status in operation["responses"]:
                assert status.startswith("2") or f"\n| {status} |" in API
    for name in (
        "TranslateRequest",
        "PosteditRequest",
        "SummarizeRequest",
        "TranslateReply",
        "ErrorBody",
        "FileStatus",
    ):
        _, _, table = API.partition(f"### {name}\n")
        for field in document["components"]["schemas"][name]["properties"]:
            assert f"| `{field}` |" in table.partition("\n### ")[0]
    for bound in ("maximum 10)", "At most 20000 characters", "maxItems 100)", "maximum 60.0)"):
        assert bound in API


def test_links_lead_somewhere() -> None:
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", API, re.M)
    }
    links = set(re.findall(r"\]\(#([^)]+)\)", API))
    assert links and links <= anchors, links - anchors


def test_requests_on_the_page_are_ones_that_routes_take() -> None:
    routes = {f"{method.upper()} {path}" for path, methods in openapi_document()["paths"].items() for method in methods}
    shown = set()
    for block in re.findall(r"^```sh\n(.*?)^```", API, re.M | re.S):
        for command in block.replace("\\\n", "").splitlines():
            words = shlex.split(command)
            options = dict(itertools.pairwise(words))
            (address,) = (word for word in words if word.startswith("http://127.0.0.1:8000"))
            posts = "-d" in words or "-F" in words
            route = options.get("-X", "POST" if posts else "GET") + " " + address.removeprefix("http://127.0.0.1:8000")
            assert route in routes, route
            shown.add(route)
            if "-d" in words:
                adapter = adapter_of(BODIES[route])
                strict = None if is_dataclass(BODIES[route]) else True  # as records are by their configuration
                adapter.validate_python(json.loads(options["-d"]), strict=strict, extra="forbid")
    assert shown >= BODIES.keys() | {"POST /files", "GET /files/{id}/result"}


def test_every_setting_reaches_the_container() -> None:
    """Those of all extras too; the compose files pass them on, and their example shows each once."""
    passed = (ROOT / "deploy" / "docker" / "settings.env").read_text(encoding="utf-8")
    names = {line for line in passed.splitlines() if not line.startswith("#")}
    ours = {f"TANDEM_{name.upper()}" for name in Settings.model_fields if name not in OF_THE_IMAGE}
    assert names == ours | set(OF_LIBRARIES)
    shown = re.findall(r"^#(\w+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) == len(set(shown))
    assert ours <= set(shown)
    assert "env_file: deploy/docker/settings.env" in (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
