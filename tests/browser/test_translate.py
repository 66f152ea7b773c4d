"""The translate tab, with the shipped model: what is typed, chosen and pointed at."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.support import GERMAN, KEY, Visit, error, texts_of

TURNED = [{"code": code, "name": name, "targets": [other]} for code, name, other in
          (("de", "German", "en"), ("en", "English", "de"))]  # fmt: skip


def translated(visit: Visit, text: str) -> str:
    """What the server answers to a request of its own."""
    fields = {"q": text, "source": "de", "target": "en"}
    return str(visit.page.request.post(f"{visit.address}/translate", data=fields).json()["translatedText"])


def test_what_is_typed_is_translated(visit: Visit) -> None:
    page = visit.open(source="de")
    page.locator("#source-text").press_sequentially("Guten Morgen.")
    expect(page.locator("#output")).to_have_text(translated(visit, "Guten Morgen."))
    expect(page.locator("#count")).to_have_text("13 of 20,000 characters")
    expect(page.locator("#time")).to_contain_text(" s")
    page.click("#clear")
    expect(page.locator("#output-empty")).to_be_visible()
    expect(page.locator("#source-text")).to_be_focused()
    expect(page.locator("#copy")).to_be_hidden()


def test_layout_and_markup_come_back_as_text(visit: Visit) -> None:
    text = "<img src=x onerror=alert(1)>\n\n  Guten Morgen. 😀\n\tWo ist der Bahnhof?\n"
    page = visit.translate(text)
    assert page.locator("#output").evaluate("element => element.textContent") == translated(visit, text)
    assert page.locator("#output img, #mirror img").count() == 0


def test_the_language_is_detected(visit: Visit) -> None:
    page = visit.translate(GERMAN, source="auto")
    expect(page.locator("#source-language option").first).to_have_text("German (detected)")
    assert page.locator("#source-language").input_value() == "auto"
    page.click("#clear")
    expect(page.locator("#source-language option").first).to_have_text("Detect language")


def test_a_detected_language_that_is_not_served_is_named(visit: Visit) -> None:
    visit.expected.add(404)
    page = visit.open(source="auto")
    page.fill("#source-text", "Questa sera andiamo tutti insieme a mangiare una pizza in centro.")
    page.press("#source-text", "Control+Enter")
    expect(page.locator("#problem")).to_contain_text("Italian")
    expect(page.locator("#problem")).to_contain_text("English")


@pytest.mark.slow
def test_a_text_in_the_target_language_is_said_to_be(visit: Visit) -> None:
    page = visit.open(source="auto")
    page.fill("#source-text", "This is an English sentence, and nothing has to be done about it.")
    page.press("#source-text", "Control+Enter")
    expect(page.locator("#notes")).to_have_text("This text seems to be in English already.")


@pytest.mark.slow
def test_a_long_text_appears_sentence_by_sentence(visit: Visit) -> None:
    text = "Guten Morgen.\n\n" + " ".join(f"Ich wohne seit {years} Jahren in diesem Haus." for years in range(2, 32))
    page = visit.open(source="de")
    page.evaluate(
        """() => {
            window.seen = [];
            const output = document.getElementById("output");
            new MutationObserver(() => window.seen.push(output.textContent.length)).observe(output, {childList: true});
        }"""
    )
    page.fill("#source-text", text)
    page.press("#source-text", "Control+Enter")
    page.wait_for_selector("#output .sentence")
    assert page.locator("#output").evaluate("element => element.textContent") == translated(visit, text)
    seen = [length for length in page.evaluate("window.seen") if length]
    assert seen == sorted(seen)
    assert seen[0] < seen[-1]


def events(*parts: tuple[str, dict[str, object]]) -> str:
    """Server-sent events."""
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in parts)


def test_a_streamed_translation_has_its_layout_and_its_words(visit: Visit) -> None:
    line = "Wo ist der nächste Bahnhof?"
    page = visit.open(source="de")
    page.fill("#source-text", f"{line}\n\n\t{line}\n" + "Guten Morgen. " * 50)
    with page.expect_request("**/translate") as asked:
        page.press("#source-text", "Control+Enter")
    assert asked.value.headers["accept"] == "text/event-stream"
    expect(page.locator("#output .sentence")).to_have_count(52)
    first, second = texts_of(page, "#output .sentence")[:2]
    written = page.locator("#output").evaluate("element => element.textContent")
    assert written.startswith(f"{first}\n\n\t{second}\n")
    page.locator("#output .sentence").nth(1).locator(".word", has_text="station").hover()
    assert linked(page, "#mirror") == ["Bahnhof"]


def test_what_has_come_of_a_translation_stays_where_the_rest_fails(visit: Visit) -> None:
    sentence = {"text": 0, "sentence": 0, "source": {"start": 0, "end": 13}, "translation": "Good morning."}
    body = events(("sentence", sentence), ("error", {"error": "too late", "code": "deadline"}))
    visit.route("translate", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    page = visit.open(source="de")
    page.fill("#source-text", "Guten Morgen. " * 50)
    expect(page.locator("#problem")).to_contain_text("took too long")
    expect(page.locator("#output")).to_have_text("Good morning.")
    expect(page.locator("#copy")).to_be_hidden()
    page.click("#clear")
    expect(page.locator("#output")).to_be_empty()


class Detection:
    """Lets a page ask which language a text is in, and counts that; the server's models are not asked."""

    def __init__(self, visit: Visit, **guess: object) -> None:
        self.asked: list[str] = []
        self.translated: list[tuple[str, str]] = []
        self.guess = guess
        visit.mock("languages", body=[*TURNED, {"code": "fr", "name": "French", "targets": ["en"]}])
        visit.route("detect", self._detect)
        visit.route("translate", self._translate)

    def _detect(self, route: Route) -> None:
        self.asked.append(json.loads(route.request.post_data or "")["q"])
        if self.guess:
            route.fulfill(json=[self.guess])
        else:
            route.continue_()

    def _translate(self, route: Route) -> None:
        fields = json.loads(route.request.post_data or "")
        self.translated.append((fields["source"], fields["target"]))
        route.fulfill(json={"translatedText": f"<{fields['q']}>", "details": []})


