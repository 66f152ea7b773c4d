"""``docs/api.md`` is what the app says of itself, and whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.api_page import api_page
from service.app import create_app
from service.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    return api_page()


def test_the_page_matches_the_code(page: str) -> None:
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == page, "run python -m deploy.reference"


def test_the_page_does_not_depend_on_the_environment(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_MAX_BEAM_SIZE", "3")
    assert api_page() == page


def test_every_route_and_field_is_on_the_page(page: str) -> None:
    document = create_app(Settings.model_construct()).openapi()
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"### {method.upper()} {path}\n" in page
    for name in ("TranslateRequest", "PosteditRequest", "SummarizeRequest", "TranslateReply", "ErrorBody"):
        for field in document["components"]["schemas"][name]["properties"]:
            assert f"| `{field}` |" in page
    for bound in ("at most 10)", "At most 20000 characters", "at most 100 items", "at most 60)"):
        assert bound in page


def test_links_lead_somewhere(page: str) -> None:
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = set(re.findall(r"\]\(#([^)]+)\)", page))
    assert links and links <= anchors, links - anchors
