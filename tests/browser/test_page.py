"""The page as a whole: what it needs, what it asks for, whose models it shows; and the tabs beside translation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.support import Visit, error, serving
from tests.shipped import ROOT

POLICY = ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'")


def test_a_strict_policy_holds(visit: Visit) -> None:
    response = visit.page.goto(visit.address)
    assert response
    policy = response.headers["content-security-policy"]
    assert all(part in policy for part in POLICY)
    assert "unsafe" not in policy
    visit.page.wait_for_selector("body[data-ready]")
    blocked = visit.page.evaluate(
        """() => new Promise(resolve => {
            document.addEventListener("securitypolicyviolation", event => resolve(event.violatedDirective));
            const script = document.createElement("script");
            script.textContent = "document.body.dataset.broken = 'yes'";
            document.body.append(script);
        })"""
    )
    assert blocked.startswith("script-src")
    assert visit.page.evaluate("document.body.dataset.broken") is None
    visit.faults.clear()  # the browser reported what this test did


def test_models_and_their_training_text_are_named(visit: Visit) -> None:
    page = visit.open()
    models = page.request.get(f"{visit.address}/models").json()
    expect(page.locator("#models-list")).to_be_hidden()
    page.click("#models > summary")
    long = page.locator("#models-list summary")
    for number in range(long.count()):
        long.nth(number).click()
    listed = re.sub(r" …\s*… ", "", page.locator("#models-list").inner_text())
    assert models
    for model in models:
        assert model["licence"] in listed
        assert all(name in listed for name in model["attribution"])


def test_a_model_of_several_directions_names_each(visit: Visit) -> None:
    pairs = [{"source": "fr", "target": "en"}, {"source": "en", "target": "fr"}]
    one = {"name": "fr-en", "task": "translate", "source_languages": ["fr", "en"], "target_language": "en"}
    visit.mock("models", body=[one | {"pairs": pairs, "attribution": [], "licence": "x"}])
    expect(visit.open().locator("#models-list strong")).to_have_text("French to English, English to French")


def test_a_model_that_was_imported_says_where_from(visit: Visit) -> None:
    one = {"task": "translate", "source_languages": ["en"], "target_language": "pt", "attribution": [], "licence": "x"}
    from_there = {"form": "Marian, 8 bits", "url": "https://example.org/models"}
    bad = {"form": "Marian, 8 bits", "url": "javascript:alert(1)"}
    visit.mock("models", body=[one | {"name": name, "origin": of} for name, of in (("a", from_there), ("b", bad))])
    page = visit.open()
    page.click("#models > summary")
    expect(page.locator("#models-list li").nth(0)).to_contain_text(
        "Imported from: Marian, 8 bits, https://example.org/models"
    )
    assert [link.get_attribute("href") for link in page.locator("#models-list a").all()] == [from_there["url"]]


def test_whose_model_answered_is_said_beside_the_result(visit: Visit) -> None:
    page = visit.translate("Guten Tag, wo ist der Bahnhof?")
    expect(page.locator("#origin")).to_contain_text("Model: de-fr-en · Licence: CC-BY-4.0")
    page.locator("#origin").get_by_role("link", name="Training text").click()
    expect(page.locator("#models-list")).to_be_visible()
    expect(page.locator("#models > summary")).to_be_focused()
    assert page.url.endswith("#translate")
    page.click("#clear")
    expect(page.locator("#origin")).to_be_empty()


def test_a_summary(visit: Visit) -> None:
    page = visit.open("summarize")
    page.click("#sum-example")
    expect(page.locator("#sum-output")).not_to_be_empty()
    first = page.locator("#sum-output").inner_text()
    expect(page.locator("#sum-truncated")).to_be_empty()
    expect(page.locator("#sum-origin")).to_contain_text("arxiv-title")
    page.click("#sum-other")
    expect(page.locator("#sum-output")).not_to_have_text(first)
    page.get_by_label("Long").check()
    expect(page.locator("#sum-output")).to_have_text(re.compile(f".{{{len(first) + 1},}}"))
    page.click("#sum-clear")
    expect(page.locator("#sum-empty")).to_be_visible()


NEWS = (
    "The town council decided on Monday to renew the old swimming pool by the river. The pool was closed two years "
    "ago, because water had come into its cellar. The council pays half of the two million euros. "
) * 6


@pytest.mark.parametrize(
    "visit", [{}, {"viewport": {"width": 360, "height": 640}}], ids=["wide", "phone"], indirect=True
)
def test_the_summary_of_a_long_text_is_in_sight_and_says_that_it_is_an_extract(visit: Visit) -> None:
    page = visit.open("summarize")
    page.fill("#sum-text", NEWS * 6)
    page.click("#sum-button")
    expect(page.locator("#sum-extracted")).to_contain_text("Sentences of the text itself")
    expect(page.locator("#sum-output")).to_contain_text("renew the old swimming pool")
    expect(page.locator("#sum-output")).to_be_in_viewport(ratio=0.5)
    expect(page.locator("#sum-origin")).to_be_empty()  # no model answered
    page.select_option("#sum-method", "model")
    expect(page.locator("#sum-extracted")).to_be_empty()


@pytest.mark.parametrize(
    "visit", [{"viewport": {"width": 320, "height": 640}, "locale": locale} for locale in ("de", "fr", "en")],
    ids=["de", "fr", "en"], indirect=True,
)  # fmt: skip
def test_nothing_is_wider_than_a_small_phone(visit: Visit) -> None:
    for tab in ("translate", "summarize", "files"):
        page = visit.open(tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, tab


@pytest.mark.slow
def test_a_cut_text_is_said_to_be_cut(visit: Visit) -> None:
    visit.mock("summarize", 200, {"summary": "a study", "truncated": True})
    page = visit.open("summarize")
    page.fill("#sum-text", "We study the depth of scenes from single images without labels. " * 20)
    page.press("#sum-text", "Control+Enter")
    expect(page.locator("#sum-truncated")).to_contain_text("only its beginning was summarized")


@pytest.mark.parametrize("visit", [{"locale": "fr"}], indirect=True, ids=["fr"])
def test_a_text_that_the_model_does_not_summarize(visit: Visit) -> None:
    visit.expected.add(422)
    page = visit.open("summarize")
    page.select_option("#sum-method", "model")
    page.fill(
        "#sum-text", "Le conseil municipal a décidé lundi de rénover la piscine. Elle était fermée depuis deux ans."
    )
    page.click("#sum-button")
    expect(page.locator("#sum-problem")).to_have_text(
        "Le modèle ne résume que des textes dans ces langues : anglais. "
        "« Automatique » répond par des phrases du texte lui-même."
    )


@pytest.mark.slow
def test_a_summary_that_fails(visit: Visit) -> None:
    visit.mock("summarize", 504, error("deadline"))
    page = visit.open("summarize")
    page.click("#sum-example")
    expect(page.locator("#sum-problem")).to_contain_text("took too long")


@pytest.mark.slow
def test_what_is_not_served_is_not_shown(visit: Visit) -> None:
    models = [
        model for model in visit.page.request.get(f"{visit.address}/models").json() if model["task"] == "translate"
    ]
    visit.mock("models", body=models)
    visit.mock("frontend/settings", body={"charLimit": -1, "filesTranslation": False})
    page = visit.open("summarize")
    expect(page.locator("#tabs")).to_be_hidden()
    expect(page.locator("#panel-translate")).to_be_visible()


@pytest.mark.slow
def test_a_server_without_settings_or_models_still_translates(visit: Visit) -> None:
    visit.mock("frontend/settings", 404, error("route_not_found"))
    visit.mock("models", 500, error("internal"))
    page = visit.translate("Guten Morgen.")
    expect(page.locator("#count")).to_have_text("13 characters")


def test_a_file_comes_back_translated(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("files", source="de")
    if page.locator("#panel-files").is_hidden():
        pytest.skip("the server takes no files")
    text = tmp_path / "brief.txt"
    text.write_text("Guten Morgen.\n\nWo ist der Bahnhof?\n", encoding="utf-8")
    page.set_input_files("#file-input", text)
    row = page.locator("#files-list li").first
    expect(row.locator(".state")).to_contain_text("Finished")
    with page.expect_download() as download:
        row.get_by_role("button", name="Download").click()
    written = Path(download.value.path()).read_text(encoding="utf-8")
    assert "Good morning.\n\nWhere" in written
    row.get_by_role("button", name="Remove").click()
    expect(page.locator("#files-list li")).to_have_count(0)
    expect(page.locator("#files-empty")).to_be_visible()


@pytest.mark.parametrize("visit", [{"locale": "de"}], indirect=True, ids=["de"])
def test_each_file_that_cannot_be_read_says_so_itself(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("files", source="de")
    if page.locator("#panel-files").is_hidden():
        pytest.skip("the server takes no files")
    visit.expected |= {415, 422}
    reasons = {
        "kaputt.docx": "Die Datei enthält nicht, was ihr Name sagt.",
        "bild.png": "Dateien dieser Art werden hier nicht übersetzt.",
        "latein.txt": "Die Datei ist nicht lesbar.",
    }
    for name in reasons:
        (tmp_path / name).write_bytes("Grüße".encode("latin-1"))
    page.set_input_files("#file-input", [tmp_path / name for name in reasons])
    for name, reason in reasons.items():
        row = page.locator("#files-list li").filter(has=page.locator(".name", has_text=name))
        expect(row.get_by_role("alert")).to_contain_text(f"{name}: {reason}")
    page.get_by_role("button", name="bild.png entfernen").click()
    expect(page.locator("#files-list li")).to_have_count(2)


def test_a_file_is_sent_again_from_its_own_row(visit: Visit, tmp_path: Path) -> None:
    visit.expected.add(503)
    sent: list[Route] = []

    def answer(route: Route) -> None:
        if route.request.method == "GET":
            return route.fulfill(json=[])
        sent.append(route)
        if len(sent) == 1:
            return route.fulfill(status=503, json=error("files_full"), headers={"Retry-After": "600"})
        return route.fulfill(
            json={"id": "a1", "name": "a.txt", "status": "failed", "code": "broken_file", "error": "no"}
        )

    visit.mock("frontend/settings", body={"filesTranslation": True, "supportedFilesFormat": [".txt"]})
    visit.route("files", answer)
    page = visit.open("files", source="de")
    (tmp_path / "a.txt").write_text("Guten Morgen.", encoding="utf-8")
    page.set_input_files("#file-input", tmp_path / "a.txt")
    row = page.locator("#files-list li")
    expect(row.get_by_role("alert")).to_contain_text("no room for more files")
    row.get_by_role("button", name="Try now").click()
    expect(row.get_by_role("alert")).to_contain_text("The file cannot be read.")
    expect(row).to_have_count(1)


def test_a_result_that_cannot_be_fetched_is_asked_for_again(visit: Visit, tmp_path: Path) -> None:
    job = {"id": "a1", "name": "a.txt", "status": "done", "result_name": "a.en.txt"}
    visit.mock("frontend/settings", body={"filesTranslation": True, "supportedFilesFormat": [".txt"]})
    visit.route("files", lambda route: route.fulfill(json=[] if route.request.method == "GET" else job))
    visit.mock("files/a1/result", 500, error("internal"))
    page = visit.open("files", source="de")
    (tmp_path / "a.txt").write_text("Guten Morgen.", encoding="utf-8")
    page.set_input_files("#file-input", tmp_path / "a.txt")
    row = page.locator("#files-list li")
    row.get_by_role("button", name="Download").click()
    expect(row.get_by_role("alert")).to_contain_text("Something went wrong on the server.")
    visit.route("files/a1/result", lambda route: route.fulfill(body="Good morning."))
    with page.expect_download() as download:
        row.get_by_role("button", name="Try again").click()
    assert download.value.suggested_filename == "a.en.txt"
    expect(row.get_by_role("alert")).to_have_count(0)


def test_progress_of_a_file_is_shown_and_can_be_stopped(visit: Visit, tmp_path: Path) -> None:
    job = {"id": "a1", "name": "long.txt", "status": "running", "progress": 0.25}
    deleted: list[str] = []

    def one(route: Route) -> None:
        if route.request.method == "DELETE":
            deleted.append(route.request.url)
            route.fulfill(status=204)
        else:
            route.fulfill(json=job)

    visit.mock("frontend/settings", body={"filesTranslation": True, "supportedFilesFormat": [".txt"]})
    visit.route("files", lambda route: route.fulfill(json=[] if route.request.method == "GET" else job))
    visit.route("files/a1", one)
    page = visit.open("files", source="de")
    long = tmp_path / "long.txt"
    long.write_text("Guten Morgen.", encoding="utf-8")
    page.set_input_files("#file-input", long)
    expect(page.locator("#files-list .state")).to_have_text("Translating, 25 %")
    expect(page.locator("#files-list progress")).to_have_attribute("value", "0.25")
    page.get_by_role("button", name="Cancel long.txt").click()
    expect(page.locator("#files-list li")).to_have_count(0)
    assert len(deleted) == 1


@pytest.mark.slow
def test_a_server_that_asks_for_keys(browser: Browser, tmp_path: Path) -> None:
    """The real thing: a key made by the command, a text, and a file that is sent, watched and fetched with it."""
    made = [sys.executable, "-m", "tandem", "keys", "add", "page"]
    environment = os.environ | {"TANDEM_DATA": str(tmp_path)}
    shown = subprocess.run(made, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    text = tmp_path / "brief.txt"
    text.write_text("Guten Morgen.", encoding="utf-8")
    with serving(tmp_path, TANDEM_REQUIRE_KEY="true") as address:
        context = browser.new_context(locale="en")
        visit = Visit(context.new_page(), address, expected={401})
        page = visit.open(source="de")
        page.fill("#source-text", "Guten Morgen.")
        page.get_by_role("button", name="Enter a key").click()
        page.fill("#key-field", shown.split()[-1])
        page.keyboard.press("Enter")
        expect(page.locator("#output .sentence")).to_have_count(1)
        page.click("#tab-files")
        page.set_input_files("#file-input", text)
        row = page.locator("#files-list li")
        expect(row.locator(".state")).to_contain_text("Finished")
        page.reload()
        page.wait_for_selector("body[data-ready=key]")
        with page.expect_download() as download:
            row.get_by_role("button", name="Download").click()
        assert download.value.suggested_filename == "brief.en.txt"
        context.close()
        visit.check()