@pytest.mark.parametrize(
    ("text", "source", "pair"),
    [
        ("Ich hätte gern ein Zimmer mit Blick aufs Meer.", "en", ("de", "en")),  # it is the target: turned around
        ("Je voudrais une chambre avec vue sur la mer.", "de", ("fr", "en")),  # into what was chosen
    ],
)
def test_another_language_than_was_chosen_is_noticed(
    visit: Visit, text: str, source: str, pair: tuple[str, str]
) -> None:
    detection = Detection(visit)
    page = visit.open(source=source)
    page.fill("#source-text", text)
    offer = page.locator("#offer")
    expect(offer).to_contain_text("This text seems to be in another language: ")
    page.locator("#source-text").press_sequentially(" ...")
    expect(page.locator("#output")).to_have_text(f"<{text} ...>")
    expect(offer).not_to_be_empty()
    assert detection.asked == [text]  # not again for what goes on from it
    offer.get_by_role("button").click()
    expect(offer).to_be_empty()
    expect(page.locator("#source-language")).to_have_value(pair[0])
    expect(page.locator("#target-language")).to_have_value(pair[1])
    expect(page.locator("#source-text")).to_have_value(f"{text} ...")
    expect(page.locator("#source-text")).to_be_focused()
    expect(page.locator("#output-pane.busy")).to_have_count(0)
    assert detection.translated[-1] == pair


@pytest.mark.parametrize(
    ("text", "guess", "asked"),
    [
        ("Guten Morgen, Welt", {}, 0),  # too short to tell
        ("I would like a room with a view of the sea.", {}, 1),
        ("Ein Zimmer with a view of the sea", {"language": "de", "confidence": 89.0}, 1),  # not sure
    ],
)
def test_nothing_is_offered_where_it_may_be_right(
    visit: Visit, text: str, guess: dict[str, object], asked: int
) -> None:
    detection = Detection(visit, **guess)
    page = visit.open(source="en")
    with page.expect_response("**/detect" if asked else "**/translate"):
        page.fill("#source-text", text)
    expect(page.locator("#output")).to_have_text(f"<{text}>")
    page.evaluate("new Promise(requestAnimationFrame)")  # in which the page has read the reply
    assert len(detection.asked) == asked
    expect(page.locator("#offer")).to_be_empty()


