"""Who uses the page how: by keyboard, on a phone, in the dark, with a screen reader, from right to left."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it ships no annotations
from playwright.sync_api import Page, expect

from tests.browser.support import GERMAN, Visit, texts_of

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
TABLET = {"viewport": {"width": 768, "height": 1024}}
TABS = ("translate", *(pytest.param(tab, marks=pytest.mark.slow) for tab in ("summarize", "files")))
LIGHT, DARK = ({"color_scheme": scheme} for scheme in ("light", "dark"))
SLOW_DARK = pytest.param(DARK, marks=pytest.mark.slow)
LEAST = 40  # CSS pixels of a control in either direction


def show(visit: Visit, tab: str) -> Page:
    """A tab with something in it, where the server has it."""
    page = visit.translate(GERMAN)
    control = page.locator(f"#tab-{tab}")
    if control.is_hidden():
        pytest.skip(f"the server does not offer {tab}")
    control.click()
    if tab == "summarize":
        page.click("#sum-example")
        expect(page.locator("#sum-output")).not_to_be_empty()
    return page


def findings(page: Page) -> list[str]:
    """What axe-core finds fault with, with the elements: WCAG's levels A and AA, and what it calls best practice."""
    return [f"{one['id']}: {one['nodes']}" for one in Axe().run(page).response["violations"]]


@pytest.mark.parametrize(
    "visit",
    [pytest.param({**LIGHT, "locale": "fr"}, marks=pytest.mark.slow), {**DARK, "locale": "de"}],
    indirect=True,
    ids=["light", "dark"],
)
@pytest.mark.parametrize("tab", TABS)
def test_assistive_technology_finds_no_fault(visit: Visit, tab: str) -> None:
    assert not findings(show(visit, tab))


@pytest.mark.parametrize("visit", [LIGHT, SLOW_DARK], indirect=True, ids=["light", "dark"])
def test_words_worth_checking(visit: Visit) -> None:
    """They are underlined, and who does not see that is told."""
    sure, unsure = ({"start": 0, "end": 5, "confidence": 0.334}, {"start": 13, "end": 21, "confidence": 0.333})
    places = {"source": {"start": 0, "end": 27}, "target": {"start": 0, "end": 27}}
    words = {"tokens": [], "words": [sure, unsure], "alignment": {"tokens": {"source": [], "target": []}, "words": []}}
    details = [{"sentences": [places | words]}]
    visit.mock("translate", body={"translatedText": "Where is the shunting yard?", "details": details})
    page = visit.translate("Wo ist der Rangierbahnhof??")
    expect(page.locator("#output .doubtful")).to_have_text(["shunting"])
    assert "dotted" in page.locator(".doubtful").evaluate("word => getComputedStyle(word).textDecoration")
    expect(page.locator("#notes")).to_contain_text("worth checking")
    assert not findings(page)
    page.locator("#output .sentence").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#live")).to_contain_text("shunting, aligned with nothing. Worth checking")


@pytest.mark.parametrize("visit", [LIGHT, SLOW_DARK], indirect=True, ids=["light", "dark"])
def test_sentences_worth_checking(visit: Visit) -> None:
    """They have a sign, which is explained once, and who does not see it is told."""
    confidences = (0.5, 0.499, None)
    sentences = []
    for number, confidence in enumerate(confidences):
        place = {"start": 5 * number, "end": 5 * number + 4}
        known = {} if confidence is None else {"confidence": confidence}
        sentences.append({"source": place, "target": place, "tokens": [], **known})
    visit.mock("translate", body={"translatedText": "Yes. No!! Why?", "details": [{"sentences": sentences}]})
    page = visit.translate("Ja!! Nein Wie?")
    shown = page.locator("#output .sentence")
    assert [one.locator(".weak").count() for one in shown.all()] == [0, 1, 0]
    expect(page.locator("#output")).to_have_text("Yes. No!! Why?")
    expect(page.locator("#notes")).to_have_text("Sentences with a warning sign may be wrong.")
    expect(shown.nth(1)).to_have_accessible_name("No!!")
    expect(shown.nth(1)).to_have_accessible_description(re.compile("This sentence may be wrong.* Enter shows"))
    expect(shown.nth(0)).to_have_accessible_description(re.compile("^Enter shows"))
    assert not findings(page)


