"""Errors in words: what the page says and does when the server refuses, is away, or asks for a key."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.support import Visit, error

TEXT = "Guten Morgen."


def send(visit: Visit, text: str = TEXT) -> Page:
    """Type a text; it is asked for once, when typing has paused: a key pressed besides might come after that."""
    page = visit.open(source="de")
    page.fill("#source-text", text)
    return page


def first_fails(visit: Visit, status: int, code: str, **headers: str) -> list[Route]:
    """Refuse the first translation and let the later ones through; returns what was asked."""
    asked: list[Route] = []
    visit.expected.add(status)

    def answer(route: Route) -> None:
        asked.append(route)
        if len(asked) == 1:
            route.fulfill(status=status, json=error(code), headers=headers)
        else:
            route.continue_()

    visit.route("translate", answer)
    return asked


def test_a_busy_server_is_asked_again(visit: Visit) -> None:
    asked = first_fails(visit, 503, "overloaded", **{"Retry-After": "2"})
    page = send(visit)
    expect(page.locator("#problem [role=alert]")).to_have_text("The server is busy.")
    expect(page.locator("#problem")).to_contain_text("Trying again in")
    expect(page.locator("#output .sentence")).to_have_count(1)
    expect(page.locator("#problem")).to_be_hidden()
    assert len(asked) == 2


@pytest.mark.slow
def test_waiting_can_be_cut_short(visit: Visit) -> None:
    first_fails(visit, 429, "rate_limited", **{"Retry-After": "600"})
    page = send(visit)
    expect(page.locator("#problem")).to_contain_text("Too many requests")
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#output .sentence")).to_have_count(1)


@pytest.mark.slow
def test_a_new_text_takes_the_place_of_an_error(visit: Visit) -> None:
    first_fails(visit, 503, "draining", **{"Retry-After": "600"})
    page = send(visit)
    expect(page.locator("#problem")).to_contain_text("being restarted")
    page.fill("#source-text", "Gute Nacht.")
    expect(page.locator("#output .sentence")).to_have_count(1)
    expect(page.locator("#problem")).to_be_hidden()


@pytest.mark.slow
def test_an_empty_quota_is_no_reason_to_wait(visit: Visit) -> None:
    visit.mock("translate", 429, error("quota_exceeded"), {"Retry-After": "3600"})
    page = send(visit)
    expect(page.locator("#problem")).to_have_text("The quota of this key is used up.")


@pytest.mark.slow
def test_too_long_a_text_is_refused_by_the_server(visit: Visit) -> None:
    visit.mock("frontend/settings", body={"charLimit": -1})
    visit.mock("translate", 413, error("too_large", detail={"bound": 20000, "value": 20001}))
    page = send(visit)
    expect(page.locator("#problem")).to_contain_text("at most 20,000 are taken at once, and this is 20,001")
    expect(page.locator("#count")).to_have_text("13 characters")


@pytest.mark.slow
def test_too_long_a_text_is_not_even_sent(visit: Visit) -> None:
    visit.mock("frontend/settings", body={"charLimit": 10})
    page = send(visit)  # the guard of the fixture: a request would be answered, with text in #output
    expect(page.locator("#problem")).to_contain_text("3 too many for one request")
    expect(page.locator("#count")).to_have_class("muted over")
    expect(page.locator("#output")).to_be_empty()


@pytest.mark.slow
def test_a_fault_of_the_server_has_an_id_and_a_second_try(visit: Visit) -> None:
    asked = first_fails(visit, 500, "internal")
    page = send(visit)
    expect(page.locator("#problem")).to_contain_text("0123456789abcdef")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#output .sentence")).to_have_count(1)
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("visit", "refused", "said"),
    [
        ({"locale": "de"}, "Der Server hat das abgelehnt.", "Was der Server sagte"),
        ({"locale": "fr"}, "Le serveur a refusé.", "Ce qu’a dit le serveur"),
    ],
    ids=["de", "fr"],
    indirect=["visit"],
)
def test_the_servers_own_words_are_for_whoever_asks(visit: Visit, refused: str, said: str) -> None:
    """They are English, and about the fields of a request."""
    visit.mock(
        "translate", 422, error("invalid_field", "beam_size: must be at most 10", detail=[{"field": "beam_size"}])
    )
    page = send(visit)
    expect(page.get_by_role("alert")).to_have_text(refused)
    expect(page.get_by_text("beam_size")).to_be_hidden()
    page.get_by_text(said).click()
    expect(page.get_by_text("beam_size")).to_be_visible()
    expect(page.get_by_text("beam_size")).to_have_attribute("lang", "en")


@pytest.mark.parametrize(("found", "words"), [("it", "looks like Italian"), ("xyz", "looks like a language that this")])
def test_a_language_is_never_named_by_its_code(visit: Visit, found: str, words: str) -> None:
    detail = {"pairs": [], "detected": {"language": found, "confidence": 99.0}}
    visit.mock("translate", 404, error("language_not_served", f"does not know {found!r}", detail=detail))
    page = visit.open(source="auto")
    page.fill("#source-text", TEXT)
    expect(page.get_by_role("alert")).to_contain_text(words)
    assert found not in page.get_by_role("alert").inner_text().split()


@pytest.mark.slow
def test_a_server_that_is_away(visit: Visit) -> None:
    visit.route("translate", lambda route: route.abort())
    page = send(visit)
    expect(page.locator("#problem")).to_contain_text("cannot be reached")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


@pytest.mark.slow
def test_a_server_that_is_away_at_the_start(visit: Visit) -> None:
    visit.mock("languages", 503, error("loading"), {"Retry-After": "600"})
    visit.page.goto(visit.address)
    expect(visit.page.locator("#start-problem")).to_contain_text("The server is busy.")
    visit.page.unroute_all()
    visit.page.get_by_role("button", name="Try now").click()
    visit.page.wait_for_selector("body[data-ready]")
    expect(visit.page.locator("#start-problem")).to_be_hidden()


def test_a_key_is_asked_for_and_kept_in_this_tab_only(visit: Visit) -> None:
    sent: list[str | None] = []
    visit.expected |= {401, 403}

    def guard(route: Route) -> None:
        sent.append(route.request.headers.get("authorization"))
        if sent[-1] is None:
            route.fulfill(status=401, json=error("key_missing"))
        elif sent[-1] == "Bearer wrong":
            route.fulfill(status=403, json=error("key_invalid"))
        else:
            headers = {name: value for name, value in route.request.headers.items() if name != "authorization"}
            route.continue_(headers=headers)

    visit.route("translate", guard)
    page = send(visit)
    expect(page.locator("#problem")).to_contain_text("asks for an API key")
    for key, outcome in (("wrong", "does not accept this API key"), ("right", "")):
        page.get_by_role("button", name="Enter a key").click()
        expect(page.locator("#key-field")).to_be_focused()
        page.fill("#key-field", key)
        page.keyboard.press("Enter")
        expect(page.locator("#problem")).to_contain_text(outcome)
    expect(page.locator("#output .sentence")).to_have_count(1)
    assert sent == [None, "Bearer wrong", "Bearer right"]
    assert "right" in page.evaluate("JSON.stringify(sessionStorage)")
    assert "right" not in page.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
    page.click("#key-button")
    page.click("#key-forget")
    assert "right" not in page.evaluate("JSON.stringify(sessionStorage)")