def test_a_language_that_is_not_translated_is_named_without_an_offer(visit: Visit) -> None:
    Detection(visit)
    page = visit.open(source="de")
    page.fill("#source-text", "Questa sera andiamo tutti insieme a mangiare una pizza.")
    expect(page.locator("#offer")).to_have_text("This text seems to be in another language: Italian.")
    page.click("#clear")
    expect(page.locator("#offer")).to_be_empty()


def test_languages_are_swapped_with_their_texts(visit: Visit) -> None:
    visit.mock("languages", body=TURNED)
    asked: list[dict[str, object]] = []

    def answer(route: Route) -> None:
        fields = json.loads(route.request.post_data or "")
        asked.append(fields)
        sides = {name: {"start": 0, "end": len(str(fields["q"]))} for name in ("source", "target")}
        sentence = sides | {"score": -1.0, "tokens": []}
        route.fulfill(json={"translatedText": str(fields["q"]).swapcase(), "details": [{"sentences": [sentence]}]})

    visit.route("translate", answer)
    page = visit.translate("Haus")
    page.click("#swap")
    expect(page.locator("#output")).to_have_text("Haus")
    assert page.locator("#source-text").input_value() == "hAUS"
    assert [(one["source"], one["target"]) for one in asked] == [("de", "en"), ("en", "de")]


@pytest.mark.slow
def test_a_language_between_is_named(visit: Visit) -> None:
    french = {"code": "fr", "name": "French", "targets": ["de"], "via": {"de": "en"}}
    visit.mock("languages", body=[*TURNED, french])
    visit.mock("translate", body={"translatedText": "Haus", "details": [{"sentences": []}], "via": "en"})
    page = visit.open(source="fr", target="de")
    page.fill("#source-text", "Maison")
    expect(page.locator("#output")).to_have_text("Haus")
    expect(page.locator("#notes")).to_have_text("No model here translates this pair directly: it went through English.")


def test_the_target_turns_with_the_detected_language(visit: Visit) -> None:
    """Unless the user picked it: German and French can only be translated into English here."""
    found = {"Haus": "de", "Maison": "fr", "House": "en"}
    visit.mock("languages", body=[*TURNED, {"code": "fr", "name": "French", "targets": ["en"]}])
    visit.expected.add(404)
    asked: list[tuple[str, str]] = []

    def answer(route: Route) -> None:
        fields = json.loads(route.request.post_data or "")
        text, detected = fields["q"], {"language": found[fields["q"]], "confidence": 99.0}
        asked.append((text, fields["target"]))
        if (found[text], fields["target"]) == ("fr", "de"):
            detail = {"pairs": [], "detected": detected}
            route.fulfill(status=404, json={"error": "no", "code": "pair_not_served", "detail": detail})
            return
        sides = {name: {"start": 0, "end": len(text)} for name in ("source", "target")}
        details = [{"sentences": [sides | {"score": -1.0, "tokens": []}]}]
        route.fulfill(json={"translatedText": text.upper(), "detectedLanguage": detected, "details": details})

    visit.route("translate", answer)
    page = visit.open()
    target, output = page.locator("#target-language"), page.locator("#output")
    expect(target).to_have_value("en")  # into which most are translated
    for text, language in (("House", "de"), ("Maison", "en"), ("House", "de"), ("Haus", "en")):
        page.fill("#source-text", text)
        expect(output).to_have_text(text.upper())
        expect(target).to_have_value(language)
    assert asked == [
        ("House", "en"), ("House", "de"), ("Maison", "de"), ("Maison", "en"),
        ("House", "en"), ("House", "de"), ("Haus", "de"), ("Haus", "en"),
    ]  # fmt: skip
    target.select_option("de")
    expect(page.locator("#notes")).to_have_text("This text seems to be in German already.")
    page.fill("#source-text", "Maison")
    expect(page.get_by_text("This looks like French, which this server does not translate into German")).to_be_visible()
    assert asked[-2:] == [("Haus", "de"), ("Maison", "de")]


