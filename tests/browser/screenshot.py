"""Makes the page's pictures: ``python -m tests.browser.screenshot docs/figures/page.png [LOCALE]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.browser.support import Visit, browsing, serving

TEXT = "Wo ist der nächste Bahnhof? Ich habe meinen Schlüssel im Zug vergessen.\n\nKannst du mir bitte helfen?"


def main(path: Path, locale: str = "en") -> None:
    """Translate three sentences, point at a word, and keep what is seen."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address, browsing() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 720}, locale=locale, color_scheme="light")
        visit = Visit(context.new_page(), address)
        page = visit.translate(TEXT, source="auto")
        page.locator("#output .word", has_text="station").hover()
        page.screenshot(path=path)
        context.close()
        visit.check()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