@pytest.mark.slow
@pytest.mark.parametrize("visit", [LIGHT, DARK], indirect=True, ids=["light", "dark"])
def test_nor_in_what_opens(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    page.locator("#output .word").first.click()
    expect(page.locator("#alternatives-list button").first).to_be_visible()
    assert not findings(page)
    page.keyboard.press("Escape")
    for opener, dialog in (("#attention", "#heat"), ("#terms", "#terms-dialog"), ("#history-button", "#history")):
        page.click(opener)
        expect(page.locator(dialog)).to_be_visible()
        assert not findings(page)
        page.keyboard.press("Escape")
    visit.mock("translate", 401, {"error": "no key", "code": "key_missing", "request_id": "1"})
    page.fill("#source-text", "Hallo")
    page.get_by_role("button", name="Enter a key").click()
    assert not findings(page)


@pytest.mark.parametrize(
    "visit", [PHONE, pytest.param(TABLET, marks=pytest.mark.slow)], indirect=True, ids=["phone", "tablet"]
)
@pytest.mark.parametrize("tab", TABS)
def test_narrow_screens(visit: Visit, tab: str) -> None:
    page = show(visit, tab)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not small(page)


@pytest.mark.slow
@pytest.mark.parametrize("visit", [PHONE], indirect=True, ids=["phone"])
def test_what_opens_fits_a_phone(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    page.locator("#output .word").first.tap()
    expect(page.locator("#alternatives-list button").first).to_be_visible()
    box = page.locator("#alternatives").bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= 360
    assert not small(page)
    page.keyboard.press("Escape")
    for opener in ("#attention", "#terms", "#history-button"):
        page.locator(opener).tap()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not small(page)
        page.keyboard.press("Escape")


def small(page: Page) -> list[str]:
    """Visible controls that a finger would miss; words of a sentence and cells of a table are text."""
    return [str(one) for one in page.evaluate(
        """least => [...document.querySelectorAll("button, select, [role=tab], textarea, label:has(input), .brand")]
        .filter(one => one.checkVisibility())
        .map(one => [one.id || one.className || one.textContent, one.getBoundingClientRect()])
        .filter(([, box]) => box.width < least || box.height < least)
        .map(([name, box]) => `${name}: ${box.width} x ${box.height}`)""",
        LEAST,
    )]  # fmt: skip


def ground(page: Page) -> int:
    """How bright the page's ground is, 0 to 765."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))


@pytest.mark.parametrize("visit", [{"color_scheme": "dark"}], indirect=True, ids=["dark"])
def test_dark_by_the_system_and_by_choice(visit: Visit) -> None:
    page = visit.open()
    assert ground(page) < 200
    page.get_by_role("button", name="Use light colours").click()
    assert ground(page) > 600
    page = visit.open()
    assert ground(page) > 600
    page.get_by_role("button", name="Use dark colours").click()
    assert ground(page) < 200
    page.emulate_media(color_scheme="light")  # who chose what the system says follows the system
    assert ground(page) > 600


def test_by_keyboard_alone(visit: Visit) -> None:
    page = visit.open(source="de")
    expect(page.locator("#source-text")).to_be_focused()
    page.keyboard.type(GERMAN)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#output .sentence")
    while not page.evaluate("document.activeElement.matches('.sentence')"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") != "copy", "Tab passed the translation"
    page.keyboard.press("ArrowRight")
    first = page.locator("#output").inner_text().split()[0]
    expect(page.locator("#live")).to_have_text(re.compile(rf"^{re.escape(first)}, from Wo\b"))
    assert texts_of(page, "#mirror .linked")[0] == "Wo"
    page.keyboard.press("ArrowDown")
    expect(page.locator("#output .sentence").nth(1)).to_be_focused()
    before = page.locator("#output .sentence").nth(1).inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("#alternatives-list button").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#output .sentence").nth(1)).to_be_focused()
    assert page.locator("#output .sentence").nth(1).inner_text() != before
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#output .sentence").nth(1)).to_be_focused()


@pytest.mark.slow
def test_arrow_keys_in_the_text_point_at_words(visit: Visit) -> None:
    page = visit.translate("Wo ist der Bahnhof?")
    page.press("#source-text", "End")
    page.press("#source-text", "ArrowLeft")
    page.press("#source-text", "ArrowLeft")
    expect(page.locator("#mirror .pointed")).to_have_text("Bahnhof")
    assert "station" in texts_of(page, "#output .linked")


@pytest.mark.slow
def test_tabs_by_keyboard_and_address(visit: Visit) -> None:
    page = visit.open("summarize")
    expect(page.locator("#panel-summarize")).to_be_visible()
    page.focus("#tab-summarize")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tab-translate")).to_be_focused()
    expect(page.locator("#panel-translate")).to_be_visible()
    assert page.url.endswith("#translate")


@pytest.mark.slow
def test_focus_is_seen(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    for selector in ("#tab-translate", "#theme", "#source-language", "#swap", "#copy", "#output .sentence"):
        page.keyboard.press("Shift")  # whoever uses keys sees where they are
        page.locator(selector).first.focus()
        style = page.locator(selector).first.evaluate("element => getComputedStyle(element).outlineStyle")
        assert style == "solid", selector


def test_right_to_left(visit: Visit) -> None:
    visit.mock("languages", body=[{"code": "de", "name": "German", "targets": ["ar"]}])
    visit.mock("translate", body={"translatedText": "أين المحطة؟"})
    page = visit.open(source="de")
    page.fill("#source-text", "Wo ist der Bahnhof?")
    expect(page.locator("#output")).to_have_text("أين المحطة؟")
    assert page.locator("#output").evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert page.locator("#output").get_attribute("lang") == "ar"
    field = page.locator("#source-text")
    assert field.evaluate("element => getComputedStyle(element).direction") == "ltr"
    field.fill("أين المحطة؟")
    assert field.evaluate("element => getComputedStyle(element).direction") == "rtl"
    box, button = field.bounding_box(), page.locator("#clear").bounding_box()
    assert box and button
    padding = field.evaluate("element => parseFloat(getComputedStyle(element).paddingRight)")
    assert box["x"] + box["width"] - padding <= button["x"]  # the text does not run under the button


def test_results_are_read_out(visit: Visit) -> None:
    page = visit.translate("Guten Morgen.")
    expect(page.locator("#live")).to_have_text(f"Translation: {page.locator('#output').inner_text()}")
    assert page.locator("#live").get_attribute("aria-live") == "polite"
