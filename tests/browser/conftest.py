"""One server and one browser for all tests of the page, which run in one process for their sake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.support import KEY, Visit, browsing, find_browser, serving


@pytest.fixture(scope="package")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server with the shipped bundles."""
    if find_browser() is None:
        pytest.skip("needs Chromium or Chrome on the path, or its path in the variable CHROMIUM")
    with serving(tmp_path_factory.mktemp("page"), TANDEM_ADMIN_KEY=KEY) as found:
        yield found


@pytest.fixture(scope="package")
def browser(address: str) -> Iterator[Browser]:
    """Not for the whole session: while Playwright runs, no other test of the process can run an event loop."""
    with browsing() as running:
        yield running


@pytest.fixture
def visit(browser: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh profile; a test may give options of its context as the fixture's parameter."""
    options = {"viewport": {"width": 1280, "height": 800}, "locale": "en", "reduced_motion": "reduce"}
    context = browser.new_context(**(options | getattr(request, "param", {})))
    visit = Visit(context.new_page(), address)
    yield visit
    context.close()
    visit.check()
