"""The page around the text: its own language, the model of a pair, the history, and how it is installed."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Route, expect

from tests.browser.support import GERMAN, Visit, texts_of

GERMAN_BROWSER = {"locale": "de-AT"}
DESCRIBED = {
    "task": "translate",
    "source_languages": ["de"],
    "target_language": "en",
    "attribution": [],
    "licence": "x",
}


@pytest.mark.parametrize("visit", [GERMAN_BROWSER], indirect=True, ids=["de"])
def test_the_page_speaks_the_browsers_language_until_another_is_chosen(visit: Visit) -> None:
    page = visit.open()
    assert page.locator("html").get_attribute("lang") == "de"
    expect(page.locator("#tab-translate")).to_have_text("Übersetzen")
    assert "Deutsch" in texts_of(page, "#source-language option")
    page.fill("#source-text", GERMAN)
    with page.expect_navigation():
        page.select_option("#interface", "fr")
    expect(page.locator("#tab-translate")).to_have_text("Traduire")
    expect(page.locator("#source-text")).to_have_value(GERMAN)  # what was typed stays, and is translated
    expect(page.locator("#output .sentence")).to_have_count(2)
    assert "Allemand" in texts_of(page, "#source-language option")
    expect(visit.open().locator("#tab-translate")).to_have_text("Traduire")


@pytest.mark.parametrize("visit", [GERMAN_BROWSER], indirect=True, ids=["de"])
def test_the_page_offers_its_own_language_first(visit: Visit) -> None:
    """And an example in another one."""
    names = {"de": "German", "en": "English", "fr": "French"}
    languages = [{"code": code, "name": name, "targets": sorted({*names} - {code})} for code, name in names.items()]
    visit.mock("languages", body=languages)
    visit.mock("translate", body={"translatedText": "Wo?", "details": []})
    page = visit.open()
    expect(page.locator("#target-language")).to_have_value("de")
    page.click("#example")
    expect(page.locator("#output")).to_have_text("Wo?")
    expect(page.locator("#source-text")).to_have_value("Where is the station? I am waiting for my friends.")


@pytest.mark.parametrize(
    ("visit", "all_of_them", "one"),
    [
        ({"locale": "en"}, "Type or paste text in German, English, or French", "Type or paste text in German"),
        ({**GERMAN_BROWSER, "viewport": {"width": 360, "height": 740}},
         "Text auf Deutsch, Englisch oder Französisch eingeben oder einfügen",
         "Text auf Deutsch eingeben oder einfügen"),
        ({"locale": "fr"}, "Saisissez ou collez un texte en allemand, anglais ou français",
         "Saisissez ou collez un texte en allemand"),
    ],
    indirect=["visit"],
    ids=["en", "de", "fr"],
)  # fmt: skip
def test_the_empty_field_says_what_can_be_typed(visit: Visit, all_of_them: str, one: str) -> None:
    codes = {"de": "German", "en": "English", "fr": "French"}
    visit.mock(
        "languages", body=[{"code": code, "name": codes[code], "targets": [*{*codes} - {code}]} for code in codes]
    )
    field = visit.open().locator("#source-text")
    expect(field).to_have_attribute("placeholder", all_of_them)
    assert field.evaluate("element => element.scrollHeight <= element.clientHeight")  # all of it is seen
    visit.page.select_option("#source-language", "de")
    expect(field).to_have_attribute("placeholder", one)


def test_a_model_is_chosen_where_a_pair_has_several(visit: Visit) -> None:
    expect(visit.open(source="de").locator("#model-field")).to_be_hidden()
    visit.mock("models", body=[{**DESCRIBED, "name": name} for name in ("de-en@1", "de-en@2")])
    asked: list[str | None] = []

    def answer(route: object) -> None:
        asked.append(json.loads(route.request.post_data).get("model"))  # type: ignore[attr-defined]
        route.fulfill(json={"translatedText": "Hello.", "details": []})  # type: ignore[attr-defined]

    visit.route("translate", answer)
    page = visit.open(source="de")
    page.fill("#source-text", "Hallo.")
    page.press("#source-text", "Control+Enter")
    expect(page.locator("#output")).to_have_text("Hello.")
    page.select_option("#model", "de-en@1")
    expect(page.locator("#output-pane.busy")).to_have_count(0)
    assert asked == [None, "de-en@1"]


@pytest.mark.slow
def test_a_model_that_was_chosen_goes_where_a_text_is_in_another_language(visit: Visit) -> None:
    visit.mock("models", body=[{**DESCRIBED, "name": name} for name in ("de-en@1", "de-en@2")])
    asked: list[str | None] = []
    found = {"language": "de", "confidence": 99.0}

    def answer(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or "").get("model"))
        route.fulfill(json={"translatedText": "Hello.", "details": [], "detectedLanguage": found})

    visit.route("translate", answer)
    visit.route("detect", lambda route: route.fulfill(json=[found]))
    page = visit.open(source="auto")
    for text, model in (("Hallo.", "de-en@1"), ("Bonjour.", None)):
        page.fill("#source-text", text)
        with page.expect_response("**/translate"):
            page.press("#source-text", "Control+Enter")
        if model:
            with page.expect_response("**/translate"):
                page.select_option("#model", model)
        found["language"] = "fr"
    assert asked == [None, "de-en@1", None]
    expect(page.locator("#model-field")).to_be_hidden()


def test_a_history_is_kept_where_it_is_asked_for(visit: Visit) -> None:
    page = visit.translate("Guten Abend.")
    page.click("#history-button")
    expect(page.locator("#history-empty")).to_be_visible()
    page.check("#history-keep")
    page.keyboard.press("Escape")
    for text in ("Guten", "Guten Morgen.", "Danke."):
        page.fill("#source-text", text)
        with page.expect_response("**/translate"):
            page.press("#source-text", "Control+Enter")
        expect(page.locator("#output-pane.busy")).to_have_count(0)
    page = visit.open()
    page.click("#history-button")
    kept = page.locator("#history-list button")
    expect(kept).to_have_count(2)  # "Guten" was only the beginning of a text
    kept.nth(1).click()
    expect(page.locator("#source-text")).to_have_value("Guten Morgen.")
    expect(page.locator("#output .sentence")).to_have_count(1)
    page.click("#history-button")
    page.click("#history-clear")
    expect(kept).to_have_count(0)
    assert page.evaluate("localStorage.getItem('tandem.history')") is None


@pytest.mark.slow
def test_the_page_can_be_installed(visit: Visit) -> None:
    page = visit.open()
    session = page.context.new_cdp_session(page)
    found = session.send("Page.getAppManifest")
    assert found["url"] == f"{visit.address}/web/manifest.webmanifest"
    assert not found["errors"]
    faults = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [fault["errorId"] for fault in faults] == ["in-incognito"]  # as every window of these tests is