@pytest.mark.slow
def test_the_swap_says_why_it_cannot(visit: Visit) -> None:
    page = visit.open(source="de")
    swap = page.locator("#swap")
    expect(swap).to_have_attribute("aria-disabled", "true")
    expect(swap).to_have_accessible_name(
        "Languages cannot be swapped: this server does not translate English into German"
    )


def test_only_the_newest_text_counts(visit: Visit) -> None:
    held: list[Route] = []
    visit.route("translate", lambda route: held.append(route))
    page = visit.open(source="de")
    for text in ("eins", "zwei"):
        page.fill("#source-text", text)
        page.press("#source-text", "Control+Enter")
    while len(held) < 2:
        page.wait_for_timeout(20)
    held[1].fulfill(json={"translatedText": "two"})
    expect(page.locator("#output")).to_have_text("two")
    assert held[0].request.failure == "net::ERR_ABORTED"


def test_another_wording_of_one_sentence(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    first, second = texts_of(page, "#output .sentence")
    page.locator("#output .sentence").nth(1).locator(".word").nth(1).click()
    choices = page.locator("#alternatives-list button")
    expect(choices.first).to_have_attribute("aria-current", "true")
    assert choices.first.inner_text() == second
    wanted = choices.nth(2).inner_text()
    choices.nth(2).click()
    assert texts_of(page, "#output .sentence") == [first, wanted]
    assert wanted != second
    expect(page.locator("#output .sentence").nth(1)).to_be_focused()
    page.locator("#output .sentence").nth(1).hover()
    expect(page.locator("#output .sentence").nth(1).locator(".word").first).to_be_visible()  # aligned anew


def test_a_correction_is_kept_with_the_key(visit: Visit) -> None:
    """Without a key there is nothing to correct with; with one, the same sentence comes back as it was corrected."""
    page = visit.translate(GERMAN)
    page.locator("#output .sentence").nth(1).click()
    expect(page.locator("#alternatives-list button").first).to_be_visible()
    expect(page.get_by_role("button", name="Correct…")).to_be_hidden()
    page.evaluate("key => sessionStorage.setItem('tandem.key', JSON.stringify(key))", KEY)
    first, second = texts_of(page, "#output .sentence")
    page.locator("#output .sentence").nth(1).click()
    page.get_by_role("button", name="Correct…").click()
    field = page.get_by_label("Your translation of this sentence")
    expect(field).to_have_value(second)
    field.fill("My key <is> still on the train!")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#alternatives")).to_be_hidden()
    wanted = [first, "My key <is> still on the train!"]
    assert texts_of(page, "#output .sentence") == wanted
    visit.translate(GERMAN)
    assert texts_of(page, "#output .sentence") == wanted
    expect(page.locator("#notes")).to_contain_text("as you corrected it")
    page.locator("#output .sentence").nth(1).click()
    expect(page.locator("#alternatives-list button").nth(1)).to_be_visible()  # the model's own


@pytest.mark.slow
def test_a_correction_that_fails_behind_the_closed_panel_is_not_lost(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    page.evaluate("key => sessionStorage.setItem('tandem.key', JSON.stringify(key))", KEY)
    visit.expected.add(500)
    held: list[Route] = []
    visit.route("suggest", lambda route: held.append(route))
    page.locator("#output .sentence").nth(1).click()
    page.get_by_role("button", name="Correct…").click()
    page.get_by_label("Your translation of this sentence").fill("My key is gone!")
    with page.expect_request("**/suggest"):
        page.get_by_role("button", name="Save").click()
    page.keyboard.press("Escape")
    expect(page.locator("#alternatives")).to_be_hidden()
    held.pop().fulfill(status=500, json=error("internal"))
    expect(page.locator("#problem")).to_contain_text("My key is gone!: ")
    with page.expect_request("**/suggest"):
        page.locator("#problem").get_by_role("button", name="Try again").click()
    held.pop().fulfill(json={"success": True})
    expect(page.locator("#output .sentence").nth(1)).to_have_text("My key is gone!")
    expect(page.locator("#problem")).to_be_hidden()


def test_a_new_translation_closes_the_wordings_of_the_old_one(visit: Visit) -> None:
    """What was chosen for a sentence that is gone would else be put into another one."""
    page = visit.translate(GERMAN)
    held: list[Route] = []
    visit.route("translate", lambda route: held.append(route))
    page.fill("#source-text", "eins")
    while not held:
        page.wait_for_timeout(20)
    page.locator("#output .sentence").first.click()
    expect(page.locator("#alternatives")).to_be_visible()
    held[0].fulfill(json={"translatedText": "one"})
    expect(page.locator("#output")).to_have_text("one")
    expect(page.locator("#alternatives")).to_be_hidden()


@pytest.mark.slow
def test_what_is_copied_is_what_is_shown(visit: Visit) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.translate(GERMAN)
    page.locator("#output .word").first.click()
    page.locator("#alternatives-list button").nth(1).click()
    page.click("#copy")
    expect(page.locator("#copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#output").inner_text()


def linked(page: Page, place: str) -> list[str]:
    return texts_of(page, f"{place} .linked")


def test_a_word_shows_what_it_comes_from(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    page.locator("#output .word", has_text="station").hover()
    assert linked(page, "#mirror") == ["Bahnhof"]
    page.mouse.move(5, 5)
    expect(page.locator(".linked")).to_have_count(0)


def test_a_word_of_the_text_field_shows_what_became_of_it(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    box = page.locator("#mirror .word", has_text="Schlüssel").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#output .linked")).to_have_text([re.compile("^keys?$")])


@pytest.mark.slow
def test_places_are_right_behind_characters_of_several_units(visit: Visit) -> None:
    """The server counts code points of the normal form, the browser UTF-16 units of what was typed."""
    page = visit.translate("😀 Scho\u0308n. Wo ist der Bahnhof?")
    page.locator("#output .word", has_text="station").hover()
    assert linked(page, "#mirror") == ["Bahnhof"]


def test_the_heat_map(visit: Visit) -> None:
    page = visit.translate(GERMAN)
    page.click("#attention")
    dialog = page.locator("#heat")
    expect(dialog).to_be_visible()
    assert page.locator("#heat-grid thead th").all_inner_texts()[1:] == [
        *("⟨en⟩", "Wo", "ist", "der", "nächste", "Bahnhof", "?")  # the tag says which language to translate into
    ]
    weights = page.locator("#heat-grid td").evaluate_all(
        "cells => cells.map(c => c.style.getPropertyValue('--weight'))"
    )
    assert len(set(weights)) > 10
    page.locator("#heat-grid td").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#heat-readout")).to_contain_text("looked at “Wo”")
    page.select_option("#heat-sentence", "1")
    expect(page.locator("#heat-grid thead")).to_contain_text("Ich")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#attention")).to_be_focused()


@pytest.mark.slow
def test_terms_are_sent_and_kept(visit: Visit) -> None:
    sent: list[dict[str, object]] = []

    def answer(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or ""))
        missing = [{"source": "Bahnhof", "target": "terminus", "found": False}]
        found = {"language": "de", "confidence": 99.0} if sent[-1]["source"] == "auto" else None
        route.fulfill(json={"translatedText": "Where?", "glossary": missing, "detectedLanguage": found})

    visit.route("translate", answer)
    page = visit.open(source="de")
    page.click("#terms")
    page.get_by_label("Term 1", exact=True).fill("Bahnhof")
    page.get_by_label("Translation of term 1").fill("terminus")
    page.click("#terms-dialog [type=submit]")
    expect(page.locator("#terms")).to_have_text("Terms (1)")
    page.fill("#source-text", "Wo ist der Bahnhof?")
    expect(page.locator("#notes")).to_have_text("Not found in the translation: terminus")
    assert sent[-1]["glossary"] == {"Bahnhof": "terminus"}
    visit.open(source="auto")
    sent.clear()
    page.fill("#source-text", "Wo ist der Bahnhof?")
    expect(page.locator("#terms")).to_have_text("Terms (1)")
    while len(sent) < 2:
        page.wait_for_timeout(20)
    assert [one.get("glossary") for one in sent] == [None, {"Bahnhof": "terminus"}]  # once the language is known
