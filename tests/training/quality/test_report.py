"""The report as a reader's browser has it: one file, no text taken for markup, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from training.quality.lengths import LengthClass
from training.quality.report import Example, Picture, Report, SystemOutput, _marked, choose, in_turn, render
from training.quality.significance import Bootstrap, ComparedScore

HOSTILE = '<script>alert("x")</script> & <img src="http://example.org/a.png" onerror="x()"> \x00\x1b[31m "\''
OWN = ComparedScore("chrF", 50.0, 2.0, None, None, None, "case:mixed|bs:10")
OTHER = ComparedScore("chrF", 40.0, 2.5, -10.0, (-14.0, -6.0), 0.001, "case:mixed|bs:10")
ERROR = replace(OWN, metric="TER")


def report(text: str = "ein Text", *, rival: str = "old") -> Report:
    systems = ["new", *([rival] if rival else [])]
    scores = {name: [OWN if name == "new" else OTHER] * 2 for name in systems}
    outputs = tuple(SystemOutput(name, f"{name} {text}", 30.0 - 20 * index) for index, name in enumerate(systems))
    picture = Picture(f"cnn over {text}", b"\x89PNG", f"{text}: a (0.50).")
    example = Example(7, (text,), f"the {text}", outputs, (picture,))
    return Report(
        system="new",
        rival=rival,
        languages=("de", "en"),
        facts={"command": f"tandem evaluate {text}"},
        scores=scores,
        classes=[(LengthClass(1, 10, (0, 1)), scores)],
        sampling=Bootstrap(10, 5),
        metric="chrF",
        sections=[("Greatest gains", [example]), ("Greatest losses", [])],
    )


class Page(HTMLParser):
    """Every start tag with its attributes, the text by its innermost tag, and whether every tag was closed."""

    EMPTY = ("meta", "img")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.append((self._open[-1], data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


@pytest.mark.parametrize("rival", ["old", ""])
def test_a_page_asks_for_nothing_else(rival: str) -> None:
    page = Page(render(report(HOSTILE, rival=rival)))
    assert {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "base", "form", "a"} == set()
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), tag
        assert (attributes.get("src") or "data:").startswith("data:image/png;base64,") or tag != "img"
        assert "href" not in attributes and "style" not in attributes and "srcset" not in attributes
    assert len(page.of("img")) == 1
    (style,) = page.text("style")
    assert "url(" not in style and "@import" not in style and "prefers-color-scheme: dark" in style
    policy = next(one["content"] for one in page.of("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_text_stays_text() -> None:
    """Wherever a text or a name stands: in facts, sources, outputs, alternative texts and names of systems."""
    html = render(report(HOSTILE, rival="<b>old"))
    assert "\x00" not in html and "\x1b" not in html
    page = Page(html)
    assert not page.of("script") and not page.of("b") and len(page.of("img")) == 1
    shown = HOSTILE.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")
    assert any(text == f"tandem evaluate {shown}" for text in page.text("dd"))
    assert shown in (page.of("img")[0]["alt"] or "")
    assert any("<b>old" in text for text in page.text("h1"))


def test_a_page_can_be_used_without_seeing_it() -> None:
    page = Page(render(report()))
    assert page.of("html") == [{"lang": "en"}]
    assert len(page.of("table")) == len(page.text("caption")) == 2
    assert all(cell.get("scope") in ("col", "row", "colgroup") for cell in page.of("th"))
    assert [one.get("lang") for one in page.of("dd") if "lang" in one] == ["de", "en", "en", "en"]
    assert page.of("img")[0]["alt"] and "ein Text: a (0.50)." in page.text("p")
    headings = [tag for tag, _ in page.tags if tag in ("h1", "h2", "h3", "h4")]
    assert headings == ["h1", "h2", "h2", "h2", "h3", "h4", "h3"]  # no level is left out


def test_the_numbers_stand_in_their_columns() -> None:
    page = Page(render(report()))
    cells = page.text("td")
    row = ["50.00 ± 2.00", "40.00 ± 2.50", "-10.00 (-14.00 to -6.00)", "0.001"]
    assert cells[:4] == row
    assert cells[8:13] == ["2", *row]  # two rows of scores, then the first class of length with its two sentences
    assert page.text("h4") == ["Line 7: chrF 30.0 against 10.0 (+20.0)"]
    assert any("10 draws of the bootstrap, seed 5" in text for text in page.text("p"))
    alone = Page(render(report(rival="")))
    assert alone.text("td") == ["50.00 ± 2.00"] * 2 + ["2"] + ["50.00 ± 2.00"] * 2
    assert alone.text("h4") == ["Line 7: chrF 30.0"]


def test_less_is_better_where_it_is() -> None:
    page = Page(render(replace(report(rival=""), scores={"new": [OWN, ERROR]})))
    assert [text for text in page.text("th") if "less is better" in text] == ["TER (less is better)"]


def test_the_same_report_gives_the_same_page() -> None:
    assert render(report()) == render(report())


def marked(text: str, reference: str) -> str:
    return f"<p>{_marked(text, reference)}</p>"


def test_what_the_reference_has_not_is_marked() -> None:
    assert marked("a b x y c", "a b c") == "<p>a b <mark>x y</mark> c</p>"
    assert marked("x a", "a b") == "<p><mark>x</mark> a</p>"
    assert marked("a b", "a b") == "<p>a b</p>"
    assert marked("b a", "a b").count("<mark>") == 1  # the other order
    assert marked("", "a") == "<p><em>nothing</em></p>"
    assert marked("&amp; <b>", "x") == "<p><mark>&amp;amp; &lt;b&gt;</mark></p>"


# --- which sentences ------------------------------------------------------------------------------------------------


def test_gains_and_losses_are_the_greatest_first() -> None:
    own, other = [50.0, 10.0, 30.0, 90.0, 0.0], [40.0, 40.0, 30.0, 10.0, 5.0]
    gains, losses = choose(own, other, 5, ("new", "old"))
    assert (gains[1], losses[1]) == ((3, 0), (1, 4))  # the third is neither
    assert gains[0] == "Greatest gains of new over old"
    assert [rows for _, rows in choose(own, other, 1, ("new", "old"))] == [(3,), (1,)]


@pytest.mark.parametrize(
    ("scores", "count", "worst", "best"),
    [
        ([30.0, 10.0, 20.0, 40.0], 1, (1,), (3,)),
        ([30.0, 10.0, 20.0, 40.0], 9, (1, 2), (3, 0)),
        ([30.0, 10.0, 20.0], 9, (1, 2), (0,)),
        ([30.0], 9, (0,), ()),
        ([30.0], 0, (), ()),
    ],
)
def test_without_another_system_no_sentence_is_among_the_best_and_the_worst(
    scores: list[float], count: int, worst: tuple[int, ...], best: tuple[int, ...]
) -> None:
    assert [rows for _, rows in choose(scores, None, count, ("new", ""))] == [worst, best]


def test_sections_take_turns() -> None:
    assert list(in_turn([("", (1, 2, 3)), ("", (9,))])) == [1, 9, 2, 3]
    assert list(in_turn([])) == []
