"""The report of `tandem evaluate` in a browser: light and dark, by keyboard, wide and narrow, and nothing fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it ships no annotations
from playwright.sync_api import Browser, Page

from training.quality import plots
from training.quality.attention import SentenceAttention
from training.quality.lengths import LengthClass
from training.quality.report import Example, Picture, Report, SystemOutput, render
from training.quality.significance import Bootstrap, ComparedScore

LONG = "ein ziemlich langes Wort: Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen " * 3
OWN = ComparedScore("chrF", 50.0, 2.0, None, None, None, "case:mixed|bs:1000")
OTHER = ComparedScore("chrF", 40.0, 2.5, -10.0, (-14.0, -6.0), 0.001, "case:mixed|bs:1000")


@pytest.fixture
def report(tmp_path: Path) -> str:
    """The address of a report with all that a report can have."""
    sentence = SentenceAttention(
        (("▁das", "</s>"),), ("▁the", "</s>"), {"cnn.0.san": np.array([[0.8, 0.2], [0.1, 0.9]])}
    )
    picture = Picture("cnn over san", plots.png(plots.layer_figure(sentence, ["cnn.0.san"])), "▁the: ▁das (0.80).")
    outputs = (SystemOutput("new", f"{LONG} new", 60.0), SystemOutput("old", "", 0.0))
    scores = {"new": [OWN], "old": [OTHER]}
    example = Example(1, (f"{LONG} <script>document.title = 'run'</script>",), LONG, outputs, (picture,))
    made = Report(
        system="new",
        rival="old",
        languages=("de", "en"),
        facts={"bundle": "new", "command": f"tandem evaluate {'x' * 300}"},
        scores=scores,
        classes=[(LengthClass(1, 10, (0,)), scores), (LengthClass(51, None, (1,)), scores)],
        sampling=Bootstrap(),
        metric="chrF",
        sections=[("Greatest gains of new over old", [example]), ("Greatest losses of new against old", [])],
    )
    path = tmp_path / "report.html"
    path.write_text(render(made), encoding="utf-8")
    return path.as_uri()


def opened(browser: Browser, address: str, **options: Any) -> tuple[Page, list[str]]:
    """The page with everything unfolded, and what it asked for or complained of."""
    page = browser.new_context(**options).new_page()
    told: list[str] = []
    page.on("request", lambda request: told.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    return page, told


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_alone(browser: Browser, report: str, scheme: Any) -> None:
    page, told = opened(browser, report, color_scheme=scheme)
    assert page.title() == "Evaluation: new against old"
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert [url for url in told if not url.startswith("data:image/png")] == [report]
    assert page.locator("img").evaluate("image => image.naturalWidth") > 50
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(244, 246, 244)", "dark": "rgb(16, 20, 19)"}[scheme]
    page.context.close()


@pytest.mark.slow
def test_a_narrow_window_scrolls_tables_not_the_page(browser: Browser, report: str) -> None:
    page, _ = opened(browser, report, viewport={"width": 320, "height": 600})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"
    page.context.close()
